// SPDX-License-Identifier: Apache-2.0

package sched

// Under CapacityScheduler, later asks may not pass an ask that its queue's maximum stops. Otherwise small asks that
// still fit would take all resources released below that maximum, and a big one would never fit. So such an ask
// blocks the queue whose maximum it waits for. Nothing later in the order gets a container below that queue until the
// ask has got its container, is withdrawn, or is stopped for another reason. Hadoop has done so since blocked
// headroom. An assignment skipped for a queue's limit ends the round of the leaf, and its siblings must leave the
// resources to it. An ask larger than the whole maximum blocks nothing. FairScheduler has no such rule: it tries the
// next ask in order.

// block records that w, first in order below q, waits for q's maximum.
func (s *Scheduler) block(q *Queue, w *Ask) {
	if !s.policy.holdsTheLine || !s.sizes.Fits(&w.size.V, &q.sized().max) {
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

// unblock retries the asks that w stopped.
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

// recheck checks the ask that waits for q's maximum, and reports whether it still waits. If so, q is retried when its
// limit rises. If not, the asks behind it are retried. (waitsFor changes nothing.)
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

// waitsFor reports whether q's maximum, and no other reason, stops w.
func (s *Scheduler) waitsFor(w *Ask, q *Queue) bool {
	a := w.app
	if w.count <= 0 || w.size == nil || !a.waits || !q.isAbove(a.queue) ||
		!s.sizes.Fits(&w.size.V, &q.sized().max) {
		return false
	}
	v := a.admitQueues(w.size, 1, w.own())
	return v.limit == LimitQueue && v.where == q && s.policy.userAdmits(s, a.user) && a.user.underCap(&w.size.V)
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

// endsAt reports whether the walk in order ends at c, a child of q. It does if an ask below c blocks q or a queue
// above it, so that later asks may not pass.
func (s *Scheduler) endsAt(q, c *Queue) bool {
	for ; q != nil && s.blockers > 0; q = q.parent {
		if w := q.blocker; w != nil && c.isAbove(w.app.queue) && s.recheck(q) {
			return true
		}
	}
	return false
}
