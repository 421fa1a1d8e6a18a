// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// oversubscribed lends up to four times a node's size.
func oversubscribed(c *Config) {
	opportune(c)
	c.Opportunistic.MostLent = 4
}

// lendingNode registers a node that lends up to 0.8 of its memory and its vcores.
func (w *world) lendingNode(name string, mb, cores int64) creel.NodeID {
	w.t.Helper()
	id := creel.NodeID{Host: name, Port: 1}
	if r, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: id, HTTPPort: 8042, Resource: creel.NewResource(mb, cores), Overallocation: Overallocation{0.8, 0.8},
	}); err != nil || r.Action != NodeNormal {
		w.t.Fatal(r, err)
	}
	w.pump()
	return id
}

// uses sends a node's heartbeat with its containers running and a measured use of them.
func (w *world) uses(id creel.NodeID, mb int32, cores float32) *NodeAnswer {
	w.t.Helper()
	r := &NodeReport{
		ID: id, ResponseID: w.responses[id],
		Utilization: &NodeUse{ContainersPhysicalMB: mb, ContainersCPU: cores, QueueCapacity: 100},
	}
	for _, c := range w.m.NodeContainers(id) {
		r.Containers = append(r.Containers, ContainerStatus{ID: c.ID, State: creel.ContainerRunning})
	}
	out := w.m.NodeHeartbeat(w.now, r)
	w.responses[id] = out.ResponseID
	w.pump()
	return out
}

// ids copies the ids of an answer's containers; the next call reuses the answer.
func (a *Answer) ids() (out []creel.ContainerID) {
	for i := range a.Granted {
		out = append(out, a.Granted[i].ID)
	}
	return out
}

// types counts an answer's containers by execution type.
func types(a *Answer) (guaranteed, opportunistic int) {
	for _, g := range a.Granted {
		if g.ExecutionType == creel.Opportunistic {
			opportunistic++
		} else {
			guaranteed++
		}
	}
	return guaranteed, opportunistic
}

func (w *world) wantTypes(a *Answer, guaranteed, opportunistic int) {
	w.t.Helper()
	if g, o := types(a); g != guaranteed || o != opportunistic {
		w.t.Fatalf("%d guaranteed and %d opportunistic containers, want %d and %d", g, o, guaranteed, opportunistic)
	}
	w.audit()
}

// A full node whose containers use little lends the rest up to its threshold. A lent container becomes guaranteed when
// a guaranteed one ends; its node learns it, and its AM need not.
func TestFullNodeLendsUnusedResources(t *testing.T) {
	w := newWorld(t, oversubscribed)
	n := w.lendingNode("n1", 10240, 10)
	a := w.unmanaged("u", "default")
	first := w.asks(a, ask(1, "*", 1024, 1, 14))
	running := first.ids()
	w.wantTypes(first, 10, 0)
	w.wantTypes(w.allocate(a, AllocateRequest{}), 0, 0)
	w.uses(n, 10240, 10) // seen running, and busy
	w.wantTypes(w.allocate(a, AllocateRequest{}), 0, 0)
	w.uses(n, 5120, 5) // 3072 MB and 3 vcores below the threshold
	lent := w.allocate(a, AllocateRequest{})
	oldest := lent.ids()[0]
	w.wantTypes(lent, 0, 3)
	w.heartbeat(n) // the lent containers do not run yet: they count with their size
	w.wantTypes(w.allocate(a, AllocateRequest{}), 0, 0)
	w.uses(n, 5120, 5) // now they run
	w.wantTypes(w.allocate(a, AllocateRequest{}), 0, 1)
	if counts, _ := w.m.Opportunistic(); counts.Lent != 4 {
		t.Errorf("%d lent", counts.Lent)
	}
	if v, _ := w.m.Node(n); v.Used.MemoryMB != 10240 {
		t.Errorf("lent containers are charged: the node has %s in use", v.Used)
	}
	w.release(a, running[0])
	answer := w.uses(n, 5120, 5)
	if len(answer.Update) != 1 || answer.Update[0].ID != oldest ||
		answer.Update[0].ExecutionType != creel.Guaranteed || answer.Update[0].Version != 1 {
		t.Fatalf("the node gets the updates %v", answer.Update)
	}
	told := w.allocate(a, AllocateRequest{})
	if len(told.Updated)+len(told.UpdateErrors) != 0 {
		t.Errorf("its AM learns %v, %v", told.Updated, told.UpdateErrors)
	}
	if counts, _ := w.m.Opportunistic(); counts.Promoted != 1 || counts.Containers != 3 {
		t.Errorf("%+v", counts)
	}
	w.audit()
}

