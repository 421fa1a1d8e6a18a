// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel/subcluster/rm/queues"

// settle ends every call: masters that may start now are started, room that
// appeared is offered, and what limits held back is tried where they loosened.
// Each step may cause more of the others, so it goes round until nothing is
// left to do; each round grants, starts or ends something, or removes work.
func (m *Machine) settle() {
	for {
		switch {
		case m.tree.stale:
			m.tree.stale = false
			m.resize()
		case len(m.activate) > 0:
			q := m.activate[len(m.activate)-1]
			m.activate = m.activate[:len(m.activate)-1]
			q.leaf.queuedActivate = false
			m.activateApps(q)
		case len(m.dirtyNodes) > 0:
			n := m.dirtyNodes[len(m.dirtyNodes)-1]
			m.dirtyNodes = m.dirtyNodes[:len(m.dirtyNodes)-1]
			n.dirty = false
			m.offer(n)
		case len(m.retries) > 0:
			q := m.retries[len(m.retries)-1]
			m.retries = m.retries[:len(m.retries)-1]
			q.queuedRetry = false
			for m.waiting > 0 && m.next(q, nil) {
			}
		default:
			return
		}
	}
}

// roomOn notes that a node has more room than before.
func (m *Machine) roomOn(n *node) {
	if !n.dirty {
		n.dirty = true
		m.dirtyNodes = append(m.dirtyNodes, n)
	}
}

// touch has a leaf tried again: limits of its users may have risen.
func (m *Machine) touch(q *queue) {
	if q.leaf.limitedUsers == 0 && !q.parked {
		return
	}
	m.retry(q)
}

// retry has everything waiting below q tried on any node when the call settles.
func (m *Machine) retry(q *queue) {
	m.unpark(q)
	if !q.queuedRetry {
		q.queuedRetry = true
		m.retries = append(m.retries, q)
	}
}

// freed: something below q was given back. Queues on the path whose limits had
// stopped somebody are tried again, the topmost only, as it holds the others.
func (m *Machine) freed(q *queue) {
	var top *queue
	for ; q != nil; q = q.parent {
		if q.parked {
			m.unpark(q)
			top = q
		}
		if q.limited {
			q.limited = false
			top = q
		}
	}
	if top != nil {
		m.retry(top)
	}
}

// loosen has those tried again that limits had stopped, after the cluster or
// the queues changed.
func (m *Machine) loosen() {
	for _, q := range m.tree.watched {
		q.watched = false
		if q.removed {
			continue
		}
		q.limited = false
		if q.leaf != nil {
			for _, u := range q.leaf.userList {
				u.limited = false
			}
			q.leaf.limitedUsers = 0
			m.activateLater(q)
		}
		m.retry(q)
	}
	clear(m.tree.watched)
	m.tree.watched = m.tree.watched[:0]
}

// watch remembers a queue for loosen.
func (m *Machine) watch(q *queue) {
	if !q.watched {
		q.watched = true
		m.tree.watched = append(m.tree.watched, q)
	}
}

func (m *Machine) activateLater(q *queue) {
	if q.leaf.pendingApps > 0 && !q.leaf.queuedActivate {
		q.leaf.queuedActivate = true
		m.activate = append(m.activate, q)
	}
}

func (m *Machine) unpark(q *queue) {
	if !q.parked {
		return
	}
	q.parked = false
	q.parent.parkedBelow--
	if q.slot == 0 && q.hasReady() {
		q.enter()
	}
}

func (m *Machine) park(q *queue) {
	q.parked = true
	q.parent.parkedBelow++
	m.watch(q)
}

// stopped notes where a limit stopped an application, so that it is tried
// again when that limit loosens.
func (m *Machine) stopped(w *want, v verdict) {
	a := w.attempt.app
	switch v.limit {
	case LimitQueue:
		v.where.limited = true
		m.watch(v.where)
		m.block(v.where, w)
	case LimitUser:
		m.userStopped(a)
	}
}

func (m *Machine) userStopped(a *app) {
	if !a.user.limited {
		a.user.limited = true
		a.queue.leaf.limitedUsers++
		m.watch(a.queue)
	}
}

func (m *Machine) unlimit(u *user) {
	if u.limited {
		u.limited = false
		u.q.leaf.limitedUsers--
	}
}

// offer gives the room of a node to those that wait, in tree order, until they
// or it have enough.
func (m *Machine) offer(n *node) {
	if !n.state.takes() {
		return
	}
	if m.growers > 0 {
		m.regrow(n)
	}
	if n.held {
		h := n.hold
		// The node fills up for its reservation alone.
		if m.t.fits(&h.size.v, &n.free) {
			a := h.want.attempt.app
			m.try(h.want, n)
			m.enroll(a)
		}
		if n.held {
			return
		}
	}
	if m.waiting == 0 {
		return
	}
	m.opportunity()
	if m.reserveHead(n) {
		return
	}
	for !n.held && m.waiting > 0 && m.t.fits(&m.tree.root.least, &n.free) && m.next(m.tree.root, n) {
	}
}

// next gives one container to the first in order below q that can have one.
func (m *Machine) next(q *queue, n *node) bool {
	m.order()
	return m.pick(q, n)
}

