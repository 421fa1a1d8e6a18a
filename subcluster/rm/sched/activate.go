// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"time"
)

// Activation: an application in a queue waits until its AM may run. The queue's share for AMs, the user's part of it,
// and the limits on concurrent applications decide that. Only then does it ask for containers.

// Enqueue adds an application to the line for activation. am is its ask at activation, nil if its AM needs no
// container.
func (s *Scheduler) Enqueue(a *App, am *AMAsk) {
	a.am = am
	if am != nil {
		s.SetAMLabel(a, am.Label)
	}
	s.enqueue(a)
}

// SetAMLabel sets the partition whose AM limits count the AM of an application that is not activated yet.
func (s *Scheduler) SetAMLabel(a *App, label string) {
	a.amPart = nil
	if p := s.partitionOr(label); p != s {
		a.amPart = s.appIn(a, p)
	}
}

func (s *Scheduler) enqueue(a *App) {
	u, l := a.user, a.queue.leaf
	l.pendingApps++
	s.watch(a.queue)
	u.pending.Push(a)
	if u.pendSlot == 0 {
		l.pending.Push(u)
	} else {
		l.pending.Fix(u)
	}
	u.setInLine()
	a.countInLine(1)
	if a.amSize == nil {
		l.unmanaged = append(l.unmanaged, a)
	}
	s.activateLater(a.queue)
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
		q.inLine.AddTimes(&a.amSize.V, sign)
		q.inLineCount += int32(sign)
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
	if main := q.s.main; main != nil {
		q = main.tree.byPath[q.path]
	}
	return n + q.leaf.inLine
}

func (s *Scheduler) dequeue(a *App) {
	if a.pendSlot == 0 {
		return
	}
	u, l := a.user, a.queue.leaf
	l.pendingApps--
	a.countInLine(-1)
	if a.amSize == nil {
		i := slices.Index(l.unmanaged, a)
		l.unmanaged = slices.Delete(l.unmanaged, i, i+1)
	}
	u.pending.Remove(a)
	u.setInLine()
	if u.pending.Len() == 0 {
		if u.pendSlot != 0 {
			l.pending.Remove(u)
		}
	} else {
		l.pending.Fix(u)
	}
}

// activateApps starts as many applications as possible, in order. It skips users at a limit; a queue at a limit ends
// the round.
func (s *Scheduler) activateApps(q *Queue) {
	l := q.leaf
	var aside []*user
	var passed []*App
	for l.pending.Len() > 0 {
		u := l.pending.Top()
		a := u.pending.Top()
		limit, where := s.mayActivate(a, inDecisions)
		if limit == LimitNone {
			s.dequeue(a)
			s.Activate(a)
			continue
		}
		if len(s.parts) > 0 && (limit == LimitAM || limit == LimitUserAM) {
			// The limit applies to one partition: AMs of other partitions may start.
			if u.pending.Remove(a); u.pending.Len() == 0 {
				l.pending.Remove(u)
			} else {
				l.pending.Fix(u)
			}
			passed = append(passed, a)
			continue
		}
		if limit == LimitUserAM || where == nil {
			l.pending.Remove(u)
			aside = append(aside, u)
			continue
		}
		break
	}
	for _, u := range aside {
		if u.pending.Len() > 0 && u.pendSlot == 0 {
			l.pending.Push(u)
		}
	}
	for _, a := range passed {
		u := a.user
		if u.pending.Push(a); u.pendSlot == 0 {
			l.pending.Push(u)
		} else {
			l.pending.Fix(u)
		}
	}
	s.activateUnmanaged(q)
	if l.pending.Len() > 0 {
		s.watch(q) // loosen, a possible caller, has removed it
		s.holdAMs(q)
	}
}

// activateUnmanaged starts applications whose AM runs elsewhere, even if the AM share stops others. An application
// that runs in one subcluster waits for its containers of another; if both waited behind AMs in line, neither would
// ever end.
func (s *Scheduler) activateUnmanaged(q *Queue) {
	for i := 0; i < len(q.leaf.unmanaged); {
		a := q.leaf.unmanaged[i]
		limit, where := s.mayActivate(a, inDecisions)
		switch {
		case limit == LimitNone:
			s.Activate(a) // and leaves the line
		case where != nil:
			return // the queue runs its maximum number
		default:
			i++
		}
	}
}

// holdAMs records a leaf in which applications stay in line.
func (s *Scheduler) holdAMs(q *Queue) {
	if !q.leaf.heldAMs {
		q.leaf.heldAMs, q.leaf.heldAt = true, s.now
		s.tree.heldAMs = append(s.tree.heldAMs, q)
	}
}

// amsMayStart schedules a try for leaves with applications in line. The AM share is a share of the queue's current
// limit, which rises when other queues release resources. A user's part of it rises when other users of the queue are
// satisfied.
func (s *Scheduler) amsMayStart() {
	if s.main != nil {
		s = s.main
	}
	s.tree.amsDue = len(s.tree.heldAMs)
}

// amTries is the number of leaves with applications in line that one Schedule tries after a release elsewhere; the
// next Schedule tries further ones.
const amTries = 8

// amEvery is the minimum pause between two tries of a leaf in which applications stay in line. A try iterates over
// all users in line, and containers end thousands of times a second.
const amEvery = int64(100 * time.Millisecond)

