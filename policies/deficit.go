// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// queuePlan is one queue's part of the rebalancer's plan in a view. The zero value means that no plan applies.
type queuePlan struct {
	plan  *subcluster.Plan // of the nodes with label
	queue *subcluster.QueuePlan
	label string
}

// planFor finds the plan of a queue for a choice among members. label returns the label of the nodes used at a
// member, by index. A plan covers only queues that follow it. If members would use nodes of different labels, by
// their queues' defaults, no plan applies: shares of different nodes are not comparable.
func planFor(view *subcluster.View, q creel.QueuePath, members []int, label func(i int) string) queuePlan {
	if view == nil || view.Plan == nil || len(members) == 0 {
		return queuePlan{}
	}
	on := label(members[0])
	for _, i := range members[1:] {
		if label(i) != on {
			return queuePlan{}
		}
	}
	plan := view.Plan.In(on)
	found := plan.Queue(q)
	if found == nil || found.Optout || len(found.Members) == 0 {
		return queuePlan{}
	}
	return queuePlan{plan, found, on}
}

// speaks reports whether the plan covers the queue.
func (p queuePlan) speaks() bool { return p.queue != nil }

// deficit returns the queue's entitlement in a member, and its use there by the member's last report, plus more that
// was sent since. Both are shares of WholeOf(label). entitled - used is the amount that the queue should still get
// there.
func (p queuePlan) deficit(m *subcluster.Status, more creel.Resource) (entitled, used float64) {
	entitled = p.queue.Given(m.ID)
	if load := p.load(m); load != nil {
		more = more.Add(load.Used)
	}
	return entitled, part(more, p.plan.Total)
}

// load returns the member's report of the queue on the plan's nodes, nil if there is none.
func (p queuePlan) load(m *subcluster.Status) *subcluster.QueueLoad {
	return m.Load.FindOn(p.queue.Queue, p.label)
}

// WholeOf returns the text for the nodes that a plan's shares refer to.
func WholeOf(label string) string {
	if label == "" {
		return "the federation"
	}
	return "the federation's nodes of label " + label
}

// containers returns the number of containers of a size that fit into a share.
func (p queuePlan) containers(share float64, size creel.Resource) int64 {
	one := part(size, p.plan.Total)
	switch {
	case share <= 0:
		return 0
	case one <= 0:
		return math.MaxInt32
	}
	// The small addition keeps exact multiples exact.
	return int64(min(share/one+1e-6, math.MaxInt32))
}

// part returns an amount as a part of a total by its dominant type.
func part(r, total creel.Resource) float64 {
	s := r.Dominant(total)
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return 1
	}
	return s
}
