// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// planned is what the rebalancer's plan in a view says of one queue. The zero
// planned says nothing: everything decides as without a plan.
type planned struct {
	plan  *subcluster.Plan
	queue *subcluster.QueuePlan
}

// planFor finds the plan of a queue. It speaks of the default partition only, and
// of queues that are to follow it.
func planFor(view *subcluster.View, q creel.QueuePath, labelled bool) planned {
	if view == nil || view.Plan == nil || labelled {
		return planned{}
	}
	found := view.Plan.Queue(q)
	if found == nil || found.Optout || len(found.Members) == 0 {
		return planned{}
	}
	return planned{view.Plan, found}
}

// speaks reports whether the plan says anything of the queue.
func (p planned) speaks() bool { return p.queue != nil }

// deficit is what the queue is entitled to in a member by the plan, what it uses
// there by the member's last report, and more that is on its way, as shares of the
// federation; entitled less used is how much it should still get there.
func (p planned) deficit(m *subcluster.Status, more creel.Resource) (entitled, used float64) {
	entitled = p.queue.Given(m.ID)
	if load := m.Load.Find(p.queue.Queue); load != nil {
		more = more.Add(load.Used)
	}
	return entitled, part(more, p.plan.Total)
}

// containers is how many of a size fit into a share of the federation.
func (p planned) containers(share float64, size creel.Resource) int64 {
	one := part(size, p.plan.Total)
	switch {
	case share <= 0:
		return 0
	case one <= 0:
		return math.MaxInt32
	}
	// A hair more, so that an exact multiple stays one.
	return int64(min(share/one+1e-6, math.MaxInt32))
}

// part is an amount as a part of the federation by its dominant type.
func part(r, total creel.Resource) float64 {
	s := r.Dominant(total)
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return 1
	}
	return s
}
