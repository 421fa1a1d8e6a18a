// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// forHead reserves n for the first ask in order if it needs more than n has.
func (r *reservations) forHead(n *Node) bool {
	p := r.part
	if p.tree.spec.ReservationsOff || p.waiting == 0 {
		return false
	}
	p.walk.order()
	w := p.walk.head()
	if w == nil || w.size == nil || p.sizes.Fits(&w.size.V, &n.free) {
		return false
	}
	if w.hold != nil {
		if w.hold.node == n || r.lacks(w.size, w.hold.node) <= r.lacks(w.size, n) {
			return false
		}
	} else if r.count >= r.most() {
		return false
	}
	if !p.sizes.Fits(&w.size.V, &n.total) || w.app.black.bars(n) {
		return false
	}
	at, reason := p.nodes.reach(w, n)
	if reason == ReasonNone {
		return false
	}
	if v := w.app.admit(w.size, w.own()); v.limit != explain.LimitNone {
		p.retries.stop(w, v)
		return false
	}
	if w.hold != nil {
		r.drop(w.hold)
	}
	r.add(w, n, at)
	return true
}

// most is the number of nodes that may be reserved at once.
func (r *reservations) most() int {
	return max(1, int(r.share*float64(r.part.active)))
}

// lacks is the missing fraction of the size on a node.
func (r *reservations) lacks(size *amounts.Size, n *Node) float64 {
	worst := 0.0
	for i := 0; i < r.part.sizes.Check; i++ {
		if d := size.V.At(i) - n.free.At(i); d > 0 {
			worst = max(worst, float64(d)/float64(size.V.At(i)))
		}
	}
	return worst
}

// fulfil grants a reserved node to its reservation if it fits now, and reports whether the node is free for others.
func (r *reservations) fulfil(n *Node) bool {
	p := r.part
	if len(n.kept) > 0 {
		p.preempt.serveKept(n)
	}
	h := n.hold
	if h == nil {
		return !n.held
	}
	if p.sizes.Fits(&h.size.V, &n.free) {
		if w, a := h.ask, h.ask.app; p.try(w, n) {
			p.enroll(a)
		}
	}
	return !n.held
}

// add reserves n for w.
func (r *reservations) add(w *Ask, n *Node, at places.Distance) {
	h := &reservation{ask: w, node: n, size: w.size, at: at}
	w.hold, n.hold, n.held = h, h, true
	r.count++
	r.charge(w.app, h.size, 1)
	r.part.nodes.reindex(n)
}

// drop ends a reservation. The node's resources are offered to all asks again.
func (r *reservations) drop(h *reservation) {
	h.ask.hold, h.node.hold, h.node.held = nil, nil, len(h.node.kept) > 0
	r.count--
	r.charge(h.ask.app, h.size, -1)
	r.part.nodes.reindex(h.node)
	r.part.nodes.roomOn(h.node)
}

// charge adds (sign 1) or subtracts (-1) a reserved size, from the application up to the root.
func (r *reservations) charge(a *App, size *amounts.Size, sign int64) {
	r.part.changes.app(a)
	a.held.AddTimes(&size.V, sign)
	a.heldContainers += int32(sign)
	for q := a.queue; q != nil; q = q.parent {
		q.reserved.add(&size.V, sign)
	}
	if sign < 0 {
		r.part.freed(a.queue)
	}
}
