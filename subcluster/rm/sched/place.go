// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// own returns the size of the ask's reservation, nil for none.
func (w *Ask) own() *amounts.Size {
	if w.hold == nil {
		return nil
	}
	return w.hold.size
}

// nodeFor returns the node for one container of w, its distance from the named places, and the reason: n if w may use
// it now, any node if n is nil. It returns nil if there is none.
func (s *Scheduler) nodeFor(w *Ask, n *Node) (*Node, distance, Reason) {
	if n != nil {
		if !s.sizes.Fits(&w.size.V, &n.free) || w.app.black.bars(n) {
			return nil, 0, ReasonNone
		}
		at, reason := s.reach(w, n)
		if reason == ReasonNone {
			return nil, 0, ReasonNone
		}
		return n, at, reason
	}
	h := w.hold
	if h != nil && s.sizes.Fits(&w.size.V, &h.node.free) && h.node.use == Open && s.tags.allows(w, h.node) {
		return h.node, h.at, FromReservation
	}
	return s.seek(w)
}

// seek searches the whole cluster for a node: listed hosts, then listed racks, then anywhere, as far as delay
// scheduling and relaxed locality permit.
func (s *Scheduler) seek(w *Ask) (*Node, distance, Reason) {
	if !w.placed() {
		if w.strict {
			return nil, 0, ReasonNone
		}
		return s.find(w), atAny, OffSwitch
	}
	for _, p := range w.hosts {
		if p.host == nil {
			if s.resolve(p); p.host == nil {
				continue
			}
		}
		for _, n := range p.host.Nodes() {
			if n.roomy() && s.sizes.Fits(&w.size.V, &n.free) && !w.app.black.bars(n) && w.rackAsked(n) {
				return n, atNode, NodeLocal
			}
		}
	}
	if len(w.hosts) > 0 {
		s.delay(w)
	}
	for _, p := range w.racks {
		if p.strict || w.level < atRack && len(w.hosts) > 0 {
			continue
		}
		if p.onRack == nil {
			if s.resolve(p); p.onRack == nil {
				continue
			}
		}
		if n := s.findOn(p.onRack, w); n != nil {
			return n, atRack, w.rackReason()
		}
	}
	if w.strict {
		return nil, 0, ReasonNone
	}
	s.delay(w)
	if w.level < atAny {
		return nil, 0, ReasonNone
	}
	return s.find(w), atAny, Relaxed
}

// reach returns the distance of n from w's places, or ReasonNone if w may not use it now.
func (s *Scheduler) reach(w *Ask, n *Node) (distance, Reason) {
	if !s.tags.allows(w, n) {
		return 0, ReasonNone
	}
	if w.hold != nil && w.hold.node == n {
		return w.hold.at, FromReservation
	}
	if !w.placed() {
		if w.strict {
			return 0, ReasonNone
		}
		return atAny, OffSwitch
	}
	if p := w.atHost(n); p != nil && w.rackAsked(n) {
		return atNode, NodeLocal
	}
	if len(w.hosts) > 0 {
		s.delay(w)
	}
	if p := w.atRack(n); p != nil && !p.strict && (w.level >= atRack || len(w.hosts) == 0) {
		return atRack, w.rackReason()
	}
	if w.strict {
		return 0, ReasonNone
	}
	s.delay(w)
	if w.level < atAny {
		return 0, ReasonNone
	}
	return atAny, Relaxed
}

func (w *Ask) rackReason() Reason {
	if len(w.hosts) > 0 {
		return RackRelaxed
	}
	return RackLocal
}

// rackAsked: a host's entry counts only together with its rack's entry. For an AM that names no racks, a host's entry
// is enough.
func (w *Ask) rackAsked(n *Node) bool {
	return len(w.racks) == 0 || w.atRack(n) != nil
}
