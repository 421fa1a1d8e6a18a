// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// nodeFor returns the node for one container of w, its distance from the named places, and the reason: n if w may use
// it now, any node if n is nil. It returns nil if there is none.
func (ns *nodes) nodeFor(w *Ask, n *Node) (*Node, places.Distance, Reason) {
	p := ns.part
	if n != nil {
		if !p.sizes.Fits(&w.size.V, &n.free) || w.app.black.bars(n) {
			return nil, 0, ReasonNone
		}
		at, reason := ns.reach(w, n)
		if reason == ReasonNone {
			return nil, 0, ReasonNone
		}
		return n, at, reason
	}
	h := w.hold
	if h != nil && p.sizes.Fits(&w.size.V, &h.node.free) && h.node.use == Open && p.tags.allows(w, h.node) {
		return h.node, h.at, FromReservation
	}
	return ns.seek(w)
}

// seek searches the whole cluster for a node: listed hosts, then listed racks, then anywhere, as far as delay
// scheduling and relaxed locality permit.
func (ns *nodes) seek(w *Ask) (*Node, places.Distance, Reason) {
	part := ns.part
	if !w.named.Any() {
		if w.strict {
			return nil, 0, ReasonNone
		}
		return ns.find(w), places.AtAny, OffSwitch
	}
	for _, p := range w.named.Hosts {
		if p.Host == nil {
			if part.places.Resolve(p); p.Host == nil {
				continue
			}
		}
		for _, n := range p.Host.Nodes() {
			if n.roomy() && part.sizes.Fits(&w.size.V, &n.free) && !w.app.black.bars(n) && w.rackAsked(n) {
				return n, places.AtNode, NodeLocal
			}
		}
	}
	if len(w.named.Hosts) > 0 {
		part.delays.start(w)
	}
	for _, p := range w.named.Racks {
		if p.Strict || w.level < places.AtRack && len(w.named.Hosts) > 0 {
			continue
		}
		if p.Rack == nil {
			if part.places.Resolve(p); p.Rack == nil {
				continue
			}
		}
		if n := ns.findOn(p.Rack, w); n != nil {
			return n, places.AtRack, w.rackReason()
		}
	}
	if w.strict {
		return nil, 0, ReasonNone
	}
	part.delays.start(w)
	if w.level < places.AtAny {
		return nil, 0, ReasonNone
	}
	return ns.find(w), places.AtAny, Relaxed
}

// reach returns the distance of n from w's places, or ReasonNone if w may not use it now.
func (ns *nodes) reach(w *Ask, n *Node) (places.Distance, Reason) {
	part := ns.part
	if !part.tags.allows(w, n) {
		return 0, ReasonNone
	}
	if w.hold != nil && w.hold.node == n {
		return w.hold.at, FromReservation
	}
	at, reason := w.permits(n)
	if w.since >= 0 || !w.named.Any() || reason == NodeLocal {
		return at, reason
	}
	if len(w.named.Hosts) > 0 || reason == ReasonNone && !w.strict {
		part.delays.start(w)
		at, reason = w.permits(n)
	}
	return at, reason
}

// permits returns the distance of n from w's places, or ReasonNone if w may not be so far from them yet. It changes
// nothing: reach starts the delay.
func (w *Ask) permits(n *Node) (places.Distance, Reason) {
	if !w.named.Any() {
		if w.strict {
			return 0, ReasonNone
		}
		return places.AtAny, OffSwitch
	}
	if p := w.named.OnHost(n.host); p != nil && w.rackAsked(n) {
		return places.AtNode, NodeLocal
	}
	if p := w.named.OnRack(n.rack); p != nil && !p.Strict && (w.level >= places.AtRack || len(w.named.Hosts) == 0) {
		return places.AtRack, w.rackReason()
	}
	if w.strict || w.level < places.AtAny {
		return 0, ReasonNone
	}
	return places.AtAny, Relaxed
}

// reaches reports whether w may use n, as far as its places go.
func (w *Ask) reaches(n *Node) bool {
	_, reason := w.permits(n)
	return reason != ReasonNone
}

func (w *Ask) rackReason() Reason {
	if len(w.named.Hosts) > 0 {
		return RackRelaxed
	}
	return RackLocal
}

// rackAsked: a host's entry counts only together with its rack's entry. For an AM that names no racks, a host's entry
// is enough.
func (w *Ask) rackAsked(n *Node) bool {
	return len(w.named.Racks) == 0 || w.named.OnRack(n.rack) != nil
}
