// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// shortfall finds the leaves below their minimum or fair share for longer than their timeouts. It also finds those
// above their fair share. It applies while the cluster's use is above the threshold.
func (p *fairPolicy) shortfall(r *round) {
	part, cfg := r.part, &r.p.cfg
	set := inDecisions
	if r.dry {
		set = inViews // a query changes no decision
	}
	part.tree.refreshShares(set)
	full := part.sizes.Dominant(&part.tree.root.used, &part.total) > cfg.Utilization
	var due amounts.Vec
	for _, q := range part.tree.all {
		if q.leaf == nil || q.lifetime.removed {
			continue
		}
		q.sized()
		leaf := r.fairLeaf(q, set)
		if q.pendingCount > 0 && q.users.Len() > 0 {
			if n := leaf.Short(&r.Terms, r.since(q), r.dry); full && n.Rule != 0 {
				n.Queue = r.queue(q)
				r.Needs = append(r.Needs, n)
				continue
			}
		} else {
			delete(r.p.short, q)
		}
		if !full || !r.preemptible(q) {
			continue
		}
		if b := leaf.Excess(&r.Terms); b != nil {
			b.Queue = r.queue(q)
			r.Lose(b)
			due.Add(&b.Hard)
		}
	}
	r.p.last = RoundResult{At: part.now, Due: due, Allowed: due}
	r.Sort()
}

// since returns the starts of a leaf's shortages.
func (r *round) since(q *Queue) *preempt.Shortage {
	h := r.p.short[q]
	if h == nil {
		h = &preempt.Shortage{}
		r.p.short[q] = h
	}
	return h
}

// fairLeaf copies a leaf with its share.
func (r *round) fairLeaf(q *Queue, set shareSet) preempt.FairLeaf {
	x := preempt.FairLeaf{Used: q.used, Share: q.shares[set].share, Minimum: q.capacity.minimum}
	if q.pendingCount > 0 && q.users.Len() > 0 {
		x.Wanted = r.wanted(q)
		x.MinimumTime, x.ShareTime, x.Below = r.timeouts(q)
	}
	return x
}

// timeouts returns each timeout from the queue or its nearest ancestor that sets it.
func (r *round) timeouts(q *Queue) (minimum, fair time.Duration, at float64) {
	for ; q != nil; q = q.parent {
		if minimum == 0 {
			minimum = q.spec.MinSharePreemption
		}
		if fair == 0 {
			fair = q.spec.FairSharePreemption
		}
		if at == 0 {
			at = q.spec.FairSharePreemptionAt
		}
	}
	if minimum == 0 {
		minimum = math.MaxInt64
	}
	if fair == 0 {
		fair = math.MaxInt64
	}
	if at == 0 {
		at = 0.5
	}
	return minimum, fair, at
}

// preemptible reports whether neither the queue nor an ancestor forbids preemption.
func (r *round) preemptible(q *Queue) bool {
	for ; q != nil; q = q.parent {
		if q.spec.PreemptionDisabled {
			return false
		}
	}
	return true
}
