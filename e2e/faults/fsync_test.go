// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/programs"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// failSync makes the next fdatasync of each thread of a process fail. It returns when that is in force.
func failSync(t *testing.T, d *daemon) *process.Process {
	t.Helper()
	path, err := programs.Path("strace")
	if err != nil {
		t.Fatal(err)
	}
	tracer := process.Start(t, process.Command{Name: "strace-" + d.Name, Dir: t.TempDir(), Args: []string{
		path, "-f", "-p", fmt.Sprint(d.PID()), "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1",
	}})
	tracer.WaitLine(t, "attached")
	return tracer
}

// A ResourceManager's disk fails one sync during submissions by REST and by RPC. Their records may or may not be
// durable, so the ResourceManager ends without a response. Its journal may contain them. The router keeps their home.
// When the ResourceManager is back, each repeat succeeds there, and no application runs in two subclusters.
func TestAFailedSyncDoublesNothing(t *testing.T) {
	operatorsSee(t)
	dir := t.TempDir()
	for i, how := range manners[:2] {
		t.Run(how.name, func(t *testing.T) {
			server := redistest.Start(t)
			f := foundAs(t, server.URL(), layout{ofRM: func(id string) []string {
				return []string{"creel.rm.data=" + filepath.Join(dir, fmt.Sprint(i), id)}
			}})
			b := &behindPaths{federation: f, client: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})}
			t.Cleanup(func() { b.client.Close() })
			s := &story{behindPaths: b}
			bad := f.members[0]
			s.submitSoon(f.newID())
			ids := s.newIDs(20)
			failSync(t, bad.rm)
			var unclear []string
			for _, id := range ids {
				if err := s.once(id, how.byRPC, how.managed); err != nil {
					unclear = append(unclear, id)
				}
			}
			select {
			case <-bad.rm.Done():
			case <-time.After(process.Guard):
				t.Fatal("the ResourceManager whose disk failed goes on")
			}
			if !strings.Contains(bad.rm.Output(), "input/output error") {
				t.Errorf("it ended without a word about its disk:\n%s", bad.rm.Tail(10))
			}
			if len(unclear) == 0 {
				t.Fatal("every submission was accepted: the fault met none")
			}
			bad.rm.again(t)
			for _, id := range ids {
				f.await("the submission of "+id+" is accepted", func() bool {
					return s.once(id, how.byRPC, how.managed) == nil
				})
			}
			s.audit()
		})
	}
}