// Without the setting, or without an offer of the node, the same events grant nothing beyond its size.
func TestNothingIsLentWithoutSettingOrOffer(t *testing.T) {
	for name, change := range map[string]func(*Config){"setting": opportune, "offer": oversubscribed} {
		w := newWorld(t, change)
		var n creel.NodeID
		if name == "setting" {
			n = w.lendingNode("n1", 4096, 4)
		} else {
			n = w.node("n1", 4096, 4, "")
		}
		a := w.unmanaged("u", "default")
		w.wantTypes(w.asks(a, ask(1, "*", 1024, 1, 8)), 4, 0)
		w.uses(n, 100, 0.1)
		w.uses(n, 100, 0.1)
		if g, o := types(w.allocate(a, AllocateRequest{})); g+o != 0 {
			t.Errorf("without the %s: %d and %d", name, g, o)
		}
	}
}

// Asks that insist on guaranteed containers, queues that opt out, and other sizes than fit get nothing.
func TestOptOutsGetNothingLent(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		oversubscribed(c)
		c.Queues.Root.Children = []queues.Queue{
			{Name: "a", Capacity: queues.PercentOf(50), UserFactor: 10, NoOversubscription: true},
			{Name: "b", Capacity: queues.PercentOf(50), UserFactor: 10},
		}
	})
	n := w.lendingNode("n1", 4096, 4)
	full := w.unmanaged("u", "b")
	w.wantTypes(w.asks(full, ask(1, "*", 1024, 1, 4)), 4, 0)
	w.uses(n, 1024, 1)
	out, insists, big := w.unmanaged("u", "a"), w.unmanaged("u", "b"), w.unmanaged("u", "b")
	w.asks(out, ask(1, "*", 1024, 1, 1))
	k := ask(1, "*", 1024, 1, 1)
	k.EnforceExecution = true
	w.asks(insists, k)
	w.asks(big, ask(1, "*", 3072, 1, 1))
	w.uses(n, 1024, 1)
	for _, id := range []creel.AttemptID{out, insists, big} {
		w.wantTypes(w.allocate(id, AllocateRequest{}), 0, 0)
	}
	k.EnforceExecution = false
	w.asks(insists, k)
	w.uses(n, 1024, 1)
	w.wantTypes(w.allocate(insists, AllocateRequest{}), 0, 1)
}

// labelled is oversubscribed with a queue that may use nodes of the label gpu.
func labelled(c *Config) {
	oversubscribed(c)
	c.Labels = LabelsByCall
	all := queues.PercentOf(100)
	share := []queues.LabelShare{{Label: "gpu", Capacity: all, MaxCapacity: all}}
	c.Queues.Root.Children = []queues.Queue{
		{Name: "default", Capacity: all, MaxCapacity: all, UserFactor: 100, Labels: []string{"gpu"}, Shares: share},
	}
	c.Queues.Root.Labels = []string{queues.AnyLabel}
}

// labels gives a node the label, if it is not empty.
func (w *world) labels(n creel.NodeID, label string) {
	w.t.Helper()
	if err := w.m.AddLabels(w.now, []Label{{Name: "gpu", Exclusive: true}}); err != nil {
		w.t.Fatal(err)
	}
	w.pump()
	if label == "" {
		return
	}
	if err := w.m.ReplaceLabels(w.now, []NodeLabels{{n, []string{label}}}, false); err != nil {
		w.t.Fatal(err)
	}
	w.pump()
}

func labelAsk(label string, count int32) Ask {
	k := ask(1, "*", 1024, 1, count)
	if label != "" {
		k.Label = LabelExpression{label, true}
	}
	return k
}

