// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel/subcluster/rm/queues"

// serve tries everything an application asks for, on any node, until limits
// or room stop it; then the application waits in the tree, if it still asks.
func (m *Machine) serve(a *app) {
	m.enroll(a) // its user counts as active while limits are looked at
	if q := m.blockedAbove(a); q != nil {
		m.retry(q) // in order, as some may not pass others
		return
	}
	if t := a.current; t != nil && a.runnable() {
		for i := 0; i < len(t.wants); i++ {
			w := t.wants[i]
			m.warmNodes(w)
			for w.count > 0 && m.try(w, nil) {
			}
			if w.count > 0 && w.stops != nil {
				break
			}
			if i < len(t.wants) && t.wants[i] != w {
				i-- // w is satisfied and gone
			}
		}
	}
	m.enroll(a)
}

// try gives one container for w: on n, or anywhere when n is nil. When it does
// not, what stood in the way is noted where it may loosen.
func (m *Machine) try(w *want, n *node) bool {
	if w.size == nil || w.count <= 0 {
		return false
	}
	a := w.attempt.app
	if m.tree.spec.Scheduler == queues.CapacityScheduler && !m.userAdmits(a.user) {
		// The maximum of a queue is named before the limit of a user.
		v := m.admitQueues(a, w.size, w.own())
		if v.limit == LimitNone {
			v = verdict{LimitUser, a.queue}
		}
		m.stopped(w, v)
		return false
	}
	return m.tryAdmitted(w, n)
}

// tryAdmitted is try for an ask whose user is within their limit.
func (m *Machine) tryAdmitted(w *want, n *node) bool {
	a := w.attempt.app
	if v := m.admitQueues(a, w.size, w.own()); v.limit != LimitNone {
		m.stopped(w, v)
		return false
	}
	m.unlimit(a.user)
	if n != nil {
		if !m.t.fits(&w.size.v, &n.free) || w.attempt.black.bars(n) {
			return false
		}
		at, reason := m.reach(w, n)
		if reason == ReasonNone {
			return false
		}
		m.grant(w, n, at, reason)
		return true
	}
	if h := w.hold; h != nil && m.t.fits(&w.size.v, &h.node.free) && h.node.state.takes() {
		m.grant(w, h.node, h.at, FromReservation)
		return true
	}
	n, at, reason := m.seek(w)
	if n == nil {
		return false
	}
	m.grant(w, n, at, reason)
	return true
}

// own is the size of what is reserved for the ask, nil for none.
func (w *want) own() *size {
	if w.hold == nil {
		return nil
	}
	return w.hold.size
}

// seek looks for a node over the whole cluster: listed hosts, then listed
// racks, then anywhere, as far as delay scheduling and relaxed locality let it.
func (m *Machine) seek(w *want) (*node, level3, Reason) {
	black := &w.attempt.black
	if !w.placed() {
		if w.strict {
			return nil, 0, ReasonNone
		}
		return m.ix.find(&m.t, &w.size.v, w.attempt.app.queue.order, black), atAny, OffSwitch
	}
	for _, p := range w.hosts {
		if p.host == nil {
			if m.resolve(p); p.host == nil {
				continue
			}
		}
		for _, n := range p.host.nodes {
			if m.roomy(n) && m.t.fits(&w.size.v, &n.free) && !black.bars(n) && w.rackAsked(n) {
				return n, atNode, NodeLocal
			}
		}
	}
	if len(w.hosts) > 0 {
		m.delay(w)
	}
	for _, p := range w.racks {
		if p.strict || w.level < atRack && len(w.hosts) > 0 {
			continue
		}
		if p.onRack == nil {
			if m.resolve(p); p.onRack == nil {
				continue
			}
		}
		if n := p.onRack.find(m, w); n != nil {
			return n, atRack, w.rackReason()
		}
	}
	if w.strict {
		return nil, 0, ReasonNone
	}
	m.delay(w)
	if w.level < atAny {
		return nil, 0, ReasonNone
	}
	return m.ix.find(&m.t, &w.size.v, w.attempt.app.queue.order, black), atAny, Relaxed
}

// reach says how local n is for w, ReasonNone if w may not go there now.
func (m *Machine) reach(w *want, n *node) (level3, Reason) {
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
		m.delay(w)
	}
	if p := w.atRack(n); p != nil && !p.strict && (w.level >= atRack || len(w.hosts) == 0) {
		return atRack, w.rackReason()
	}
	if w.strict {
		return 0, ReasonNone
	}
	m.delay(w)
	if w.level < atAny {
		return 0, ReasonNone
	}
	return atAny, Relaxed
}

