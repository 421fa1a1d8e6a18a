// SPDX-License-Identifier: Apache-2.0

package sched

// Under CapacityScheduler later asks do not pass an ask that its queue's maximum stops: small asks that still fit
// would take all resources released below that maximum, and a big one would never fit. So such an ask blocks the
// queue whose maximum it waits for. Nothing later in the order gets a container below that queue until the ask has
// got its container, is withdrawn, or is stopped by something else. That is Hadoop's behaviour since blocked headroom
// (an assignment skipped for a queue's limit ends the round of the leaf, and its siblings must leave the resources to
// it). An ask larger than the whole maximum blocks nothing. FairScheduler has no such rule: it tries the next in
// order.

// block notes that w waits for q's maximum, first in order below it.
func (s *Scheduler) block(q *Queue, w *Ask) {
	if !s.policy.holdsTheLine() || !s.sizes.Fits(&w.size.V, &q.sized().max) {
		return
	}
	if w.stops == q {
		return
	}
	s.unblock(w)
	if q.blocker != nil {
		q.blocker.stops = nil
	} else {
		s.blockers++
	}
	q.blocker, w.stops = w, q
}

// unblock has those tried that w held back.
func (s *Scheduler) unblock(w *Ask) {
	q := w.stops
	if q == nil {
		return
	}
	q.blocker, w.stops = nil, nil
	s.blockers--
	if !q.removed {
		s.retry(q)
	}
}

// recheck tries again the ask that waits for q's maximum, and reports whether one still does. If so, q is tried again
// when that rises. If the ask has got its container or is stopped by something else, the asks behind it are tried.
// (waitsFor only queries.)
func (s *Scheduler) recheck(q *Queue) bool {
	w := q.blocker
	if w == nil {
		return false
	}
	if !s.waitsFor(w, q) {
		s.unblock(w)
		return false
	}
	q.limited = true
	s.watch(q)
	return true
}

// waitsFor reports whether q's maximum, and not something else, stops w.
func (s *Scheduler) waitsFor(w *Ask, q *Queue) bool {
	a := w.app
	if w.count <= 0 || w.size == nil || !a.waits || !q.isAbove(a.queue) ||
		!s.sizes.Fits(&w.size.V, &q.sized().max) {
		return false
	}
	v := s.admitQueues(a, w.size, 1, w.own())
	return v.limit == LimitQueue && v.where == q && s.policy.userAdmits(s, a.user) && s.underUserCap(a.user, &w.size.V)
}

// blockedAbove returns the topmost blocked queue, from the application's leaf up; nil for none.
func (s *Scheduler) blockedAbove(a *App) *Queue {
	if s.blockers == 0 {
		return nil
	}
	var top *Queue
	for q := a.queue; q != nil; q = q.parent {
		if q.blocker != nil && s.recheck(q) {
			top = q
		}
	}
	return top
}

// endsAt reports whether the walk in order ends at c, a child of q: an ask below c blocks q or a queue above it, so
// that later ones may not pass.
func (s *Scheduler) endsAt(q, c *Queue) bool {
	for ; q != nil && s.blockers > 0; q = q.parent {
		if w := q.blocker; w != nil && c.isAbove(w.app.queue) && s.recheck(q) {
			return true
		}
	}
	return false
}
