// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"time"

	"github.com/creelrm/creel/subcluster"
)

// A pool is the set of nodes with the same label, or without a label. Queues have entitlements in each pool, and no
// demand moves between pools. So each pool has its own reading and plan, made as if it were the whole federation
// (subcluster.View.In, Tree.In). Members that report no queues of a label are not in its pool; members running
// Hadoop's ResourceManager never do.

// ReadPools reads each pool, nodes without a label first. It passes before and slowStart to Reading.SlowStart.
func ReadPools(
	view *subcluster.View, tree *Tree, before *subcluster.Plan, slowStart time.Duration,
) (pools []*Reading) {
	for _, label := range append([]string{""}, view.Labels()...) {
		of := view.In(label)
		r := Read(of, tree.In(label))
		if r.Label = label; label != "" && len(r.Members) == 0 {
			continue
		}
		r.SlowStart(of, before.In(label), slowStart)
		pools = append(pools, r)
	}
	return pools
}

// PoolsChanged reports whether any pool has Changed.
func PoolsChanged(pools []*Reading, before *subcluster.Plan) bool {
	known := 1
	if before != nil {
		known += len(before.Labels)
	}
	if len(pools) != known {
		return true
	}
	for _, r := range pools {
		if Changed(r, before.In(r.Label)) {
			return true
		}
	}
	return false
}

// PlanPools makes the plan to be published. For each pool it computes a plan, limits its changes from the previous
// one, and adds preemption budgets; now is by the store's clock. If capacities is true, it adds queue capacities in
// the pools for which the tree sets guarantees or weights.
func (p *Planner) PlanPools(
	pools []*Reading, before *subcluster.Plan, s PlanBounds, capacities bool, now time.Time,
) *subcluster.Plan {
	var out *subcluster.Plan
	for _, r := range pools {
		was := before.In(r.Label)
		shares := p.Plan(&r.Input, nil)
		made := Publish(r, shares, was, s)
		if capacities && r.Tree.FollowsCapacities() {
			GiveCapacities(r, shares, made)
		}
		GivePreemption(r, shares, made, was, now)
		if r.Label == "" {
			out = made
			continue
		}
		out.Labels = append(out.Labels, subcluster.LabelPlan{Label: r.Label, Plan: *made})
	}
	return out
}
