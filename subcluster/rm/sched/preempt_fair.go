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
		share := &q.shares[set].share
		if q.pendingCount > 0 && q.users.Len() > 0 {
			n := r.starving(q, share)
			if full && n.Rule != 0 {
				r.Needs = append(r.Needs, n)
				continue
			}
		} else {
			delete(r.p.short, q)
		}
		if !full || !r.preemptible(q) {
			continue
		}
		b := &preempt.Budget{Queue: r.queue(q)}
		for i := 0; i < part.sizes.Check; i++ {
			if v := q.used.At(i) - share.At(i); v > 0 {
				b.Hard.Set(i, v)
				b.Types |= 1 << i
			}
		}
		if b.Types != 0 {
			b.Soft, b.AMs = b.Hard, b.Hard
			r.Lose(b)
			due.Add(&b.Hard)
		}
	}
	r.p.last = RoundResult{At: part.now, Due: due, Allowed: due}
	r.Sort()
}

// starving records the start of a leaf's shortage. It returns the amount that the leaf may take now; no rule for none.
func (r *round) starving(q *Queue, share *amounts.Vec) preempt.Need {
	p := r.part
	h := r.p.short[q]
	if h == nil {
		h = &shortage{}
		r.p.short[q] = h
	}
	want := r.wanted(q)
	want.Add(&q.used)
	minTime, fairTime, at := r.timeouts(q)
	var fair amounts.Vec
	for i := 0; i < p.sizes.Check; i++ {
		fair.Set(i, int64(float64(share.At(i))*at))
	}
	least := q.capacity.minimum
	n := preempt.Need{Queue: r.queue(q)}
	for _, rule := range []struct {
		due   *amounts.Vec
		since *int64
		time  time.Duration
		rule  Rule
	}{{&fair, &h.fair, fairTime, preempt.FairShare}, {&least, &h.minimum, minTime, preempt.MinShare}} {
		rule.due.Min(&want)
		lacks := p.sizes.Above(rule.due, &q.used)
		if lacks.IsZero() {
			*rule.since = 0
			continue
		}
		if *rule.since == 0 {
			*rule.since = p.now
		}
		for i := 0; i < p.sizes.Check; i++ {
			if rule.due.At(i) == 0 { // none of this type is promised, so it blocks nothing
				lacks.Set(i, max(0, want.At(i)-q.used.At(i)))
			}
		}
		if p.now-*rule.since >= int64(rule.time) || r.dry && rule.time < math.MaxInt64 {
			n.Rest.Max(&lacks)
			n.Rule = rule.rule
		}
	}
	return n
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