func (w *want) rackReason() Reason {
	if len(w.hosts) > 0 {
		return RackRelaxed
	}
	return RackLocal
}

// rackAsked: a host's entry counts only together with that of its rack; a
// master that names no racks at all is taken at its word.
func (w *want) rackAsked(n *node) bool {
	return len(w.racks) == 0 || w.atRack(n) != nil
}

// enroll puts an application among those that wait, or takes it out, as its
// asks say.
func (m *Machine) enroll(a *app) {
	if a.queue == nil {
		return
	}
	waits := a.pendingCount > 0 && a.runnable()
	if waits != a.waits {
		m.setWaits(a, waits)
	}
	if !waits {
		return
	}
	least := vecMax
	for _, w := range a.current.wants {
		if w.count > 0 && w.size != nil {
			least.min(&w.size.v)
		}
	}
	a.least = least
	u, q := a.user, a.queue
	if a.slot == 0 {
		a.ratio = a.share()
		u.apps.push(a)
		if u.slot == 0 {
			q.users.push(u)
		} else {
			q.users.fix(u)
		}
	}
	for ; q.parent != nil; q = q.parent {
		q.least.min(&least)
		if q.parked {
			q.limited = true // nothing was tried: who is given back something must know
			m.unpark(q)
		} else if q.slot == 0 {
			q.enter()
		}
	}
	q.least.min(&least)
}

// enter puts a queue into its parent's heap.
func (q *queue) enter() {
	h := &q.parent.ready
	if h.len() == 1 {
		h.top().rank = h.top().ranked()
	}
	q.rank = q.ranked()
	h.push(q)
}

// setWaits keeps the active users of a leaf, which user limits divide by, and
// takes an application that no longer waits out of the order.
func (m *Machine) setWaits(a *app, waits bool) {
	m.appChanged(a)
	a.waits = waits
	u, q := a.user, a.queue
	l := q.leaf
	if waits {
		m.waiting++
		if u.waitingApps++; u.waitingApps == 1 {
			l.active++
			l.weights += u.weight
			l.usedByActive.add(&u.used)
		}
		return
	}
	m.waiting--
	if u.waitingApps--; u.waitingApps == 0 {
		l.active--
		l.weights -= u.weight
		l.usedByActive.sub(&u.used)
		if l.active == 0 {
			l.weights = 0
		}
		m.touch(q) // fewer share: the others' limits rise
	}
	if a.slot == 0 {
		return
	}
	u.apps.remove(a)
	if u.apps.len() > 0 {
		q.users.fix(u)
		return
	}
	if u.slot != 0 {
		q.users.remove(u)
	}
	for ; q.parent != nil && !q.hasReady(); q = q.parent {
		q.least = vecMax
		if q.parked {
			q.parked = false
			q.parent.parkedBelow--
		}
		q.parent.ready.remove(q)
	}
	if q.parent == nil && !q.hasReady() {
		q.least = vecMax
	}
}

// hasReady reports whether something waits below, parked or not.
func (q *queue) hasReady() bool {
	if q.leaf != nil {
		return q.users.len() > 0
	}
	return q.ready.len() > 0 || q.parkedBelow > 0
}

// charge adds (sign 1) or takes away (-1) a container's size, from the
// application up to the root, and moves what waits to its new place.
func (m *Machine) charge(a *app, s *size, sign int64) {
	m.appChanged(a)
	m.accrue(a)
	a.used.addTimes(&s.v, sign)
	a.containers += int32(sign)
	u := a.user
	u.used.addTimes(&s.v, sign)
	if u.waitingApps > 0 {
		a.queue.leaf.usedByActive.addTimes(&s.v, sign)
	}
	a.rerank()
	for q := a.queue; q != nil; q = q.parent {
		q.used.addTimes(&s.v, sign)
		q.containers += int32(sign)
		if q.slot != 0 {
			q.rerank()
		}
	}
	if u.limited && sign < 0 {
		m.touch(a.queue)
		m.unlimit(u)
	} else if sign > 0 && a.queue.leaf.limitedUsers > 0 {
		m.touch(a.queue) // limits grow with use
	}
	if sign < 0 {
		m.freed(a.queue)
	}
}

// accrue adds up resource-seconds until now.
func (m *Machine) accrue(a *app) {
	now := m.ms()
	if dt := now - a.accrued; dt > 0 {
		if a.containers > 0 {
			a.seconds.addTimes(&a.used, dt)
		}
		a.accrued = now
	}
}
