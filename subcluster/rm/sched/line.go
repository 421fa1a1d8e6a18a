// SPDX-License-Identifier: Apache-2.0

package sched

import "slices"

// Line returns the line of applications.
func (s *Scheduler) Line() *Line { return &s.line }

// push adds an application to the line of its leaf.
func (l *Line) push(a *App) {
	u, leaf := a.user, a.queue.leaf
	leaf.pendingApps++
	l.s.main.retries.watch(a.queue)
	u.pending.Push(a)
	if u.pendSlot == 0 {
		leaf.pending.Push(u)
	} else {
		leaf.pending.Fix(u)
	}
	u.setInLine()
	a.countInLine(1)
	if a.amSize == nil {
		leaf.unmanaged = append(leaf.unmanaged, a)
	}
	l.try(a.queue)
}

// remove removes an application that may be in line.
func (l *Line) remove(a *App) {
	if a.pendSlot == 0 {
		return
	}
	u, leaf := a.user, a.queue.leaf
	leaf.pendingApps--
	a.countInLine(-1)
	if a.amSize == nil {
		i := slices.Index(leaf.unmanaged, a)
		leaf.unmanaged = slices.Delete(leaf.unmanaged, i, i+1)
	}
	u.pending.Remove(a)
	u.setInLine()
	if u.pending.Len() == 0 {
		if u.pendSlot != 0 {
			leaf.pending.Remove(u)
		}
	} else {
		leaf.pending.Fix(u)
	}
}

// reorder moves an application in line, after a change of its priority.
func (l *Line) reorder(a *App) {
	if a.pendSlot != 0 {
		a.user.pending.Fix(a)
		a.queue.leaf.pending.Fix(a.user)
		l.try(a.queue)
	}
}

// countInLine adds its AM's resources to the sum of AMs in line (sign 1), or subtracts them (-1).
func (a *App) countInLine(sign int64) {
	if a.amSize == nil {
		return
	}
	q := a.queue
	if a.amPart != nil {
		q = a.amPart.queue
	}
	for ; q != nil; q = q.parent {
		q.apps.line(&a.amSize.V, sign)
	}
}

// setInLine counts a user whose applications are all in line; it must run after every change of that.
func (u *user) setInLine() {
	switch in := u.running == 0 && u.pending.Len() > 0; {
	case in && !u.inLine:
		u.q.leaf.inLine++
		u.inLine = true
	case !in && u.inLine:
		u.q.leaf.inLine--
		u.inLine = false
	}
}

// wanting is the number of users of a leaf that want containers, or the start of their first application.
func (q *Queue) wanting() int {
	n := q.leaf.active
	if q.part.label != "" {
		q = q.part.cluster.main.tree.at(q.path)
	}
	return n + q.leaf.inLine
}

// try schedules a try of the applications in line of a leaf.
func (l *Line) try(q *Queue) {
	if q.leaf.pendingApps > 0 && !q.leaf.queuedActivate {
		q.leaf.queuedActivate = true
		l.due = append(l.due, q)
	}
}

// hold records a leaf in which applications stay in line.
func (l *Line) hold(q *Queue) {
	if !q.leaf.heldAMs {
		q.leaf.heldAMs, q.leaf.heldAt = true, l.s.main.now
		l.held = append(l.held, q)
	}
}

// mayStart schedules a try for leaves with applications in line. The AM share is a share of the queue's current
// limit, which rises when other queues release resources. A user's part of it rises when other users of the queue are
// satisfied.
func (l *Line) mayStart() {
	l.heldDue = len(l.held)
}
