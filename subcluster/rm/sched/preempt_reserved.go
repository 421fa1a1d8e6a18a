// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/preempt"

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
	if r.part.reservations.count == 0 {
		return
	}
	for i := range r.Needs {
		n := &r.Needs[i]
		if n.Rule != preempt.Guarantee {
			continue
		}
		for _, w := range r.waiting(n.Queue.Owner.(*Queue)) {
			if !r.Wants(n, w) {
				continue
			}
			if h := r.reservedBelow(w.Owner.(*Ask)); h != nil {
				r.yield(n, w, h)
			}
		}
	}
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
					if h == nil || !r.Yields(r.hold(h)) || !p.sizes.Fits(&w.size.V, &h.node.free) || !w.mayGo(h.node) {
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

// yield drops a reservation and reserves its room for an ask in need.
func (r *round) yield(n *preempt.Need, ask *preempt.Ask, h *reservation) {
	p, w, node := r.part, ask.Owner.(*Ask), h.node
	p.reservations.drop(h)
	r.dropped(h)
	c := &claim{
		queue: w.app.queue, app: w.app, ask: w, size: w.size, node: node, rule: n.Rule, until: p.now,
		count: r.Fill(n, ask, node.free),
	}
	r.p.claims = append(r.p.claims, c)
	p.preempt.keep(c)
}
