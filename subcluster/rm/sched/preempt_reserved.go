// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"
)

// Rounds treat reservations in two ways:
//
//   - A reservation of a queue with its full share does not block one below its
//     guarantee: the reservation is dropped at once, since nothing runs there yet
//     (CapacityScheduler drops reservations of queues in excess before it kills).
//     Resources that claims free on its node go to the claims first.
//   - A node reserved by an ask in need may be cleared for it, and for no other;
//     with Preemption.ReservedFirst before any other node is considered, so that
//     the freed resources add to those already waiting for it.

// yieldReservations drops reservations whose room can serve asks in need now.
func (r *round) yieldReservations() {
	p := r.part
	if p.reservations.count == 0 {
		return
	}
	for i := range r.needs {
		n := &r.needs[i]
		if n.rule != RuleGuarantee {
			continue
		}
		for _, a := range n.queue.leaf.waitingApps() {
			for _, w := range a.asks {
				if w.size == nil || w.count <= r.claimed[w] || !r.mayClaim(n, w) {
					continue
				}
				if h := r.reservedBelow(w); h != nil {
					r.yield(n, w, h.node)
				}
			}
		}
	}
}

// yields reports whether a reservation must yield to asks in need. It must if its queue has its guarantee of a type
// that the reservation needs.
func (r *round) yields(h *reservation) bool {
	q := h.ask.app.queue
	if q.spec.PreemptionDisabled {
		return false
	}
	n := r.needOf(q, RuleGuarantee)
	if n == nil {
		return true
	}
	for i := 0; i < r.part.sizes.Check; i++ {
		if h.size.V.At(i) > 0 && n.types>>i&1 == 0 {
			return true
		}
	}
	return false
}

// reservedBelow returns a reservation of a queue that is not below its guarantee, on a node that would fit w. It
// picks the queue that uses most of its guarantee; nil for none.
func (r *round) reservedBelow(w *Ask) *reservation {
	p := r.part
	var best *reservation
	most := 0.0
	for _, q := range p.tree.all {
		if q.leaf == nil || q.reserved.containers == 0 {
			continue
		}
		use := useRank(q).ratio
		if best != nil && use <= most {
			continue
		}
		for _, u := range q.leaf.userList {
			for _, a := range u.apps.Items {
				for _, x := range a.asks {
					h := x.hold
					if h == nil || !r.yields(h) || !p.sizes.Fits(&w.size.V, &h.node.free) || !w.mayGo(h.node) {
						continue
					}
					if best == nil || use > most || h.node.serial < best.node.serial {
						best, most = h, use
					}
				}
			}
		}
	}
	return best
}

// yield drops the reservation of a node and reserves its room for an ask in need.
func (r *round) yield(n *need, w *Ask, node *Node) {
	p := r.part
	p.reservations.drop(node.hold)
	c := &claim{queue: n.queue, app: w.app, ask: w, size: w.size, node: node, rule: n.rule, until: p.now}
	free := node.free
	for c.count < w.count-r.claimed[w] && p.sizes.Fits(&w.size.V, &free) && n.due(p, &w.size.V) {
		free.Sub(&w.size.V)
		r.serve(n, &w.size.V, 1)
		c.count++
	}
	r.count(c, 1)
	r.p.claims = append(r.p.claims, c)
	p.preempt.keep(c)
}

// claimReserved makes claims on nodes reserved by asks in need. Nodes that need the least preemption come first.
func (r *round) claimReserved(ch *chooser) {
	type place struct {
		n    *need
		w    *Ask
		cost cost
	}
	var places []place
	ch.groupByNode()
	for i := range r.needs {
		n := &r.needs[i]
		for _, a := range n.queue.leaf.waitingApps() {
			for _, w := range a.asks {
				if w.hold == nil || w.count <= r.claimed[w] {
					continue
				}
				if list, cost := ch.clear(n, w, w.hold.node, 1); list != nil {
					places = append(places, place{n, w, cost})
				}
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		switch {
		case a.n.rule != b.n.rule:
			return cmp.Compare(a.n.rule, b.n.rule)
		case a.cost.less(b.cost):
			return -1
		case b.cost.less(a.cost):
			return 1
		}
		return 0
	})
	for _, p := range places {
		if r.claimed[p.w] < p.w.count && r.mayClaim(p.n, p.w) {
			ch.claimOn(p.n, p.w, p.w.hold.node, 1)
		}
	}
}
