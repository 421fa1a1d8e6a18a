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
	plan  *subcluster.Plan // of the nodes with label
	queue *subcluster.QueuePlan
	label string
}

// planFor finds the plan of a queue on the nodes that members are chosen for: label says
// which at each of them, by index. A plan speaks of queues that are to follow it. Where
// members would use nodes of different labels, by their queues' defaults, none does: shares
// of different nodes do not compare.
func planFor(view *subcluster.View, q creel.QueuePath, members []int, label func(i int) string) planned {
	if view == nil || view.Plan == nil || len(members) == 0 {
		return planned{}
	}
	on := label(members[0])
	for _, i := range members[1:] {
		if label(i) != on {
			return planned{}
		}
	}
	plan := view.Plan.In(on)
	found := plan.Queue(q)
	if found == nil || found.Optout || len(found.Members) == 0 {
		return planned{}
	}
	return planned{plan, found, on}
}

// speaks reports whether the plan says anything of the queue.
func (p planned) speaks() bool { return p.queue != nil }

// deficit is what the queue is entitled to in a member by the plan, what it uses
// there by the member's last report, and more that is on its way, as shares of
// WholeOf its label; entitled less used is how much it should still get there.
func (p planned) deficit(m *subcluster.Status, more creel.Resource) (entitled, used float64) {
	entitled = p.queue.Given(m.ID)
	if load := p.load(m); load != nil {
		more = more.Add(load.Used)
	}
	return entitled, part(more, p.plan.Total)
}

// load is what a member reports of the queue on the nodes of the plan; nil: nothing.
func (p planned) load(m *subcluster.Status) *subcluster.QueueLoad {
	return m.Load.FindOn(p.queue.Queue, p.label)
}

// WholeOf says what shares of a plan of the nodes with a label are parts of.
func WholeOf(label string) string {
	if label == "" {
		return "the federation"
	}
	return "the federation's nodes of label " + label
}

// containers is how many of a size fit into a share.
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

// part is an amount as a part of a total by its dominant type.
func part(r, total creel.Resource) float64 {
	s := r.Dominant(total)
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return 1
	}
	return s
}
