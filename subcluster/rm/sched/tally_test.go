// SPDX-License-Identifier: Apache-2.0

package sched_test

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

func TestRemovedQueueKeepsItsCountsAbove(t *testing.T) {
	tree := func(state creel.QueueState, leaves ...queues.Queue) queues.Spec {
		spec := queues.Default()
		b := queues.Queue{Name: "b", Capacity: queues.PercentOf(50), State: state, Children: leaves}
		spec.Root.Children = []queues.Queue{{Name: "a", Capacity: queues.PercentOf(50)}, b}
		return spec
	}
	leaf := queues.Queue{Name: "c", Capacity: queues.PercentOf(100), UserFactor: 10}
	s, err := sched.New(&sched.Config{
		MinAllocation: creel.NewResource(1024, 1),
		MaxAllocation: creel.NewResource(4096, 4),
		Queues:        tree(creel.QueueRunning, leaf),
	})
	if err != nil {
		t.Fatal(err)
	}
	var node sched.Node
	s.AddNode(&node, creel.NodeID{Host: "n1", Port: 1}, "/rack1")
	total := s.Sizes().Vec(creel.NewResource(8192, 8))
	s.SetTotal(&node, &total)
	s.SetUse(&node, sched.Open)
	a := &sched.App{}
	s.AddApp(a, creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, nil, nil, 0)
	s.Enter(a, s.Tree().Find("c"), "alice")
	s.SetOpen(a, true)
	s.Line().Activate(a)
	size, err := s.Sizes().Normalize(creel.NewResource(1024, 1), a.Queue().Largest())
	if err != nil {
		t.Fatal(err)
	}
	for priority, place := range map[int32]string{1: "n1", 2: "/rack1", 3: sched.AnyPlace} {
		for _, name := range []string{place, "/rack1", sched.AnyPlace} {
			s.Request(a, nil, &sched.Request{Priority: priority, ResourceName: name, Count: 1}, &size)
		}
	}
	s.Request(a, nil, &sched.Request{Priority: 3, ResourceName: "/rack1", Count: 0}, &size)
	s.Enroll(a)
	grants := s.Schedule()
	check := func(path string, granted, released, node, rack, any int64) {
		t.Helper()
		v := s.Explain().View(s.Tree().Find(path))
		if v.ContainersAllocated != granted || v.ContainersReleased != released ||
			v.NodeLocal != node || v.RackLocal != rack || v.OffSwitch != any {
			t.Errorf("%s: %d allocated, %d released, local to node %d, to rack %d, off-switch %d", path,
				v.ContainersAllocated, v.ContainersReleased, v.NodeLocal, v.RackLocal, v.OffSwitch)
		}
	}
	for _, path := range []string{"root.b.c", "root.b", "root"} {
		check(path, 3, 0, 1, 1, 1)
	}
	check("root.a", 0, 0, 0, 0, 0)
	for _, g := range grants {
		s.Release(a, &node, g.Size)
	}
	s.Leave(a)
	stopped := leaf
	stopped.State = creel.QueueStopped
	for _, spec := range []queues.Spec{tree(creel.QueueStopped, stopped), tree(creel.QueueStopped)} {
		if err := s.Reload(spec); err != nil {
			t.Fatal(err)
		}
	}
	if s.Tree().Find("root.b.c") != nil {
		t.Fatal("the queue is still there")
	}
	check("root.b", 3, 3, 1, 1, 1)
	spec := tree(creel.QueueRunning)
	spec.Root.Children = []queues.Queue{{Name: "a", Capacity: queues.PercentOf(100)}}
	if err := s.Reload(spec); err != nil {
		t.Fatal(err)
	}
	check("root", 3, 3, 1, 1, 1)
}
