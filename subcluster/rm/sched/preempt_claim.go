// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// claimAll makes claims for all that are in need, as far as budgets last.
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

// claimFor makes claims for the asks of one in need, in the order of service.
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
					want = 1 // one more there may be against the constraint
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
	return n.due(r.s, &w.size.V) && (n.rule == RuleAppPriority || r.s.userMayHave(u, r.byUser[u]))
}

// waitingApps are the applications of a leaf that wait, in the order of service.
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

// book makes a claim of chosen victims; their budgets are charged already.
func (r *round) book(n *need, w *Ask, node *Node, count int32, chosen []*candidate) *claim {
	s := r.s
	c := &claim{
		queue: n.queue, app: w.app, ask: w, size: w.size, node: node, count: count, rule: n.rule,
		until: s.now + int64(r.p.wait(n.rule)),
	}
	for _, k := range chosen {
		r.chosen[k.Owner] = true
		c.victims = append(c.victims, &Victim{
			App: k.app, Node: node, Size: k.Size, Owner: k.Owner, Created: k.Created, AM: k.AM,
			For: w.app, Rule: n.rule, Since: s.now, By: c.until, claim: c, choice: k.choice,
		})
	}
	r.serve(n, &w.size.V, count)
	r.count(c, 1)
	r.spend(c)
	r.made = append(r.made, c)
	return c
}

// mayTake reports whether so much more may be under notice. A first claim
// always may be, or a small cluster would never give anything back; but the
// federation's budgets hold.
func (r *round) mayTake(v *amounts.Vec) bool {
	if !r.withinBudgets(r.serves, v) {
		return false
	}
	return !r.bounded || r.taken.IsZero() || r.s.sizes.FitsPlus(&r.taken, v, &r.allowed)
}

// mayUse reports whether a node may be cleared for an ask: the ask could be placed there, and the node is not
// reserved for an earlier one.
func (r *round) mayUse(w *Ask, n *Node) bool {
	return (n.hold == nil || n.hold == w.hold || r.yields(n.hold)) && w.mayGo(n)
}

// mayGo reports whether an ask could ever be placed on a node, as far as the
// places that it names and avoids go.
func (w *Ask) mayGo(n *Node) bool {
	if w.app.black.bars(n) || !w.app.queue.s.allows(w, n) {
		return false
	}
	if !w.strict {
		return true
	}
	if p := w.atHost(n); p != nil {
		return w.rackAsked(n)
	}
	p := w.atRack(n)
	return p != nil && !p.strict
}

// picky: places that it names or avoids decide where it may go, or a constraint, or
// there is one that only it may use.
func (w *Ask) picky() bool {
	return w.strict || w.want != nil || w.hold != nil || len(w.app.black.names) > 0
}
