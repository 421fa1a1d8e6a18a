// SPDX-License-Identifier: Apache-2.0

package sched_test

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// A node with room for three containers, and two queues that share it: one is
// promised three quarters.
func Example() {
	spec := queues.Default()
	spec.Root.Children = []queues.Queue{
		{Name: "batch", Capacity: queues.PercentOf(75)},
		{Name: "adhoc", Capacity: queues.PercentOf(25), UserFactor: 4},
	}
	s, err := sched.New(&sched.Config{
		MinAllocation: creel.NewResource(1024, 1),
		MaxAllocation: creel.NewResource(4096, 4),
		Queues:        spec,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var node sched.Node
	s.AddNode(&node, creel.NodeID{Host: "n1", Port: 1}, "/rack1")

	names := map[*sched.App]string{}
	for i, name := range []string{"batch", "adhoc"} {
		a := &sched.App{}
		names[a] = name
		s.AddApp(a, creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}, nil, nil, 0)
		s.Enter(a, s.Tree().Find(name), "alice")
		s.SetOpen(a, true)
		s.Line().Activate(a)
		size, err := s.Sizes().Normalize(creel.NewResource(1000, 1), a.Queue().Largest())
		if err != nil {
			fmt.Println(err)
			return
		}
		s.Request(a, nil, &sched.Request{Priority: 1, ResourceName: sched.AnyPlace, Count: 5}, &size)
		s.Enroll(a)
	}
	fmt.Println("granted without a node:", len(s.Schedule()))

	total := s.Sizes().Vec(creel.NewResource(4096, 4))
	s.SetTotal(&node, &total)
	s.SetUse(&node, sched.Open)
	for _, g := range s.Schedule() {
		fmt.Println(names[g.App], "gets", g.Size.Resource, "on", g.Node.ID(), "because", g.Reason)
	}
	for a, name := range names {
		if name == "adhoc" {
			fmt.Println(name, "waits:", s.Explain().Why(a).Limit)
		}
	}
	// Output:
	// granted without a node: 0
	// batch gets <memory:1024, vCores:1> on n1:1 because off-switch
	// adhoc gets <memory:1024, vCores:1> on n1:1 because off-switch
	// batch gets <memory:1024, vCores:1> on n1:1 because off-switch
	// batch gets <memory:1024, vCores:1> on n1:1 because off-switch
	// adhoc waits: no node has room
}
