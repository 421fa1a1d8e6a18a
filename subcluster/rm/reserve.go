// SPDX-License-Identifier: Apache-2.0

package rm

// A reservation keeps the room that appears on one node for a container too
// big for it now. Without it a big ask starves among small ones; with too many
// the cluster stands idle. So: only the first in order may reserve, when room
// appears that is too small for it; one node for each scheduler key; at most a
// share of the nodes; and it moves to a node that is nearer to having enough.
// A reservation waits for the containers of one node only and holds nothing
// that another reservation waits for, so reservations cannot deadlock.
type reservation struct {
	want *want
	node *node
	size *size
	at   level3
}

// reserveHead reserves n for the first in order if it needs more than n has.
func (m *Machine) reserveHead(n *node) bool {
	if m.tree.spec.ReservationsOff || m.waiting == 0 {
		return false
	}
	m.order()
	w := m.head()
	if w == nil || w.size == nil || m.t.fits(&w.size.v, &n.free) {
		return false
	}
	if w.hold != nil {
		if w.hold.node == n || m.lacks(w.size, w.hold.node) <= m.lacks(w.size, n) {
			return false
		}
	} else if m.reserved >= m.maxReserved() {
		return false
	}
	if !m.t.fits(&w.size.v, &n.total) || w.attempt.black.bars(n) {
		return false
	}
	at, reason := m.reach(w, n)
	if reason == ReasonNone {
		return false
	}
	var own *size
	if w.hold != nil {
		own = w.hold.size
	}
	if v := m.admit(w.attempt.app, w.size, own); v.limit != LimitNone {
		m.stopped(w, v)
		return false
	}
	if w.hold != nil {
		m.unreserve(w.hold)
	}
	m.reserve(w, n, at)
	return true
}

// head is the first ask in tree order, nil for none.
func (m *Machine) head() *want {
	q := m.tree.root
	for q.leaf == nil {
		if q.ready.len() == 0 {
			return nil
		}
		q = q.ready.top()
	}
	if q.users.len() == 0 {
		return nil
	}
	for _, w := range q.users.top().apps.top().current.wants {
		if w.count > 0 && w.size != nil {
			return w
		}
	}
	return nil
}

func (m *Machine) maxReserved() int {
	return max(1, int(m.cfg.ReservedNodes*float64(m.active)))
}

// lacks is how far a node is from having room, as a share of the size.
func (m *Machine) lacks(s *size, n *node) float64 {
	worst := 0.0
	for i := 0; i < m.t.check; i++ {
		if d := s.v.at(i) - n.free.at(i); d > 0 {
			worst = max(worst, float64(d)/float64(s.v.at(i)))
		}
	}
	return worst
}

func (m *Machine) reserve(w *want, n *node, at level3) {
	h := &reservation{want: w, node: n, size: w.size, at: at}
	w.hold, n.hold, n.held = h, h, true
	m.reserved++
	m.count.reservedContainers++
	m.heldCharge(w.attempt.app, h.size, 1)
	m.placeInIndex(n)
}

func (m *Machine) unreserve(h *reservation) {
	h.want.hold, h.node.hold, h.node.held = nil, nil, false
	m.reserved--
	m.count.reservedContainers--
	m.heldCharge(h.want.attempt.app, h.size, -1)
	m.placeInIndex(h.node)
	m.roomOn(h.node)
}

func (m *Machine) heldCharge(a *app, s *size, sign int64) {
	m.appChanged(a)
	a.held.addTimes(&s.v, sign)
	a.heldContainers += int32(sign)
	for q := a.queue; q != nil; q = q.parent {
		q.held.addTimes(&s.v, sign)
		q.heldContainers += int32(sign)
	}
	if sign < 0 {
		m.freed(a.queue)
	}
}
