// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"time"

	"github.com/creelrm/creel/subcluster"
)

// A pool of nodes is the nodes without a label, or those with one. Queues have entitlements in each pool, of its
// size, and nothing moves between pools. So each has a reading and a plan of its own, made as if the federation were
// nothing else (subcluster.View.In, Tree.In). Members that report no queues of a label (those
// that run Hadoop's ResourceManager) are not in its pool.

// ReadPools reads each pool, nodes without a label first; before and slowStart as of Reading.SlowStart.
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

// PoolsChanged is Changed of any pool.
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

// PlanPools makes the published plan, for each pool: its plan, limited in its changes from the previous one, and
// preemption budgets at now of the store's clock. With capacities those of queues follow it in the pools in which the
// tree sets shares of queues.
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