// tryHeldAMs tries the leaf whose last try is the oldest, and reports whether one was due.
func (s *Scheduler) tryHeldAMs() bool {
	t := &s.tree
	if t.amsDue == 0 && len(t.heldAMs) > 0 && t.sharesAt != 0 && s.now-t.sharesAt >= shareRefresh {
		s.refreshShares(inDecisions) // for FairScheduler, whose limit depends on the shares
		s.amsMayStart()
	}
	if t.amsDue == 0 {
		return false
	}
	q := t.heldAMs[0]
	if q.leaf != nil && s.now-q.leaf.heldAt < amEvery {
		return false // nor are the leaves after it
	}
	t.amsDue--
	t.heldAMs = t.heldAMs[1:]
	if q.leaf == nil || q.removed {
		return true // the tree has changed since
	}
	q.leaf.heldAMs = false
	s.activateLater(q)
	return true
}

// atOnce returns the limit on concurrent applications that stops a, and its queue.
func (s *Scheduler) atOnce(a *App) (Limit, *Queue) {
	for q := a.queue; q != nil; q = q.parent {
		if q.maxRunning != 0 && q.running >= q.maxRunning {
			return LimitParallelApps, q
		}
	}
	if most := s.userMaxApps(a.user.name); most != 0 && countOf(s.userRunning[a.user.name]) >= most {
		return LimitParallelApps, nil
	}
	return LimitNone, nil
}

// countOf is the number of a user's running applications in the cluster; nil is 0.
func countOf(running *int) int {
	if running == nil {
		return 0
	}
	return *running
}

// mayActivate returns the limit that prevents the start of a's AM, and its queue.
func (s *Scheduler) mayActivate(a *App, set shareSet) (Limit, *Queue) {
	if limit, where := s.atOnce(a); limit != LimitNone {
		return limit, where
	}
	if a.amSize == nil {
		return LimitNone, nil
	}
	size := a.amSize
	first := a.queue.running == 0
	if a.amPart != nil {
		a = a.amPart
		s = a.queue.s
	}
	q := a.queue
	all, one := s.amLimit(q, a.user, set)
	with := q.leaf.amUsed
	with.Add(&size.V)
	// One AM may always start per queue, not per user.
	if first = first || q.leaf.amUsed.IsZero(); first && s.policy.oneAMAlways {
		return LimitNone, nil
	}
	if !s.sizes.Fits(&with, &all) {
		return LimitAM, q
	}
	with = a.user.amUsed
	with.Add(&size.V)
	if !s.sizes.Fits(&with, &one) {
		return LimitUserAM, q
	}
	return LimitNone, nil
}

func (s *Scheduler) userMaxApps(user string) int {
	for _, u := range s.tree.spec.UserMaxApps {
		if u.User == user {
			return u.Max
		}
	}
	return s.tree.spec.UserMaxAppsDefault
}

// Activate lets an application's AM run, regardless of limits, and tries its asks.
func (s *Scheduler) Activate(a *App) {
	s.dequeue(a)
	s.setRunning(a)
	if a.am != nil {
		s.askForAM(a)
	}
	s.Serve(a)
}

// setRunning counts an application among those that run.
func (s *Scheduler) setRunning(a *App) {
	s.appChanged(a)
	a.activated = true
	for _, x := range a.parts {
		x.activated = true
		x.queue.s.enroll(x)
	}
	a.user.running++
	a.user.setInLine()
	for q := a.queue; q != nil; q = q.parent {
		q.running++
	}
	n := s.userRunning[a.user.name]
	if n == nil {
		n = new(int)
		s.userRunning[a.user.name] = n
	}
	*n++
	if a.amSize != nil {
		s.chargeAM(a, 1)
	}
}

func (s *Scheduler) chargeAM(a *App, sign int64) {
	v := &a.amSize.V
	if a.amPart != nil {
		a = a.amPart
	}
	a.queue.leaf.amUsed.AddTimes(v, sign)
	a.user.amUsed.AddTimes(v, sign)
	a.amUsed.AddTimes(v, sign)
}

// Deactivate removes an application from the running ones, or from the line.
func (s *Scheduler) Deactivate(a *App) {
	s.dequeue(a)
	if !a.activated {
		s.activateLater(a.queue) // those behind it may have waited for it
		return
	}
	s.appChanged(a)
	a.activated = false
	for _, x := range a.parts {
		x.activated = false
		x.queue.s.enroll(x)
	}
	if s.main != nil {
		s.enroll(a) // applications are counted in the default partition
		return
	}
	a.user.running--
	a.user.setInLine()
	blocked := false
	for q := a.queue; q != nil; q = q.parent {
		blocked = blocked || q.maxRunning != 0 && q.running >= q.maxRunning
		q.running--
	}
	if n := s.userRunning[a.user.name]; n != nil {
		blocked = blocked || s.userMaxApps(a.user.name) > 0
		if *n--; *n == 0 {
			delete(s.userRunning, a.user.name)
		}
	}
	if a.amSize != nil {
		s.chargeAM(a, -1)
	}
	s.enroll(a)
	s.activateLater(a.queue)
	if blocked {
		// Other leaves may have applications under the same limit.
		for _, q := range s.tree.all {
			if q.leaf != nil && !q.removed {
				s.activateLater(q)
			}
		}
	}
}
