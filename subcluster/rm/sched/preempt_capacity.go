// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/ideal"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// shortfall computes the leaves' shortages and excess relative to their ideal.
func (p *capacityPolicy) shortfall(r *round) {
	part, cfg := r.part, &r.p.cfg
	var allowed, elsewhere amounts.Vec
	total, _ := part.cluster.Total()
	for i := 0; i < part.sizes.Check; i++ {
		allowed.Set(i, int64(cfg.PerRound*float64(total.At(i))))
	}
	part.cluster.main.preempt.takenElsewhere(part, &elsewhere)
	r.Bound(allowed, elsewhere)
	r.p.last = RoundResult{At: part.now, Allowed: allowed}
	if !r.anyBelow() {
		return // no use exceeds the ideal
	}
	t := &ideal.Terms{Sizes: &part.sizes, Total: part.total, Balance: cfg.Balance, Ignored: cfg.IgnoredOver}
	var leaves []idealLeaf
	ideal.Divide(r.idealOf(part.tree.root, &leaves), t)
	for _, x := range leaves {
		r.needsOf(x, t)
		e, has := x.Excess(t) // a queue short of one type may have excess of another
		if !has {
			continue
		}
		b := &preempt.Budget{
			Queue: r.queue(x.q), Hard: e.Hard, Even: e.Even, Types: e.Types, Least: e.Least,
			Strict: cfg.ConservativeDRF,
		}
		// AMs are kept up to the AM share of the queue's guarantee.
		if l := x.q.leaf; x.q.settings.maxAM >= 0 {
			keep := scaleUp(&x.Guarantee, x.q.settings.maxAM, &amounts.Vec{}, part.sizes.N)
			b.AMs = part.sizes.Above(&l.amUsed, &keep)
		}
		r.Lose(b)
	}
	r.p.last.Due = r.Soften(cfg.Termination)
	r.Sort()
}

// takenElsewhere adds the amounts under notice in all partitions but one: a round's limit applies to the cluster.
func (p *Preemption) takenElsewhere(but *partition, sum *amounts.Vec) {
	for _, part := range append([]*partition{p.part}, p.part.others()...) {
		if part == but {
			continue
		}
		for _, c := range part.preempt.claims {
			for _, v := range c.victims {
				sum.Add(&v.Size.V)
			}
		}
	}
}

// anyBelow reports whether a leaf with asks is below its guarantee of some type or, with balancing, has asks at all.
func (r *round) anyBelow() bool {
	p, balance := r.part, r.p.cfg.Balance
	for _, q := range p.tree.all {
		if q.pendingCount > 0 && q.leaf != nil && (balance || !p.sizes.Fits(&q.sized().capacity.entitled, &q.used)) {
			return true
		}
	}
	return false
}

// needsOf records a leaf's shortage: up to its guarantee, and beyond it with balancing.
func (r *round) needsOf(x idealLeaf, t *ideal.Terms) {
	s := x.Short(t)
	if !s.Own.IsZero() {
		r.Needs = append(r.Needs, preempt.Need{
			Queue: r.queue(x.q), Rule: preempt.Guarantee, Rest: s.Own, Types: s.Types,
		})
	}
	if !s.Beyond.IsZero() {
		r.Needs = append(r.Needs, preempt.Need{Queue: r.queue(x.q), Rule: preempt.Balance, Rest: s.Beyond})
	}
}

// idealLeaf is a leaf in the division of package ideal.
type idealLeaf struct {
	*ideal.Queue
	q *Queue
}

// idealOf copies a queue and its descendants for the division, and appends its leaves. It leaves out queues without
// containers and asks.
func (r *round) idealOf(q *Queue, leaves *[]idealLeaf) *ideal.Queue {
	q.sized()
	x := &ideal.Queue{
		Guarantee: q.capacity.entitled, Used: q.used, Most: q.bounds.max,
		Priority: q.spec.Priority, ByPriority: q.ordering.priorities,
	}
	q.bounds.lower(r.part.now, &x.Most)
	if q.leaf != nil {
		x.Pending, x.Asks, x.Kept = q.pending, q.pendingCount > 0, q.spec.PreemptionDisabled
		if x.Asks {
			x.Wanted = r.wanted(q)
			if r.p.cfg.ReservedTwice || r.p.cfg.ReservedFirst {
				x.Wanted.Add(&q.reserved.sum)
			}
		}
		*leaves = append(*leaves, idealLeaf{x, q})
	}
	for _, c := range q.children {
		if c.containers > 0 || c.pendingCount > 0 {
			x.Children = append(x.Children, r.idealOf(c, leaves))
		}
	}
	return x
}

// wanted returns a leaf's asks, up to its user limits.
func (r *round) wanted(q *Queue) amounts.Vec {
	var sum amounts.Vec
	for _, u := range q.leaf.userList {
		if u.apps.Len() == 0 {
			continue
		}
		var want amounts.Vec
		for _, a := range u.apps.Items {
			want.Add(&a.pending)
		}
		if limit, has := u.potential(); has {
			limit = q.part.sizes.Above(&limit, &u.used)
			want.Min(&limit)
		}
		sum.Add(&want)
	}
	return sum
}

// potential returns the limit that a user may reach. User limits grow with the leaf's use, up to this part of its
// guarantee at least; with balancing, of its maximum.
func (u *user) potential() (amounts.Vec, bool) {
	p := u.q.part
	limit, has := p.policy.userLimit(p, u)
	if !has {
		return limit, false
	}
	q := u.q.sized()
	own := q.base()
	base := own
	if p.tree.spec.Preemption.Balance {
		base = &q.bounds.max
	}
	part := max(q.leaf.percent, u.weight/max(q.leaf.weights, u.weight)) * u.weight
	for i := 0; i < p.sizes.N; i++ {
		to := float64(base.At(i)) * part
		if f := q.leaf.factor; f >= 0 {
			to = min(to, float64(own.At(i))*f*u.weight)
		}
		limit.Set(i, max(limit.At(i), int64(to)))
	}
	if k, has := u.q.leaf.caps.Of(u.name); has {
		limit.Min(&k.Amount)
	}
	return limit, true
}

// mayHave reports whether a user may get more, beyond current use.
func (u *user) mayHave() bool {
	limit, has := u.potential()
	if !has {
		return true
	}
	return preempt.BelowLimit(u.q.part.sizes.Check, &u.used, &amounts.Vec{}, &limit)
}
