// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// scheduling returns n requests of one call. Each has a tag of its own that no two containers of a node may have:
// fitting ones are placed, and each other one has its own reason.
func scheduling(n int, mb int64) *AllocateRequest {
	r := &AllocateRequest{}
	for i := range n {
		tag := fmt.Sprintf("t%d", i)
		r.Scheduling = append(r.Scheduling, SchedulingAsk{
			Priority: 1, Tags: []string{tag}, Count: 1, Resource: creel.NewResource(mb, 1),
			Constraint: &constraints.Constraint{Targets: []constraints.Target{{Values: []string{tag}}}},
		})
	}
	return r
}

// BenchmarkSchedulingRequests: 1,000 scheduling requests in one call, of which each is placed
// before the next is looked at, all or none of them where there is room; and 10,000.
func BenchmarkSchedulingRequests(b *testing.B) {
	for _, fits := range []bool{true, false} {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("fits=%v/%d", fits, n), func(b *testing.B) {
				var cpu meter
				for b.Loop() {
					w := cluster(b, 500, 128<<10, 128, func(c *Config) {
						twoQueues(c)
						c.Constraints = ConstraintsTried
					})
					x := w.unmanaged("u", "root.a")
					mb := int64(1024)
					if !fits {
						mb = 256 << 10 // larger than a node
					}
					r := scheduling(n, mb)
					cpu.start()
					out := w.allocate(x, *r)
					cpu.stop(n)
					if got := len(out.Granted); got != map[bool]int{true: n}[fits] {
						b.Fatalf("%d granted", got)
					}
				}
				cpu.rate(b, b.N*n, "request")
			})
		}
	}
}