// A node with a label lends to asks that name the label, and to no others. The lent container has the label and becomes
// guaranteed on its node.
func TestLabelledNodeLendsToAsksOfItsLabel(t *testing.T) {
	w := newWorld(t, labelled)
	n := w.lendingNode("n1", 4096, 4)
	w.labels(n, "gpu")
	a, other := w.unmanaged("u", "default"), w.unmanaged("v", "default")
	full := w.asks(a, labelAsk("gpu", 6)).ids()
	w.asks(other, labelAsk("", 6))
	w.uses(n, 4096, 4)
	w.uses(n, 1024, 1)
	w.wantTypes(w.allocate(other, AllocateRequest{}), 0, 0)
	lent := w.allocate(a, AllocateRequest{})
	w.wantTypes(lent, 0, 2)
	if id := lent.ids()[0]; w.m.apps.container(id).rare().Label != "gpu" {
		t.Errorf("the lent container has the label %q", w.m.apps.container(id).rare().Label)
	}
	w.uses(n, 1024, 1)
	w.release(a, full[0])
	if out := w.uses(n, 1024, 1); len(out.Update) != 1 || out.Update[0].ExecutionType != creel.Guaranteed {
		t.Errorf("the node gets the updates %v", out.Update)
	}
	w.audit()
}

// The lent amount is divided in proportion to the queues' parts of the cluster.
func TestLentAmountFollowsQueueShares(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		oversubscribed(c)
		c.Queues.Root.Children = []queues.Queue{
			{Name: "a", Capacity: queues.PercentOf(75), UserFactor: 10},
			{Name: "b", Capacity: queues.PercentOf(25)},
		}
	})
	n := w.lendingNode("n1", 20480, 20)
	full := w.unmanaged("u", "a")
	w.asks(full, ask(1, "*", 1024, 1, 20))
	w.uses(n, 4096, 4)
	a, b := w.unmanaged("u", "a"), w.unmanaged("u", "b")
	w.asks(b, ask(1, "*", 1024, 1, 20))
	w.asks(a, ask(1, "*", 1024, 1, 20))
	w.uses(n, 4096, 4)
	w.wantTypes(w.allocate(a, AllocateRequest{}), 0, 9)
	w.wantTypes(w.allocate(b, AllocateRequest{}), 0, 3)
}

// A lent container that ends before its AM has received it becomes an ask for a guaranteed one again.
func TestUnreceivedLentContainerIsAskedForAgain(t *testing.T) {
	w := newWorld(t, oversubscribed)
	n := w.lendingNode("n1", 2048, 2)
	a := w.unmanaged("u", "default")
	w.wantTypes(w.asks(a, ask(1, "*", 1024, 1, 3)), 2, 0)
	w.uses(n, 500, 0.5)
	w.m.UnregisterNode(w.now, n)
	w.lendingNode("n2", 8192, 8)
	w.wantTypes(w.allocate(a, AllocateRequest{}), 1, 0)
}

// An AM may promote a lent container itself. It then learns of the promotion, and its node learns it from the AM.
func TestAMPromotesLentContainer(t *testing.T) {
	w := newWorld(t, oversubscribed)
	n := w.lendingNode("n1", 4096, 4)
	a := w.unmanaged("u", "default")
	running := w.asks(a, ask(1, "*", 1024, 1, 5)).ids()
	w.uses(n, 1024, 1)
	lent := w.allocate(a, AllocateRequest{})
	borrowed := lent.ids()[0]
	w.wantTypes(lent, 0, 1)
	w.uses(n, 1024, 1)
	out := w.allocate(a, AllocateRequest{Updates: []Update{{Container: borrowed, Kind: Promote}}})
	if len(out.UpdateErrors) != 0 {
		t.Fatalf("errors %v", out.UpdateErrors)
	}
	out = w.release(a, running[0])
	if len(out.Updated) != 1 || out.Updated[0].Grant.ExecutionType != creel.Guaranteed {
		t.Errorf("the AM learns %v", out.Updated)
	}
	w.audit()
}

