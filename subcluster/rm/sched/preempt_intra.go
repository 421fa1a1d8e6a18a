// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
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
		if c.queue == q && (c.rule == RuleUserLimit || c.rule == RuleAppPriority) {
			for _, v := range c.victims {
				under.Add(&v.Size.V)
			}
		}
	}
	var rest amounts.Vec // rest of the limit under notice within the leaf
	for i := 0; i < p.sizes.Check; i++ {
		rest.Set(i, int64(cfg.IntraMost*float64(q.capacity.guaranteed.At(i)))-under.At(i))
	}
	first, second := RuleUserLimit, RuleAppPriority
	if cfg.IntraFirst == queues.IntraPriorityFirst {
		first, second = second, first
	}
	for _, rule := range []Rule{first, second} {
		for _, a := range q.leaf.waitingApps() {
			r.withinFor(q, a, rule, &rest, &under)
		}
	}
}

// withinFor serves one application by one rule.
func (r *round) withinFor(q *Queue, a *App, rule Rule, rest, under *amounts.Vec) {
	p, cfg := r.part, &r.p.cfg
	var budgets []*budget
	var losers []*App
	byUser := map[*user]*budget{}
	r.p.from.Apps(func(x *App) bool {
		if x.queue != q || !x.inQueue || x == a || x.containers == 0 {
			return true
		}
		b := r.loses(x, a, rule, byUser)
		if b != nil {
			b.soft, b.strict = *rest, cfg.IntraConservativeDRF
			losers, budgets = append(losers, x), append(budgets, b)
		}
		return true
	})
	if len(losers) == 0 {
		return
	}
	order := map[*App]*budget{}
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
	r.leastWork = q.losesLeast()
	var list []candidate
	for _, x := range losers {
		list = r.addContainers(list, x, order[x])
	}
	n := need{queue: q, app: a, rule: rule, rest: a.pending}
	if rule == RuleUserLimit {
		limit, _ := p.policy.userLimit(p, a.user)
		n.rest = p.sizes.Above(&limit, &a.user.used)
	}
	// The limit is the leaf's, for all its losing applications together. If nothing is under notice one container may
	// exceed it; otherwise a small leaf would never lose anything.
	bound := *rest
	if under.IsZero() {
		for i := 0; i < p.sizes.Check; i++ {
			bound.Set(i, max(bound.At(i), 1))
		}
	}
	n.rest.Min(&bound)
	before := len(r.made)
	r.claimFor(&n, r.chooser(list))
	for _, c := range r.made[before:] {
		for _, v := range c.victims {
			rest.Sub(&v.Size.V)
			under.Add(&v.Size.V)
		}
	}
}

// usesBesideAMs returns a user's share of the cluster without AMs.
func (u *user) usesBesideAMs() float64 {
	p := u.q.part
	v := p.sizes.Above(&u.used, &u.amUsed)
	return p.sizes.Dominant(&v, &p.total)
}

// loses returns the amount that an application may lose to another of its leaf by a rule, nil for nothing.
func (r *round) loses(x, a *App, rule Rule, byUser map[*user]*budget) *budget {
	p := r.part
	b := &budget{queue: x.queue}
	switch {
	case rule == RuleUserLimit && x.user == a.user,
		rule == RuleAppPriority && x.priority >= a.priority,
		x.user != a.user && !a.user.mayHave(nil):
		return nil
	case rule == RuleAppPriority && r.p.cfg.IntraFirst == queues.IntraPriorityFirst:
		b.hard = p.sizes.Above(&x.used, sumOf(r.loss, x))
	default: // with user limits first, no user falls below the limit for a priority either
		if of := byUser[x.user]; of != nil {
			return of
		}
		limit, _ := p.policy.userLimit(p, x.user)
		limit.Add(sumOf(r.userLoss, x.user))
		b.hard = p.sizes.Above(&x.user.used, &limit)
		byUser[x.user] = b
	}
	for i := 0; i < p.sizes.Check; i++ {
		if b.hard.At(i) > 0 {
			b.types |= 1 << i
		}
	}
	if b.types == 0 {
		return nil
	}
	return b
}

// stillWithin reports whether a claim within a leaf still follows from its rule.
func (r *round) stillWithin(c *claim) bool {
	p := r.part
	if !r.p.cfg.IntraQueue || !r.looksWithin(c.queue) {
		return false
	}
	byUser := map[*user]*budget{}
	for _, v := range c.victims {
		if v.App.queue != c.queue || !v.App.inQueue {
			return false
		}
		b := r.loses(v.App, c.app, c.rule, byUser)
		if b == nil {
			return false
		}
		if may, _ := b.takes(p, &v.Size.V, c.rule); !may {
			return false
		}
		b.take(&v.Size.V, 1)
	}
	r.count(c, 1)
	return true
}

// keepsWithin reports whether preemption within the leaf is disabled. The leaf inherits these settings.
func (q *Queue) keepsWithin() bool {
	return q.spec.IntraPreemptionDisabled || q.spec.PreemptionDisabled
}
