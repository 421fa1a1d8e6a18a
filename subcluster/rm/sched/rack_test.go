// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// A node in use moves to a rack with an index, before or after a request for that rack.
func TestAskFindsNodeThatJoinedLargeRack(t *testing.T) {
	for _, first := range []string{"move", "request"} {
		t.Run(first+" first", func(t *testing.T) {
			s, err := New(&Config{
				MinAllocation: creel.NewResource(1024, 1), MaxAllocation: creel.NewResource(8192, 8), Queues: queues.Default(),
			})
			if err != nil {
				t.Fatal(err)
			}
			add := func(host, rack string, free amounts.Vec) *Node {
				n := &Node{}
				s.AddNode(n, creel.NodeID{Host: host, Port: 1}, rack)
				s.SetTotal(n, &free)
				s.SetUse(n, Open)
				return n
			}
			for i := range 64 {
				add(fmt.Sprint("full", i), "/large", amounts.Vec{})
			}
			moved := add("moved", "/small", amounts.Vec{Memory: 4096, VCores: 4})
			a := &App{}
			s.AddApp(a, creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, nil, nil, 0)
			s.Enter(a, s.Tree().Find("default"), "u")
			s.SetOpen(a, true)
			s.Line().Activate(a)
			s.Schedule()

			if first == "move" {
				s.SetRack(moved, "/large")
			}
			size := amounts.Vec{Memory: 1024, VCores: 1}
			any := s.Request(a, nil, &Request{Priority: 1, Count: 1, StrictLocality: true}, &size)
			s.Request(a, any, &Request{Priority: 1, ResourceName: "/large", Count: 1}, &size)
			s.Serve(a)
			got := s.Schedule()
			if first == "request" {
				if len(got) > 0 {
					t.Fatalf("granted %+v on full nodes", got)
				}
				s.SetRack(moved, "/large")
				got = s.Schedule()
			}
			if len(got) != 1 || got[0].Node != moved || got[0].Reason != RackLocal {
				t.Errorf("granted %+v, want a container on the moved node", got)
			}
		})
	}
}
