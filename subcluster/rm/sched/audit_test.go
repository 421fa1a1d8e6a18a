// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// fixture is a node of 8 GiB with two of three containers that an application
// asks for, the third being too large now.
type fixture struct {
	s    *Scheduler
	node Node
	app  App
	size *amounts.Size
}

func newFixture(t *testing.T) *fixture {
	s, err := New(&Config{
		MinAllocation: creel.NewResource(1024, 1),
		MaxAllocation: creel.NewResource(8192, 8),
		Queues:        queues.Default(),
		ReservedNodes: 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{s: s, size: s.Sizes().Of(amounts.Vec{Memory: 3072, VCores: 1})}
	total := amounts.Vec{Memory: 8192, VCores: 8}
	s.AddNode(&f.node, creel.NodeID{Host: "n", Port: 1}, "")
	s.SetTotal(&f.node, &total)
	s.SetUse(&f.node, Open)
	s.AddApp(&f.app, creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, nil, nil, 0)
	s.Enter(&f.app, s.Tree().Find("default"), "u")
	s.SetOpen(&f.app, true)
	s.Line().Activate(&f.app)
	s.Request(&f.app, nil, &Request{Priority: 1, ResourceName: AnyPlace, Count: 3}, &f.size.V)
	s.Enroll(&f.app)
	if n := len(s.Schedule()); n != 2 {
		t.Fatalf("%d grants, want 2", n)
	}
	return f
}

// used returns the sum of the containers, as the owner would.
func (f *fixture) used() amounts.Vec {
	var v amounts.Vec
	v.AddTimes(&f.size.V, 2)
	return v
}

func (f *fixture) holds() map[string]Holding { return map[string]Holding{"": {f.used(), 2}} }

func (f *fixture) full() error {
	c := f.s.Audit()
	c.Node(&f.node, f.used(), false)
	c.App(&f.app, f.holds())
	c.Everything()
	c.Unserved(&f.app)
	return c.Err()
}

// misplace stores the node at the position of other free resources.
func (f *fixture) misplace(free amounts.Vec) {
	f.s.main.nodes.Update(f.node.serial, f.node.rack, &free, true)
}

func (f *fixture) changed(k *Changes) error {
	c := f.s.Audit()
	for _, n := range k.Nodes {
		c.Node(n, f.used(), false)
	}
	for _, a := range k.Apps {
		c.App(a, f.holds())
		c.Around(a, k)
	}
	k.Done()
	return c.Err()
}

// Each audit detects each broken sum, index and order: the audit of changes as soon as an event touches the broken
// part.
func TestAuditsFindErrors(t *testing.T) {
	for name, breach := range map[string]func(f *fixture){
		"a node's free room":     func(f *fixture) { f.node.free.Memory += 1024 },
		"a node's known room":    func(f *fixture) { f.misplace(amounts.Vec{Memory: 7 << 10, VCores: 1}) },
		"the index":              func(f *fixture) { f.misplace(amounts.Vec{Memory: f.node.free.Memory}) },
		"the root's use":         func(f *fixture) { f.s.main.tree.root.used.VCores++ },
		"an application's asks":  func(f *fixture) { f.app.pendingCount++ },
		"a user's use":           func(f *fixture) { f.app.user.used.Memory-- },
		"who waits":              func(f *fixture) { f.app.waits = false },
		"who is in the order":    func(f *fixture) { f.app.queue.users.Remove(f.app.user) },
		"what a queue needs":     func(f *fixture) { f.s.main.tree.root.least = amounts.Unlimited },
		"who may get containers": func(f *fixture) { f.app.open = false },
		"a parked queue": func(f *fixture) {
			f.app.queue.stopped.parked = true
		},
	} {
		f := newFixture(t)
		k := f.s.Watch()
		if err := f.full(); err != nil {
			t.Fatal(err)
		}
		breach(f)
		if f.full() == nil {
			t.Errorf("%s: the full audit saw nothing", name)
		}
		f.s.main.changes.node(&f.node)
		f.s.main.changes.app(&f.app)
		if f.changed(k) == nil {
			t.Errorf("%s: the audit of changes saw nothing", name)
		}
	}
}

// The promise of Schedule is checked: free resources that were offered to no ask are detected.
func TestAuditFindsStarvedAsk(t *testing.T) {
	f := newFixture(t)
	f.node.free.Add(&f.size.V)
	c := f.s.Audit()
	c.Unserved(&f.app)
	if c.Err() == nil {
		t.Error("an ask that fits and was not served is not seen")
	}
}

// An increase waits for room on its node, comes before other asks when there is
// some, and can be taken back.
func TestIncreasesComeFirstWhenRoomAppears(t *testing.T) {
	f := newFixture(t)
	s := f.s
	grow := func() *Increase {
		to := s.Sizes().Of(amounts.Vec{Memory: 6144, VCores: 1})
		return &Increase{App: &f.app, Node: &f.node, From: f.size, To: to}
	}
	withdrawn, x := grow(), grow()
	if s.Increase(withdrawn) || s.Increase(x) {
		t.Fatal("3 GiB more on a node with 2 GiB")
	}
	s.Withdraw(withdrawn)
	s.Release(&f.app, &f.node, f.size)
	got := s.Schedule()
	if len(got) != 1 || got[0].Increase != x {
		t.Fatalf("granted %+v, want the increase that still waits", got)
	}
	if used := f.node.Used(); used.Memory != 6144 {
		t.Errorf("the node uses %v", used)
	}
	c := s.Audit()
	c.Node(&f.node, x.To.V, false)
	c.App(&f.app, map[string]Holding{"": {x.To.V, 1}})
	c.Everything()
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}
