// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// withLabel is a ResourceManager of two queues, root.a and root.b, that share its one node, of label gpu.
func withLabel(t *testing.T, exclusive bool) *world {
	w := newWorld(t, func(c *Config) {
		c.Labels = LabelsByCall
		half, all := queues.PercentOf(50), queues.PercentOf(100)
		share := []queues.LabelShare{{Label: "gpu", Capacity: half, MaxCapacity: all}}
		c.Queues.Root.Labels, c.Queues.Root.Children = []string{"*"}, nil
		for _, name := range []string{"a", "b"} {
			c.Queues.Root.Children = append(c.Queues.Root.Children, queues.Queue{Name: name, Capacity: half,
				MaxCapacity: all, UserFactor: 100, Labels: []string{"gpu"}, Shares: share})
		}
	})
	if err := w.m.AddLabels(w.now, []Label{{Name: "gpu", Exclusive: exclusive}}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	n := w.node("n1", 16384, 16, "")
	if err := w.m.ReplaceLabels(w.now, []NodeLabels{{n, []string{"gpu"}}}, false); err != nil {
		t.Fatal(err)
	}
	w.pump()
	return w
}

// When the lease of a cap on nodes of a label is over, nothing more is allocated there, though
// containers end, neither to asks for the label nor to those that borrow its nodes.
func TestLabelCapEndsWithLease(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		w := withLabel(t, exclusive)
		c := capOf(3072, 1, w.now.Add(time.Minute))
		c.Queue, c.Label = "root.a", "gpu"
		w.m.SetQueueCap(w.now, c)
		w.pump()
		app := w.unmanaged("alice", "a")
		wanted := ask(1, "*", 1024, 1, 10)
		if exclusive {
			wanted.Label = LabelExpression{"gpu", true}
		}
		granted := w.asks(app, wanted).Granted
		if len(granted) != 3 {
			t.Fatalf("exclusive %v: %d containers of 1 GiB under a cap of 3 GiB", exclusive, len(granted))
		}
		again := func(k int) int {
			return len(w.release(app, granted[k].ID).Granted) + len(w.allocate(app, AllocateRequest{}).Granted)
		}
		if n := again(0); n != 1 {
			t.Fatalf("exclusive %v: %d containers in the place of one that ended", exclusive, n)
		}
		w.now = w.now.Add(time.Minute)
		if n := again(1); n != 0 {
			t.Fatalf("exclusive %v: %d containers after the lease", exclusive, n)
		}
		w.audit()
	}
}

// The plan's capacities of queues on nodes of a label apply to these nodes alone, and the configured capacities are
// back when the plan's lease is over.
func TestLabelCapacitiesEndWithPlan(t *testing.T) {
	w := withLabel(t, true)
	if err := w.m.SetCapacities(w.now, Capacities{
		Label: "gpu", Version: 7, Until: w.now.Add(time.Minute),
		Queues: []Capacity{{Queue: "root.a", Share: 0.9}, {Queue: "root.b", Share: 0.1}},
	}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	for queue, share := range map[creel.QueuePath]float64{"root.a": 0.9, "root.b": 0.1} {
		if p := w.m.sched.Tree().FindOn(queue, "gpu").Planned(); p == nil || p.Share != share || p.Label != "gpu" {
			t.Errorf("%s has %+v of the nodes, not %v", queue, p, share)
		}
		if p := w.m.sched.Tree().FindOn(queue, "").Planned(); p != nil {
			t.Errorf("%s has %+v of nodes without the label", queue, p)
		}
	}
	w.now = w.now.Add(time.Minute)
	w.m.Tick(w.now)
	w.pump()
	if p := w.m.sched.Tree().FindOn("root.a", "gpu").Planned(); p != nil {
		t.Errorf("after the lease it has %+v", p)
	}
	w.audit()
}
