// SPDX-License-Identifier: Apache-2.0

package sched

// An ask stopped by a limit costs nothing until that limit loosens: queues and users record that they stopped an ask.
// They are retried when something below them is released, a user stops waiting, or the cluster changes.

// touch retries a leaf, because limits of its users may have risen.
func (s *Scheduler) touch(q *Queue) {
	if q.leaf.limitedUsers == 0 && !q.parked {
		return
	}
	s.retry(q)
}

// retry schedules a try of all waiting asks below q, on any node, when the call settles.
func (s *Scheduler) retry(q *Queue) {
	s.unpark(q)
	if !q.queuedRetry {
		q.queuedRetry = true
		s.retries = append(s.retries, q)
	}
}

// freed runs when something below q was released. It retries the topmost queue on the path whose limits had stopped
// an ask, which includes the others.
func (s *Scheduler) freed(q *Queue) {
	var top *Queue
	for ; q != nil; q = q.parent {
		if q.parked {
			s.unpark(q)
			top = q
		}
		if q.limited {
			q.limited = false
			top = q
		}
	}
	if top != nil {
		s.retry(top)
	}
	s.line.mayStart()
	s.lending.again()
}

// loosen retries the asks that limits had stopped, after the cluster or the queues changed.
func (s *Scheduler) loosen() {
	for _, q := range s.tree.watched {
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
			s.line.try(q)
		}
		s.retry(q)
	}
	clear(s.tree.watched)
	s.tree.watched = s.tree.watched[:0]
	s.lending.again()
}

// watch records a queue for loosen.
func (s *Scheduler) watch(q *Queue) {
	if !q.watched {
		q.watched = true
		s.tree.watched = append(s.tree.watched, q)
	}
}

func (s *Scheduler) unpark(q *Queue) {
	if !q.parked {
		return
	}
	q.parked = false
	q.parent.parkedBelow--
	if q.slot == 0 && q.hasReady() {
		q.enter()
	}
}

func (s *Scheduler) park(q *Queue) {
	q.parked = true
	q.parent.parkedBelow++
	s.watch(q)
}

// stopped records where a limit stopped an application, so that the application is retried when the limit loosens.
func (s *Scheduler) stopped(w *Ask, v verdict) {
	switch v.limit {
	case LimitQueue:
		v.where.limited = true
		s.watch(v.where)
		if w.app.user.underCap(&w.size.V) {
			s.block(v.where, w)
		} else {
			s.userStopped(w.app) // it also waits for its user's part, and so does not stop others: see waitsFor
		}
	case LimitUser:
		s.userStopped(w.app)
	}
}

func (s *Scheduler) userStopped(a *App) {
	if !a.user.limited {
		a.user.limited = true
		a.queue.leaf.limitedUsers++
		s.watch(a.queue)
	}
}

func (s *Scheduler) unlimit(u *user) {
	if u.limited {
		u.limited = false
		u.q.leaf.limitedUsers--
	}
}
