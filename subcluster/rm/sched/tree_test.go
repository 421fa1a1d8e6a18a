// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// fairTree returns a specification of FairScheduler, which creates queues on demand below any parent.
func fairTree(children ...queues.Queue) queues.Spec {
	spec := queues.Default()
	spec.Scheduler = queues.FairScheduler
	spec.Root.Children = children
	return spec
}

func share(name string, children ...queues.Queue) queues.Queue {
	return queues.Queue{Name: name, Capacity: queues.WeightOf(1), Children: children}
}

func newWithTree(t *testing.T, spec queues.Spec) *Scheduler {
	t.Helper()
	s, err := New(&Config{
		MinAllocation: creel.NewResource(1024, 1),
		MaxAllocation: creel.NewResource(8192, 8),
		Queues:        spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func paths(list []*Queue) (out []creel.QueuePath) {
	for _, q := range list {
		out = append(out, q.path)
	}
	return out
}

func expectPaths(t *testing.T, what string, got []*Queue, want ...creel.QueuePath) {
	t.Helper()
	if list := paths(got); !slices.Equal(list, want) {
		t.Errorf("%s: %v, want %v", what, list, want)
	}
}

func TestTreeFindsQueuesByPathAndUniqueName(t *testing.T) {
	tree := newWithTree(t, fairTree(share("a", share("x"), share("y")), share("b", share("x")))).Tree()
	for name, want := range map[string]creel.QueuePath{
		"root": "root", "root.a.x": "root.a.x", "y": "root.a.y", "a": "root.a", "x": "", "c": "", "root.c": "",
	} {
		var got creel.QueuePath
		if q := tree.Find(name); q != nil {
			got = q.Path()
		}
		if got != want {
			t.Errorf("%s: found %q, want %q", name, got, want)
		}
	}
	if tree.Leaf("root.a") != nil || tree.Leaf("y") != nil || tree.Leaf("root.a.y") == nil {
		t.Error("Leaf takes other names than full paths of leaves")
	}
}

func TestTreeRemovesMadeParentsWithLastChild(t *testing.T) {
	tree := newWithTree(t, fairTree(share("a", share("x")))).Tree()
	x, y := tree.create("root.a.b.c.x"), tree.create("root.a.b.y")
	if x == nil || y == nil || tree.create("root.a.b.y") != nil || tree.create("other.x") != tree.Find("root.other.x") {
		t.Fatal("queues were not created, or created twice")
	}
	before := tree.Queues()
	expectPaths(t, "all", before, "root", "root.a", "root.a.x", "root.a.b", "root.a.b.c", "root.a.b.c.x", "root.a.b.y",
		"root.other", "root.other.x")
	if tree.Find("x") != nil {
		t.Error("an ambiguous name was found")
	}
	expectPaths(t, "first", tree.remove(x), "root.a.b.c.x", "root.a.b.c")
	expectPaths(t, "second", tree.remove(y), "root.a.b.y", "root.a.b")
	if len(before) != 9 || len(tree.Queues()) != 5 || tree.Find("root.a.b") != nil || tree.Find("y") != nil {
		t.Errorf("left: %v", paths(tree.Queues()))
	}
}

func TestMergeReturnsQueuesOutsideTheSpecification(t *testing.T) {
	tree := newWithTree(t, fairTree(share("a", share("x")), share("b", share("y")))).Tree()
	kept, x := tree.create("root.b.made"), tree.Find("root.a.x")
	x.tally.granted = 3
	spec := fairTree(share("c"), share("b", share("y")))
	if err := tree.CheckReload(&spec); err != nil {
		t.Fatal(err)
	}
	expectPaths(t, "removed", tree.merge(&spec), "root.a", "root.a.x")
	expectPaths(t, "all", tree.Queues(), "root", "root.c", "root.b", "root.b.y", "root.b.made")
	if tree.Find("root.b.made") != kept || !kept.lifetime.dynamic || tree.Find("x") != nil {
		t.Error("the queue created on demand did not stay, or a removed one is found")
	}
	if got := tree.Root().tally.granted; got != 3 {
		t.Errorf("the root has %d of the removed queue's 3 containers", got)
	}
}

func TestMirrorAddsMadeQueuesAndTheirParents(t *testing.T) {
	spec := queues.Default()
	spec.Root.AutoCreate = &queues.AutoCreate{Depth: 2}
	spec.Root.Children = []queues.Queue{share("a")}
	s := newWithTree(t, spec)
	q := s.Tree().create("root.b.c")
	if q == nil {
		t.Fatal("the queue was not created")
	}
	if err := s.SetPartitions([]Partition{{Label: "gpu"}}); err != nil {
		t.Fatal(err)
	}
	p := s.partition("gpu")
	c := s.Tree().FindOn("root.b.c", "gpu")
	if c == nil || c.part != p || !c.lifetime.dynamic || !c.parent.lifetime.dynamic {
		t.Fatalf("the partition's tree has %v", paths(p.tree.all))
	}
	if c, added := p.tree.mirror(q); added || c.path != q.path {
		t.Error("a queue was added twice")
	}
	s.main.removeQueue(q)
	expectPaths(t, "partition", p.tree.Queues(), "root", "root.a")
	expectPaths(t, "default", s.Tree().Queues(), "root", "root.a")
}

func TestEmptyMadeQueueEndsAtItsTimeout(t *testing.T) {
	s := newWithTree(t, fairTree(share("a", share("x"))))
	q := s.CreateQueue("root.a.made")
	s.main.idle(q)
	s.At(int64(5*time.Minute) - 1)
	if s.Tick(); s.Tree().Find("made") != q {
		t.Fatal("the queue ended too early")
	}
	s.At(int64(5 * time.Minute))
	if s.Tick(); s.Tree().Find("made") != nil || s.NextDeadline() != 0 {
		t.Error("the queue stayed")
	}
}
