// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/subcluster/rm"
)

// The clock of a running ResourceManager is set back by ten minutes. A node that falls silent afterwards is lost
// after the usual time, plus the tenth by which time passes slower; a live node is not. The step of the clock is
// logged once.
func TestClockSetBackDelaysNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const expiry = time.Minute
		var told bytes.Buffer
		conf := rm.Defaults()
		conf.NodeExpiry = expiry
		s, err := New(Config{
			ClusterID:         "test",
			Machine:           conf,
			HeartbeatInterval: time.Second,
			Groups:            groups.New(func(user string) []string { return []string{user} }, time.Minute),
			Logger:            slog.New(slog.NewTextHandler(&told, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		var back atomic.Int64
		s.wall = func(read time.Time) time.Time { return read.Round(0).Add(-time.Duration(back.Load())) }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		<-s.Ready()
		do := func(what func(m *rm.Machine, now time.Time)) {
			t.Helper()
			done := make(chan struct{})
			if err := s.call(func(m *rm.Machine, now time.Time) func() {
				what(m, now)
				return func() { close(done) }
			}); err != nil {
				t.Fatal(err)
			}
			<-done
		}
		silent, heard := creel.NodeID{Host: "silent", Port: 1}, creel.NodeID{Host: "heard", Port: 1}
		do(func(m *rm.Machine, now time.Time) {
			for _, id := range []creel.NodeID{silent, heard} {
				if _, err := m.RegisterNode(now, &rm.RegisterNode{ID: id, Resource: creel.NewResource(1024, 1)}); err != nil {
					t.Error(err)
				}
			}
		})
		time.Sleep(time.Second)
		back.Store(int64(10 * time.Minute))
		heartbeats := int32(0)
		states := func() (of [2]creel.NodeState) {
			do(func(m *rm.Machine, now time.Time) {
				m.NodeHeartbeat(now, &rm.NodeReport{ID: heard, ResponseID: heartbeats})
				heartbeats++
				for i, id := range []creel.NodeID{silent, heard} {
					v, _ := m.Node(id)
					of[i] = v.State
				}
			})
			return of
		}
		for range 5 {
			time.Sleep(10 * time.Second)
			if is := states(); is != [2]creel.NodeState{creel.NodeRunning, creel.NodeRunning} {
				t.Fatalf("before the time of the silent one is over: %v", is)
			}
		}
		time.Sleep(10*time.Second + expiry/9)
		if is := states(); is != [2]creel.NodeState{creel.NodeLost, creel.NodeRunning} {
			t.Errorf("when the time of the silent one is over: %v", is)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := strings.Count(told.String(), "was set back"); n != 1 {
			t.Errorf("the set clock is told %d times:\n%s", n, told.String())
		}
	})
}
