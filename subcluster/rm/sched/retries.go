// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/explain"

// touch retries a leaf, because limits of its users may have risen.
func (r *retries) touch(q *Queue) {
	if q.leaf.limitedUsers == 0 && !q.stopped.parked {
		return
	}
	r.add(q)
}

// add schedules a try of all waiting asks below q, on any node, when the call settles.
func (r *retries) add(q *Queue) {
	q.unpark()
	if !q.stopped.queued {
		q.stopped.queued = true
		r.due = append(r.due, q)
	}
}

// take removes and returns a queue to try; false if there is none.
func (r *retries) take() (*Queue, bool) {
	q, due := take(&r.due)
	if due {
		q.stopped.queued = false
	}
	return q, due
}

// freed runs when something below q was released. It retries the topmost queue on the path whose limits had stopped
// an ask, which includes the others.
func (r *retries) freed(q *Queue) {
	var top *Queue
	for ; q != nil; q = q.parent {
		if q.stopped.parked {
			q.unpark()
			top = q
		}
		if q.stopped.limited {
			q.stopped.limited = false
			top = q
		}
	}
	if top != nil {
		r.add(top)
	}
}

// loosen retries the asks that limits had stopped, after the cluster or the queues changed. It calls leaf for each
// leaf among their queues.
func (r *retries) loosen(leaf func(*Queue)) {
	for _, q := range r.watched {
		q.stopped.watched = false
		if q.lifetime.removed {
			continue
		}
		q.stopped.limited = false
		if q.leaf != nil {
			for _, u := range q.leaf.userList {
				u.limited = false
			}
			q.leaf.limitedUsers = 0
			leaf(q)
		}
		r.add(q)
	}
	clear(r.watched)
	r.watched = r.watched[:0]
}

// watch records a queue for loosen.
func (r *retries) watch(q *Queue) {
	if !q.stopped.watched {
		q.stopped.watched = true
		r.watched = append(r.watched, q)
	}
}

// park records that only a change of q's own limits can help the asks below it. The walk has removed q from the order.
func (r *retries) park(q *Queue) {
	q.stopped.parked = true
	q.parent.stopped.below++
	r.watch(q)
}

// stop records where a limit stopped an application, so that the application is retried when the limit loosens.
func (r *retries) stop(w *Ask, v verdict) {
	switch v.limit {
	case explain.LimitQueue:
		v.where.stopped.limited = true
		r.watch(v.where)
		if w.app.user.underCap(&w.size.V) {
			r.block(v.where, w)
		} else {
			r.stopUser(w.app) // it also waits for its user's part, and so does not stop others: see waitsFor
		}
	case explain.LimitUser:
		r.stopUser(w.app)
	}
}

// stopUser records that the user's limit stopped an application.
func (r *retries) stopUser(a *App) {
	if !a.user.limited {
		a.user.limited = true
		a.queue.leaf.limitedUsers++
		r.watch(a.queue)
	}
}

// Under CapacityScheduler, later asks may not pass an ask that its queue's maximum stops. Otherwise small asks that
// still fit would take all resources released below that maximum, and a big one would never fit. So such an ask
// blocks the queue whose maximum it waits for. Nothing later in the order gets a container below that queue until the
// ask has got its container, is withdrawn, or is stopped for another reason. Hadoop has done so since blocked
// headroom. An assignment skipped for a queue's limit ends the round of the leaf, and its siblings must leave the
// resources to it. An ask larger than the whole maximum blocks nothing. FairScheduler has no such rule: it tries the
// next ask in order.

// block records that w, first in order below q, waits for q's maximum.
func (r *retries) block(q *Queue, w *Ask) {
	if !q.part.policy.holdsTheLine || !q.part.sizes.Fits(&w.size.V, &q.sized().bounds.max) {
		return
	}
	if w.stops == q {
		return
	}
	r.unblock(w)
	if q.stopped.blocker != nil {
		q.stopped.blocker.stops = nil
	} else {
		r.blocked++
	}
	q.stopped.blocker, w.stops = w, q
}

// unblock retries the asks that w stopped.
func (r *retries) unblock(w *Ask) {
	q := w.stops
	if q == nil {
		return
	}
	q.stopped.blocker, w.stops = nil, nil
	r.blocked--
	if !q.lifetime.removed {
		r.add(q)
	}
}

// recheck checks the ask that waits for q's maximum, and reports whether it still waits. If so, q is retried when its
// limit rises. If not, the asks behind it are retried. (waitsFor changes nothing.)
func (r *retries) recheck(q *Queue) bool {
	w := q.stopped.blocker
	if w == nil {
		return false
	}
	if !w.waitsFor(q) {
		r.unblock(w)
		return false
	}
	q.stopped.limited = true
	r.watch(q)
	return true
}

// waitsFor reports whether q's maximum, and no other reason, stops w.
func (w *Ask) waitsFor(q *Queue) bool {
	a, p := w.app, q.part
	if w.count <= 0 || w.size == nil || !a.waits || !q.isAbove(a.queue) ||
		!p.sizes.Fits(&w.size.V, &q.sized().bounds.max) {
		return false
	}
	v := a.admitQueues(w.size, 1, w.own())
	return v.limit == explain.LimitQueue && v.where == q && p.policy.userAdmits(p, a.user) && a.user.underCap(&w.size.V)
}

// blockedAbove returns the topmost blocked queue, from the application's leaf up; nil for none.
func (r *retries) blockedAbove(a *App) *Queue {
	if r.blocked == 0 {
		return nil
	}
	var top *Queue
	for q := a.queue; q != nil; q = q.parent {
		if q.stopped.blocker != nil && r.recheck(q) {
			top = q
		}
	}
	return top
}

// endsAt reports whether the walk in order ends at c, a child of q. It does if an ask below c blocks q or a queue
// above it, so that later asks may not pass.
func (r *retries) endsAt(q, c *Queue) bool {
	for ; q != nil && r.blocked > 0; q = q.parent {
		if w := q.stopped.blocker; w != nil && c.isAbove(w.app.queue) && r.recheck(q) {
			return true
		}
	}
	return false
}

// unpark returns a parked queue to the order.
func (q *Queue) unpark() {
	if !q.stopped.parked {
		return
	}
	q.dropPark()
	if q.slot == 0 && q.hasReady() {
		q.enter()
	}
}

// dropPark is unpark for a queue with nothing that waits, or a removed one.
func (q *Queue) dropPark() {
	if q.stopped.parked {
		q.stopped.parked = false
		q.parent.stopped.below--
	}
}

// unlimit records that the user's limit stops nothing.
func (u *user) unlimit() {
	if u.limited {
		u.limited = false
		u.q.leaf.limitedUsers--
	}
}

// take removes and returns the last entry of a list.
func take[T any](list *[]T) (last T, any bool) {
	k := len(*list) - 1
	if k < 0 {
		return last, false
	}
	last, *list = (*list)[k], (*list)[:k]
	return last, true
}
