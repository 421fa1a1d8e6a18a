// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"slices"
)

// ClaimAll makes claims for all needs, until the budgets are used up. With reservedFirst nodes reserved by asks in need
// are cleared before any other node, so that the freed resources add to those already waiting.
func (r *Round) ClaimAll(o *Offers, reservedFirst bool) {
	o.lentFirst()
	ch := r.chooser(o)
	if reservedFirst {
		ch.claimReserved()
	}
	for i := range r.Needs {
		ch.claimFor(&r.Needs[i])
	}
}

// ClaimWithin makes claims for a need within a leaf, and returns them.
func (r *Round) ClaimWithin(n *Need, o *Offers) []*Claim {
	before := len(r.made)
	r.chooser(o).claimFor(n)
	return r.made[before:]
}

// claimFor makes claims for the asks of one need, in the order of service.
func (ch *chooser) claimFor(n *Need) {
	r := ch.r
	r.serves = n.Queue
	if n.Rule.Within() {
		r.serves = nil
	}
	for _, w := range n.Asks {
		if w.Count <= w.claimed {
			continue
		}
		from := len(r.made)
		for want := ch.leftover(n, w, w.Count-w.claimed); want > 0; {
			if w.Single {
				want = 1
			}
			if !r.mayClaim(n, w) {
				break
			}
			c := ch.claim(n, w, want)
			if c == nil {
				break
			}
			want -= c.Count
		}
		ch.exchange(n, w, from)
	}
}

// book makes a claim on chosen victims. Their budgets are charged already.
func (r *Round) book(n *Need, w *Ask, node *Node, count int32, chosen []*candidate) *Claim {
	c := &Claim{Rule: n.Rule, Queue: n.Queue, Ask: w, Size: w.Size, Node: node, Count: count}
	for _, k := range chosen {
		r.chosen[k.Owner] = true
		c.Victims = append(c.Victims, Victim{k.Container, k.choice})
	}
	r.serve(n, &w.Size.V, count)
	r.count(c, 1)
	r.spend(c)
	r.made = append(r.made, c)
	return c
}

// claimReserved makes claims on nodes reserved by asks in need. Nodes that need the least preemption come first.
func (ch *chooser) claimReserved() {
	type place struct {
		n    *Need
		w    *Ask
		cost cost
	}
	r := ch.r
	var places []place
	ch.groupByNode()
	for i := range r.Needs {
		n := &r.Needs[i]
		for _, w := range n.Asks {
			if w.Hold == nil || w.Count <= w.claimed {
				continue
			}
			if list, cost := ch.clear(n, w, w.Hold.Node, 1); list != nil {
				places = append(places, place{n, w, cost})
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.n.Rule, b.n.Rule), a.cost.compare(b.cost))
	})
	for _, p := range places {
		if r.Wants(p.n, p.w) {
			ch.claimOn(p.n, p.w, p.w.Hold.Node, 1)
		}
	}
}
