// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A node on no list that serves no more is shown for the time of
// yarn.resourcemanager.node-removal-untracked.timeout-ms, and then is not, until it comes back.
func TestUnlistedNodeIsForgottenWhenGone(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ForgetUntracked, c.NodeExpiry, c.AMExpiry = time.Minute, 10*time.Minute, 0 })
	off, lost, kept := w.node("off", 4096, 4, ""), w.node("lost", 4096, 4, ""), w.node("kept", 4096, 4, "")
	am := w.unmanaged("u", "default")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shown := func(want map[creel.NodeID]creel.NodeState) {
		t.Helper()
		w.audit()
		got := map[creel.NodeID]creel.NodeState{}
		for n := range w.m.Nodes {
			got[n.ID] = n.State
		}
		counted := 0
		for _, n := range w.m.Cluster().Nodes {
			counted += n
		}
		if len(got) != len(want) || counted != len(want) {
			t.Fatalf("%v are shown, %d are counted; want %v", got, counted, want)
		}
		for id, state := range want {
			if v, known := w.m.Node(id); !known || v.State != state || got[id] != state {
				t.Fatalf("%v is %v (%v), want %v", id, v.State, known, state)
			}
		}
	}
	pass := func(d time.Duration) {
		w.now = w.now.Add(d)
		w.heartbeat(kept)
		w.m.Tick(w.now)
	}

	// It runs, so its time does not: first it is taken out, by no decommission.
	must(w.m.SetTracked(w.now, off, false))
	must(w.m.SetTracked(w.now, lost, false))
	pass(2 * time.Minute)
	must(w.m.Decommission(w.now, &Decommission{ID: off}))
	shown(map[creel.NodeID]creel.NodeState{
		off: creel.NodeShutdown, lost: creel.NodeRunning, kept: creel.NodeRunning,
	})
	if a := w.m.NodeHeartbeat(w.now, &NodeReport{ID: off}); a.Action != NodeStop {
		t.Errorf("an untracked node is answered %v", a.Action)
	}
	pass(time.Minute - 1)
	must(w.m.Decommission(w.now, &Decommission{ID: off})) // another refresh: its time goes on
	if at := w.m.NextDeadline(); !at.Equal(w.now.Add(1)) {
		t.Errorf("the next deadline is %v, want %v", at, w.now.Add(1))
	}
	pass(1)
	shown(map[creel.NodeID]creel.NodeState{lost: creel.NodeRunning, kept: creel.NodeRunning})
	if err := w.m.Decommission(w.now, &Decommission{ID: off}); err == nil {
		t.Error("a forgotten node was decommissioned")
	}

	// A silent one is lost, and forgotten from then on; on a list again it stays.
	pass(7 * time.Minute)
	shown(map[creel.NodeID]creel.NodeState{lost: creel.NodeLost, kept: creel.NodeRunning})
	must(w.m.SetTracked(w.now, lost, true))
	pass(9 * time.Minute)
	shown(map[creel.NodeID]creel.NodeState{lost: creel.NodeLost, kept: creel.NodeRunning})
	must(w.m.SetTracked(w.now, lost, false))
	pass(time.Minute)
	shown(map[creel.NodeID]creel.NodeState{kept: creel.NodeRunning})

	// One that registers again serves under its old serial number, with a rack of now.
	w.node("off", 8192, 8, "/r2")
	shown(map[creel.NodeID]creel.NodeState{off: creel.NodeRunning, kept: creel.NodeRunning})
	if v, _ := w.m.Node(off); v.Rack != "/r2" || v.Total.MemoryMB != 8192 || len(w.m.nodes.list) != 3 {
		t.Errorf("it came back as %+v, one of %d", v, len(w.m.nodes.list))
	}
	if got := w.asks(am, ask(1, "*", 6144, 4, 1)).Granted; len(got) != 1 || got[0].Node != off {
		t.Errorf("it serves %v", got)
	}
	pass(time.Hour)
	shown(map[creel.NodeID]creel.NodeState{off: creel.NodeLost, kept: creel.NodeRunning})
}

// A refresh that repeats a node's timeout does not extend it, as in Hadoop; another timeout applies from the refresh.
func TestRepeatedDrainKeepsItsDeadline(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.DecommissionAfter, c.NodeExpiry = time.Minute, time.Hour })
	id := w.node("h", 4096, 4, "")
	drain := func(timeout time.Duration) {
		t.Helper()
		if err := w.m.Decommission(w.now, &Decommission{ID: id, Graceful: true, Timeout: timeout}); err != nil {
			t.Fatal(err)
		}
	}
	by := func(want time.Time) {
		t.Helper()
		if v, _ := w.m.Node(id); v.State != creel.NodeDecommissioning || !v.DecommissionBy.Equal(want) {
			t.Fatalf("%v until %v, want %v", v.State, v.DecommissionBy, want)
		}
	}
	drain(0)
	first := w.now.Add(time.Minute)
	by(first)
	w.now = w.now.Add(30 * time.Second)
	drain(0)
	by(first)
	drain(45 * time.Second)
	by(w.now.Add(45 * time.Second))
	if err := w.m.Recommission(w.now, id); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(10 * time.Second)
	drain(45 * time.Second)
	by(w.now.Add(45 * time.Second))
}
