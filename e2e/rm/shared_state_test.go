// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A ResourceManager with its state in Redis is stopped, as on a host that hangs. Another process, without any file of
// the first, continues its applications. The first resumes, is fenced, and ends itself. A third continues after the
// second was killed.
func TestAnotherHostContinuesFromRedis(t *testing.T) {
	redis := redistest.Start(t, "--appendonly", "yes")
	start := func(name string) (*Creel, *stage) {
		rm := Start(t, Options{Name: name, Volatile: true, Conf: hadoop.Conf{
			"yarn.resourcemanager.cluster-id":       "shared",
			"yarn.resourcemanager.recovery.enabled": "true",
			"creel.rm.state.url":                    redis.URL(),
		}})
		return rm, newStage(t, rm.Process, rm.Addresses)
	}
	first, at1 := start("first")
	known := []*pb.ApplicationIdProto{at1.submit("one", nil), at1.submit("two", nil)}

	first.Signal(syscall.SIGSTOP)
	second, at2 := start("second")
	known = append(known, at2.submit("three", nil))
	has := func(s *stage) {
		t.Helper()
		for i, name := range []string{"one", "two", "three"} {
			if got := s.report(known[i]).GetName(); got != name {
				t.Errorf("%v is %q, want %q", known[i], got, name)
			}
		}
	}
	has(at2)

	// Longer than the pause that a ResourceManager detects: it answers nothing before it has asked the state.
	time.Sleep(2 * time.Second)
	first.Signal(syscall.SIGCONT)
	if err := first.Exit(); err == nil {
		t.Error("the first ended without an error")
	}
	first.WaitLine(t, "another process holds the state: process ")

	second.Kill9()
	_, at3 := start("third")
	has(at3)
}
