// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel/subcluster/rm/queues"

// Under CapacityScheduler an ask that its queue's maximum stops is not passed
// by those behind it: small asks that still fit would take what is given back
// below that maximum as it comes, and a big one would never get there. So such
// an ask blocks the queue whose maximum it waits for, and nobody who comes after
// it in the order gets anything below that queue until it has got its container,
// wants it no longer, or is stopped by something else. That is Hadoop's
// behaviour since blocked headroom (an assignment skipped for a queue's limit
// ends the round of the leaf, and its siblings must leave it the room). An ask
// larger than the whole maximum blocks nobody. FairScheduler has no such rule:
// there the next in order is tried.

// block notes that w waits for q's maximum, first in order below it.
func (m *Machine) block(q *queue, w *want) {
	if m.tree.spec.Scheduler != queues.CapacityScheduler || !m.t.fits(&w.size.v, &q.sized().max) {
		return
	}
	if w.stops == q {
		return
	}
	m.unblock(w)
	if q.blocker != nil {
		q.blocker.stops = nil
	} else {
		m.blockers++
	}
	q.blocker, w.stops = w, q
}

// unblock has those tried that w held back.
func (m *Machine) unblock(w *want) {
	q := w.stops
	if q == nil {
		return
	}
	q.blocker, w.stops = nil, nil
	m.blockers--
	if !q.removed {
		m.retry(q)
	}
}

// blocked reports whether somebody still waits for q's maximum.
func (m *Machine) blocked(q *queue) bool {
	w := q.blocker
	if w == nil {
		return false
	}
	if m.waitsFor(w, q) {
		q.limited = true // tried again when the limit loosens
		m.watch(q)
		return true
	}
	m.unblock(w)
	return false
}

// waitsFor reports whether q's maximum, and not something else, stops w.
func (m *Machine) waitsFor(w *want, q *queue) bool {
	a := w.attempt.app
	if w.count <= 0 || w.size == nil || !a.waits || a.current != w.attempt || !q.isAbove(a.queue) ||
		!m.t.fits(&w.size.v, &q.sized().max) {
		return false
	}
	v := m.admitQueues(a, w.size, w.own())
	return v.limit == LimitQueue && v.where == q && m.userAdmits(a.user)
}

// blockedAbove gives the topmost queue, from the application's leaf up, that
// somebody blocks; nil for none.
func (m *Machine) blockedAbove(a *app) *queue {
	if m.blockers == 0 {
		return nil
	}
	var top *queue
	for q := a.queue; q != nil; q = q.parent {
		if q.blocker != nil && m.blocked(q) {
			top = q
		}
	}
	return top
}

// endsAt reports whether the walk in order ends at c, a child of q: somebody
// below c blocks q or a queue above it, so that those after c may not pass.
func (m *Machine) endsAt(q, c *queue) bool {
	for ; q != nil && m.blockers > 0; q = q.parent {
		if w := q.blocker; w != nil && c.isAbove(w.attempt.app.queue) && m.blocked(q) {
			return true
		}
	}
	return false
}