// An AM may ask for the promotion before the node has reported the container. The node's report then requests no
// second one, which would charge twice, and would stay after the container's end.
func TestAMPromotesLentContainerBeforeItsNodeReports(t *testing.T) {
	w := newWorld(t, oversubscribed)
	n := w.lendingNode("n1", 4096, 4)
	a := w.unmanaged("u", "default")
	running := w.asks(a, ask(1, "*", 1024, 1, 5)).ids()
	w.uses(n, 1024, 1)
	lent := w.allocate(a, AllocateRequest{})
	borrowed := lent.ids()[0]
	w.wantTypes(lent, 0, 1)
	w.allocate(a, AllocateRequest{Updates: []Update{{Container: borrowed, Kind: Promote}}})
	w.uses(n, 1024, 1)
	w.release(a, borrowed)
	w.release(a, running[0])
	w.audit()
	if v, _ := w.m.Node(n); v.Used.MemoryMB != 3072 {
		t.Errorf("three containers of 1024 MB are charged as %s", v.Used)
	}
}

// A promotion whose answer is lost reaches the node after it has registered again.
func TestLostPromotionIsSentAgain(t *testing.T) {
	w := newWorld(t, oversubscribed)
	n := w.lendingNode("n1", 4096, 4)
	a := w.unmanaged("u", "default")
	running := w.asks(a, ask(1, "*", 1024, 1, 5)).ids()
	w.uses(n, 1024, 1)
	lent := w.allocate(a, AllocateRequest{}).Granted[0].ID
	w.uses(n, 1024, 1)
	w.release(a, running[0])
	w.uses(n, 1024, 1) // this answer is lost
	r := &RegisterNode{
		ID: n, HTTPPort: 8042, Resource: creel.NewResource(4096, 4), Overallocation: Overallocation{0.8, 0.8},
	}
	for _, c := range w.m.NodeContainers(n) {
		k := NodeContainer{
			ID: c.ID, State: creel.ContainerRunning, Resource: c.Resource, ExecutionType: c.ExecutionType,
		}
		if c.ID == lent {
			k.ExecutionType = creel.Opportunistic
		}
		r.Containers = append(r.Containers, k)
	}
	if _, err := w.m.RegisterNode(w.now, r); err != nil {
		t.Fatal(err)
	}
	w.responses[n] = 0
	got := w.uses(n, 1024, 1).Update
	if !slices.ContainsFunc(got, func(g Grant) bool { return g.ID == lent && g.ExecutionType == creel.Guaranteed }) {
		t.Errorf("after the registration the node gets %v", got)
	}
}

// Whatever a node reports, no more is granted than asked, and nodes and queues are charged for guaranteed containers
// alone.
func TestLendingKeepsGuarantees(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		label := rapid.SampledFrom([]string{"", "gpu"}).Draw(rt, "label")
		w := newWorld(t, labelled)
		n := w.lendingNode("n1", 8192, 8)
		w.labels(n, label)
		a := w.unmanaged("u", "default")
		asked, got := 0, 0
		var held []creel.ContainerID
		receive := func(out *Answer) {
			got += len(out.Granted)
			for _, g := range out.Granted {
				held = append(held, g.ID)
			}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			w.now = w.now.Add(time.Second)
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				receive(w.allocate(a, AllocateRequest{}))
				asked, got = rapid.IntRange(0, 12).Draw(rt, "asked"), 0
				receive(w.asks(a, labelAsk(label, int32(asked))))
			case 1:
				w.uses(n, rapid.Int32Range(0, 9000).Draw(rt, "mb"), float32(rapid.IntRange(0, 9).Draw(rt, "cores")))
			case 2:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(rt, "released")
					id := held[i]
					held = slices.Delete(held, i, i+1)
					receive(w.release(a, id))
				}
			}
			if got > asked {
				rt.Fatalf("%d granted of %d", got, asked)
			}
			if err := w.m.Audit(); err != nil {
				rt.Fatal(err)
			}
			if v, _ := w.m.Node(n); v.Used.MemoryMB > 8192 {
				rt.Fatalf("guaranteed containers have %s", v.Used)
			}
		}
	})
}

// Equal events make equal machines, with lending too.
func TestLendingIsRepeatable(t *testing.T) {
	run := func() []byte {
		w := newWorld(t, oversubscribed)
		n := w.lendingNode("n1", 8192, 8)
		for range 4 {
			w.asks(w.unmanaged("u", "default"), ask(1, "*", 1024, 1, 6))
		}
		for range 5 {
			w.uses(n, 2048, 2)
		}
		return w.m.AppendState(nil)
	}
	if first := run(); !bytes.Equal(first, run()) {
		t.Error("two equal runs differ")
	}
}
