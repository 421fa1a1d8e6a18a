// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// bounded is a tree of root, root.a with the leaves x and y, and root.b, whose maximum of a is half of one node.
type bounded struct {
	s          *Scheduler
	node       Node
	a, x, y, b *Queue
	apps       int32
}

func newBounded(t *testing.T) *bounded {
	t.Helper()
	leaf := func(name string, percent float64) queues.Queue {
		return queues.Queue{Name: name, Capacity: queues.PercentOf(percent)}
	}
	a := leaf("a", 50)
	a.MaxCapacity = queues.PercentOf(50)
	a.Children = []queues.Queue{leaf("x", 50), leaf("y", 50)}
	spec := queues.Default()
	spec.Root.Children = []queues.Queue{a, leaf("b", 50)}
	s, err := New(&Config{
		MinAllocation: creel.NewResource(1024, 1),
		MaxAllocation: creel.NewResource(16384, 16),
		Queues:        spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &bounded{s: s, a: s.Tree().Find("root.a"), x: s.Tree().Find("root.a.x"), y: s.Tree().Find("root.a.y"), b: s.Tree().Find("root.b")}
	s.AddNode(&f.node, creel.NodeID{Host: "n", Port: 1}, "")
	s.SetTotal(&f.node, &amounts.Vec{Memory: 16384, VCores: 16})
	s.SetUse(&f.node, Open)
	s.Schedule()
	return f
}

// ask returns an outstanding ask of a new application that runs in q.
func (f *bounded) ask(q *Queue, memory int64) *Ask {
	f.apps++
	a := &App{}
	f.s.AddApp(a, creel.ApplicationID{ClusterTimestamp: 1, ID: f.apps}, nil, nil, 0)
	f.s.Enter(a, q, "u")
	f.s.SetOpen(a, true)
	f.s.Line().Activate(a)
	return f.s.Request(a, nil, &Request{Priority: 1, ResourceName: AnyPlace, Count: 1},
		&amounts.Vec{Memory: memory, VCores: 1})
}

func (r *retries) taken() (paths []string) {
	for q, due := r.take(); due; q, due = r.take() {
		paths = append(paths, string(q.path))
	}
	return paths
}

func TestRetriesTakeEachQueueOnce(t *testing.T) {
	f := newBounded(t)
	var r retries
	r.add(f.x)
	r.add(f.b)
	r.add(f.x)
	if got, want := r.taken(), []string{"root.b", "root.a.x"}; !slices.Equal(got, want) {
		t.Errorf("queues to try %q, want %q", got, want)
	}
	r.add(f.x)
	if got, want := r.taken(), []string{"root.a.x"}; !slices.Equal(got, want) {
		t.Errorf("queues to try after the first are taken: %q, want %q", got, want)
	}
}

func TestReleaseRetriesTopmostStoppedQueue(t *testing.T) {
	f := newBounded(t)
	var r retries
	f.a.stopped.limited, f.x.stopped.limited = true, true
	r.freed(f.y)
	if got, want := r.taken(), []string{"root.a"}; !slices.Equal(got, want) {
		t.Errorf("a release in root.a.y retries %q, want %q", got, want)
	}
	r.freed(f.x)
	r.freed(f.x)
	if got, want := r.taken(), []string{"root.a.x"}; !slices.Equal(got, want) {
		t.Errorf("two releases in root.a.x retry %q, want %q", got, want)
	}
	r.freed(f.b)
	if got := r.taken(); got != nil {
		t.Errorf("a release without a stopped queue retries %q", got)
	}
}

func TestParkedQueueIsRetried(t *testing.T) {
	f := newBounded(t)
	var r retries
	r.park(f.x)
	if !f.x.stopped.parked || f.a.stopped.below != 1 {
		t.Fatalf("parked %v, counted %d", f.x.stopped.parked, f.a.stopped.below)
	}
	r.touch(f.y)
	if got := r.taken(); got != nil {
		t.Errorf("a change of root.a.y retries %q", got)
	}
	r.touch(f.x)
	if f.x.stopped.parked || f.a.stopped.below != 0 {
		t.Errorf("after the retry parked %v, counted %d", f.x.stopped.parked, f.a.stopped.below)
	}
	if got, want := r.taken(), []string{"root.a.x"}; !slices.Equal(got, want) {
		t.Errorf("a change of root.a.x retries %q, want %q", got, want)
	}
}

func TestLoosenRetriesEveryStop(t *testing.T) {
	f := newBounded(t)
	w := f.ask(f.x, 1024)
	var r retries
	r.stopUser(w.app)
	r.park(f.b)
	r.watch(f.y)
	f.y.lifetime.removed = true
	var leaves []string
	r.loosen(func(q *Queue) { leaves = append(leaves, string(q.path)) })
	if want := []string{"root.a.x", "root.b"}; !slices.Equal(leaves, want) {
		t.Errorf("leaves %q, want %q", leaves, want)
	}
	if got, want := r.taken(), []string{"root.b", "root.a.x"}; !slices.Equal(got, want) {
		t.Errorf("queues to try %q, want %q", got, want)
	}
	if w.app.user.limited || f.x.leaf.limitedUsers != 0 {
		t.Errorf("limited %v, counted %d", w.app.user.limited, f.x.leaf.limitedUsers)
	}
	r.loosen(func(q *Queue) { t.Errorf("a second time %s", q.path) })
}

func TestStopAtMaximumBlocksLaterAsks(t *testing.T) {
	f := newBounded(t)
	f.s.Serve(f.ask(f.y, 6144).app)
	f.s.Schedule()
	w := f.ask(f.x, 4096)
	f.s.Enroll(w.app)
	r := &f.s.main.retries
	f.s.Serve(w.app)
	if f.a.stopped.blocker != w || w.stops != f.a || r.blocked != 1 {
		t.Fatalf("ask blocks %v, %d queues blocked; want root.a", w.stops, r.blocked)
	}
	later := f.ask(f.y, 1024)
	if q := r.blockedAbove(later.app); q != f.a {
		t.Errorf("later ask is blocked by %v, want root.a", q)
	}
	if !r.endsAt(f.a, f.x) || r.endsAt(f.a, f.y) {
		t.Error("the walk in order must end at root.a.x and only there")
	}
	r.unblock(w)
	if f.a.stopped.blocker != nil || w.stops != nil || r.blocked != 0 {
		t.Errorf("withdrawn ask blocks %v, %d queues blocked", w.stops, r.blocked)
	}
	if got, want := r.taken(), []string{"root.a"}; !slices.Equal(got, want) {
		t.Errorf("withdrawn ask retries %q, want %q", got, want)
	}
}

func TestAskAboveWholeMaximumBlocksNothing(t *testing.T) {
	f := newBounded(t)
	w := f.ask(f.x, 12288)
	f.s.Enroll(w.app)
	f.s.Serve(w.app)
	if !f.a.stopped.limited {
		t.Error("maximum of root.a did not stop the ask")
	}
	if w.stops != nil || f.s.main.retries.blocked != 0 {
		t.Errorf("ask blocks %v", w.stops)
	}
}
