// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// within takes containers back between users and applications of one leaf, if intra-queue preemption is on.
func (r *round) within() {
	p, cfg := r.part, &r.p.cfg
	if !cfg.IntraQueue || !p.policy.within {
		return
	}
	for _, q := range p.tree.all {
		if q.leaf != nil && !q.lifetime.removed && q.pendingCount > 0 && q.users.Len() > 0 && r.looksWithin(q) {
			r.withinLeaf(q)
		}
	}
}

// looksWithin reports whether preemption within the leaf is on, and the leaf uses enough of its guarantee.
func (r *round) looksWithin(q *Queue) bool {
	if q.keepsWithin() {
		return false
	}
	p, cfg := r.part, &r.p.cfg
	g := &q.sized().capacity.guaranteed
	return p.sizes.Dominant(&q.used, &p.total) >= cfg.IntraFrom*p.sizes.Dominant(g, &p.total)
}

// withinLeaf serves the waiting applications, in the order of service, from applications of lower priority, or of
// users above the user limit.
func (r *round) withinLeaf(q *Queue) {
	p, cfg := r.part, &r.p.cfg
	var under amounts.Vec
	for _, c := range r.p.claims {
		if c.queue == q && (c.rule.Within()) {
			for _, v := range c.victims {
				under.Add(&v.Size.V)
			}
		}
	}
	var rest amounts.Vec // rest of the limit under notice within the leaf
	for i := 0; i < p.sizes.Check; i++ {
		rest.Set(i, int64(cfg.IntraMost*float64(q.capacity.guaranteed.At(i)))-under.At(i))
	}
	first, second := preempt.UserLimit, preempt.AppPriority
	if cfg.IntraFirst == queues.IntraPriorityFirst {
		first, second = second, first
	}
	for _, rule := range []preempt.Rule{first, second} {
		for _, a := range q.leaf.waitingApps() {
			r.withinFor(q, a, rule, &rest, &under)
		}
	}
}

// withinFor serves one application by one rule.
func (r *round) withinFor(q *Queue, a *App, rule Rule, rest, under *amounts.Vec) {
	p, cfg := r.part, &r.p.cfg
	var budgets []*preempt.Budget
	var losers []*App
	byUser := map[*user]*preempt.Budget{}
	r.p.from.Apps(func(x *App) bool {
		if x.queue != q || !x.inQueue || x == a || x.containers == 0 {
			return true
		}
		b := r.loses(x, a, rule, byUser)
		if b != nil {
			b.Soft, b.Strict = *rest, cfg.IntraConservativeDRF
			losers, budgets = append(losers, x), append(budgets, b)
		}
		return true
	})
	if len(losers) == 0 {
		return
	}
	order := map[*App]*preempt.Budget{}
	for i, x := range losers {
		order[x] = budgets[i]
	}
	servedLast(losers)
	if q.ordering.sharesUsers && cfg.IntraFirst == queues.IntraUserLimitFirst {
		// Users share a fair leaf: the largest user loses first, even with many applications.
		slices.SortStableFunc(losers, func(x, y *App) int {
			return cmp.Compare(y.user.usesBesideAMs(), x.user.usesBesideAMs())
		})
	}
	offers := r.Offers(q.losesLeast(), &preempt.Memory{})
	for _, x := range losers {
		r.offer(offers, x, order[x], q.losesLeast())
	}
	n := preempt.Need{Queue: r.queue(q), Rule: rule, Rest: a.pending, Asks: r.asksOf(q, a)}
	if rule == preempt.UserLimit {
		limit, _ := p.policy.userLimit(p, a.user)
		n.Rest = p.sizes.Above(&limit, &a.user.used)
	}
	// The limit is the leaf's, for all its losing applications together. If nothing is under notice one container may
	// exceed it; otherwise a small leaf would never lose anything.
	bound := *rest
	if under.IsZero() {
		for i := 0; i < p.sizes.Check; i++ {
			bound.Set(i, max(bound.At(i), 1))
		}
	}
	n.Rest.Min(&bound)
	for _, c := range r.ClaimWithin(&n, offers) {
		for i := range c.Victims {
			rest.Sub(&c.Victims[i].Size.V)
			under.Add(&c.Victims[i].Size.V)
		}
	}
}

// asksOf returns the waiting asks of one application of a leaf.
func (r *round) asksOf(q *Queue, a *App) (list []*preempt.Ask) {
	for _, w := range r.waiting(q) {
		if w.App == r.app(a) {
			list = append(list, w)
		}
	}
	return list
}

// usesBesideAMs returns a user's share of the cluster without AMs.
func (u *user) usesBesideAMs() float64 {
	p := u.q.part
	v := p.sizes.Above(&u.used, &u.amUsed)
	return p.sizes.Dominant(&v, &p.total)
}

// loses returns the amount that an application may lose to another of its leaf by a rule, nil for nothing.
func (r *round) loses(x, a *App, rule Rule, byUser map[*user]*preempt.Budget) *preempt.Budget {
	p := r.part
	b := &preempt.Budget{Queue: r.queue(x.queue)}
	switch {
	case rule == preempt.UserLimit && x.user == a.user,
		rule == preempt.AppPriority && x.priority >= a.priority,
		x.user != a.user && !a.user.mayHave():
		return nil
	case rule == preempt.AppPriority && r.p.cfg.IntraFirst == queues.IntraPriorityFirst:
		b.Hard = p.sizes.Above(&x.used, &r.app(x).Lost)
	default: // with user limits first, no user falls below the limit for a priority either
		if of := byUser[x.user]; of != nil {
			return of
		}
		limit, _ := p.policy.userLimit(p, x.user)
		limit.Add(&r.user(x.user).Lost)
		b.Hard = p.sizes.Above(&x.user.used, &limit)
		byUser[x.user] = b
	}
	for i := 0; i < p.sizes.Check; i++ {
		if b.Hard.At(i) > 0 {
			b.Types |= 1 << i
		}
	}
	if b.Types == 0 {
		return nil
	}
	return b
}

// stillWithin reports whether a claim within a leaf still follows from its rule.
func (r *round) stillWithin(c *claim) bool {
	if !r.p.cfg.IntraQueue || !r.looksWithin(c.queue) {
		return false
	}
	byUser := map[*user]*preempt.Budget{}
	return r.RenewWithin(r.claim(c), func(x *preempt.App) *preempt.Budget {
		return r.loses(x.Owner.(*App), c.app, c.rule, byUser)
	})
}

// keepsWithin reports whether preemption within the leaf is disabled. The leaf inherits these settings.
func (q *Queue) keepsWithin() bool {
	return q.spec.IntraPreemptionDisabled || q.spec.PreemptionDisabled
}
