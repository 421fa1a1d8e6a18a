// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// claimAll makes claims for all needs, until the budgets are used up.
func (r *round) claimAll() {
	if len(r.needs) == 0 || len(r.over) == 0 {
		return
	}
	ch := r.chooser(r.candidates())
	if r.p.cfg.ReservedFirst {
		r.claimReserved(ch)
	}
	for i := range r.needs {
		r.claimFor(&r.needs[i], ch)
	}
}

// claimFor makes claims for the asks of one need, in the order of service.
func (r *round) claimFor(n *need, ch *chooser) {
	r.serves = n.queue
	if n.rule.within() {
		r.serves = nil
	}
	for _, a := range n.queue.leaf.waitingApps() {
		if n.app != nil && n.app != a {
			continue
		}
		for _, w := range a.asks {
			if w.size == nil || w.count <= r.claimed[w] {
				continue
			}
			from := len(r.made)
			for want := ch.leftover(r, n, w, w.count-r.claimed[w]); want > 0; {
				if w.want != nil {
					want = 1 // the constraint may permit only one more
				}
				if !r.mayClaim(n, w) {
					break
				}
				c := ch.claim(r, n, w, want)
				if c == nil {
					break
				}
				want -= c.count
			}
			ch.exchange(n, w, from)
		}
	}
}

// mayClaim reports whether one more container of an ask is within the shortage and its user's limit.
func (r *round) mayClaim(n *need, w *Ask) bool {
	u := w.app.user
	return n.due(r.part, &w.size.V) && (n.rule == RuleAppPriority || u.mayHave(r.byUser[u]))
}

// waitingApps returns the waiting applications of a leaf, in the order of service.
func (l *leafState) waitingApps() []*App {
	var list []*App
	for _, u := range l.userList {
		list = append(list, u.apps.Items...)
	}
	if len(list) > 1 {
		less := list[0].queue.ordering.apps
		slices.SortStableFunc(list, func(a, b *App) int {
			switch {
			case less(a, b):
				return -1
			case less(b, a):
				return 1
			}
			return int(a.seq - b.seq)
		})
	}
	return list
}

// book makes a claim on chosen victims. Their budgets are charged already.
func (r *round) book(n *need, w *Ask, node *Node, count int32, chosen []*candidate) *claim {
	p := r.part
	c := &claim{
		queue: n.queue, app: w.app, ask: w, size: w.size, node: node, count: count, rule: n.rule,
		until: p.now + int64(r.p.wait(n.rule)),
	}
	for _, k := range chosen {
		r.chosen[k.Owner] = true
		c.victims = append(c.victims, &Victim{
			App: k.app, Node: node, Size: k.Size, Owner: k.Owner, Created: k.Created, AM: k.AM,
			For: w.app, Rule: n.rule, Since: p.now, By: c.until, claim: c, choice: k.choice,
		})
	}
	r.serve(n, &w.size.V, count)
	r.count(c, 1)
	r.spend(c)
	r.made = append(r.made, c)
	return c
}

// mayTake reports whether this much more may be under notice. The first claim is always permitted, because a small
// cluster's limit may be below one container. The federation's budgets apply to every claim.
func (r *round) mayTake(v *amounts.Vec) bool {
	if !r.withinBudgets(r.serves, v) {
		return false
	}
	return !r.bounded || r.taken.IsZero() || r.part.sizes.FitsPlus(&r.taken, v, &r.allowed)
}

// mayUse reports whether a node may be cleared for an ask. The node must suit the ask. It must not be reserved for
// another ask, unless that reservation yields.
func (r *round) mayUse(w *Ask, n *Node) bool {
	return (n.hold == nil || n.hold == w.hold || r.yields(n.hold)) && w.mayGo(n)
}

// mayGo reports whether an ask could ever be placed on a node, by its requested and excluded places.
func (w *Ask) mayGo(n *Node) bool {
	if w.app.black.bars(n) || !w.app.queue.part.tags.allows(w, n) {
		return false
	}
	if !w.strict {
		return true
	}
	if p := w.named.OnHost(n.host); p != nil {
		return w.rackAsked(n)
	}
	p := w.named.OnRack(n.rack)
	return p != nil && !p.Strict
}

// picky reports whether the ask limits its nodes: by requested or excluded places, a constraint, or its own
// reservation.
func (w *Ask) picky() bool {
	return w.strict || w.want != nil || w.hold != nil || len(w.app.black.names) > 0
}