// pick is next where all are in their places: a container on n, or anywhere when
// n is nil. Those that cannot have one are set aside for the time of the walk
// and put back; a child that only its own limit stops is parked until that
// loosens, so that it costs nothing meanwhile.
func (m *Machine) pick(q *queue, n *node) bool {
	if q.leaf != nil {
		return m.pickLeaf(q, n)
	}
	mark, found, ended := len(m.scratchQ), false, false
	if q.hierarchical {
		q.rankChildren()
	}
	inOrder := n == nil || m.blockers > 0 && q.anyBlocked()
	for q.ready.len() > 0 {
		c := q.ready.top()
		if !inOrder && !m.t.fits(&c.least, &n.free) {
			if c = m.firstFor(q, n); c == nil {
				break // those left need more than n has
			}
		}
		if c.sized().bounded && !m.within(c, &c.least, nil) {
			q.ready.remove(c)
			m.park(c)
			continue
		}
		if n == nil || m.t.fits(&c.least, &n.free) {
			if found = m.pick(c, n); found {
				break
			}
			if ended = m.endsAt(q, c); ended {
				break
			}
			if c.slot == 0 {
				continue // it left, or was parked from below
			}
		} else if ended = m.endsAt(q, c); ended {
			break
		}
		q.ready.remove(c)
		m.scratchQ = append(m.scratchQ, c)
	}
	if found && len(m.scratchQ) == mark && (q.slot != 0 || q.parent == nil) {
		return true // nobody was passed over, so all are where they were
	}
	least := vecMax
	if !found {
		for _, c := range q.ready.items {
			least.min(&c.least)
		}
	}
	for _, c := range m.scratchQ[mark:] {
		least.min(&c.least)
		if c.slot == 0 && !c.parked && c.hasReady() {
			c.enter()
		}
	}
	clear(m.scratchQ[mark:])
	m.scratchQ = m.scratchQ[:mark]
	switch {
	case found || ended:
		q.least.min(&least)
		q.back()
	case q.parkedBelow == 0:
		q.least = least // seen them all: the bound is exact again
	}
	return found
}

// firstFor gives the first in order of the children that wait whose least need
// n has room for, nil for none. Those before it stay where they are.
func (m *Machine) firstFor(q *queue, n *node) *queue {
	h := &q.ready
	var best *queue
	var look func(i int)
	look = func(i int) {
		for ; i < len(h.items); i = 2*i + 2 {
			c := h.items[i]
			if best != nil && !h.less(c, best) {
				return // nor is anything under it
			}
			if m.t.fits(&c.least, &n.free) {
				best = c
				return
			}
			look(2*i + 1)
		}
	}
	look(0)
	return best
}

// anyBlocked reports whether somebody may wait for the maximum of q or of a
// queue above it.
func (q *queue) anyBlocked() bool {
	for ; q != nil; q = q.parent {
		if q.blocker != nil {
			return true
		}
	}
	return false
}

// back returns a queue, and those above it, to where they wait, if they left
// while what is below was set aside.
func (q *queue) back() {
	for ; q.parent != nil && q.hasReady(); q = q.parent {
		if q.slot == 0 && !q.parked {
			q.enter()
		}
		q.parent.least.min(&q.least)
	}
}

func (m *Machine) pickLeaf(q *queue, n *node) bool {
	markU, markA, found, ended := len(m.scratchU), len(m.scratchA), false, false
	least := vecMax
	byLimit := true
	for !found && !ended && q.users.len() > 0 {
		u := q.users.top()
		for !found && u.apps.len() > 0 {
			a := u.apps.top()
			// An application over the user limit stops all of its user.
			if m.tree.spec.Scheduler == queues.CapacityScheduler && !m.userAdmits(u) {
				m.userStopped(a)
				break
			}
			byLimit = false
			for _, w := range a.current.wants {
				if ended = w.stops != nil && m.blocked(w.stops); ended {
					break
				}
				if w.count <= 0 || w.size == nil || n != nil && !m.t.fits(&w.size.v, &n.free) {
					continue
				}
				if found = m.tryAdmitted(w, n); found {
					if w.count == 0 || a.slot == 0 { // else it waits as before
						m.enroll(a)
					}
					break
				}
				if ended = w.stops != nil; ended {
					break
				}
			}
			if ended {
				break
			}
			if !found {
				least.min(&a.least)
				u.apps.remove(a)
				m.scratchA = append(m.scratchA, a)
			}
		}
		if found || ended {
			break
		}
		for _, a := range u.apps.items {
			least.min(&a.least)
		}
		q.users.remove(u)
		m.scratchU = append(m.scratchU, u)
	}
	if found && len(m.scratchA) == markA && len(m.scratchU) == markU && (q.slot != 0 || q.parent == nil) {
		return true
	}
	for _, a := range m.scratchA[markA:] {
		if a.waits && a.slot == 0 {
			a.ratio = a.share()
			a.user.apps.push(a)
			if a.user.slot != 0 {
				q.users.fix(a.user)
			} else {
				q.users.push(a.user)
			}
		}
	}
	for _, u := range m.scratchU[markU:] {
		if u.slot == 0 && u.apps.len() > 0 {
			q.users.push(u)
		}
	}
	clear(m.scratchA[markA:])
	clear(m.scratchU[markU:])
	m.scratchA, m.scratchU = m.scratchA[:markA], m.scratchU[:markU]
	if found || ended {
		q.least.min(&least)
		q.back()
	} else {
		q.least = least
		if byLimit && q.parent != nil && q.slot != 0 && q.users.len() > 0 {
			q.parent.ready.remove(q)
			m.park(q)
		}
	}
	return found
}
