// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// Charge books a container that already runs on a node, regardless of limits: one from before this ResourceManager
// started.
func (s *Scheduler) Charge(a *App, n *Node, size *amounts.Size) {
	if len(s.parts) > 0 {
		s, a = s.on(a, n)
	}
	n.free.AddTimes(&size.V, -1)
	s.nodes.reindex(n)
	s.charge(a, size, 1)
	a.queue.granted++
	s.changes.charged(a.queue)
}

// Release returns a container's resources. The next Schedule offers them to waiting applications.
func (s *Scheduler) Release(a *App, n *Node, size *amounts.Size) {
	if len(s.parts) > 0 {
		s, a = s.on(a, n)
	}
	n.free.Add(&size.V)
	s.nodes.reindex(n)
	s.nodes.roomOn(n)
	a.queue.released++
	s.charge(a, size, -1)
}

// Resize changes a container's size, regardless of limits.
func (s *Scheduler) Resize(a *App, n *Node, from, to *amounts.Size) {
	if len(s.parts) > 0 {
		s, a = s.on(a, n)
	}
	s.charge(a, from, -1)
	n.free.Add(&from.V)
	s.charge(a, to, 1)
	n.free.Sub(&to.V)
	s.nodes.reindex(n)
	s.nodes.roomOn(n)
}

// charge adds (sign 1) or subtracts (-1) a container's size, from the application up to the root, and updates the
// order of waiting applications.
func (s *Scheduler) charge(a *App, size *amounts.Size, sign int64) {
	s.changes.app(a)
	s.accrue(a)
	v := &size.V
	a.used.AddTimes(v, sign)
	a.containers += int32(sign)
	u, l := a.user, a.queue.leaf
	if !a.begun {
		a.begun = true
		l.begun++
	}
	// This is user.uses inlined: it runs for each grant and each release.
	u.used.AddTimes(v, sign)
	if u.waitingApps > 0 {
		l.usedByActive.AddTimes(v, sign)
	}
	if !u.unmeasured {
		l.measureLater(u)
	}
	a.rerank()
	for q := a.queue; q != nil; q = q.parent {
		q.used.AddTimes(v, sign)
		q.containers += int32(sign)
		if q.slot != 0 {
			q.rerank()
		}
	}
	if u.limited && sign < 0 {
		s.retries.touch(a.queue)
		u.unlimit()
	} else if sign > 0 && l.limitedUsers > 0 {
		s.retries.touch(a.queue) // limits grow with use
	}
	if sign < 0 {
		s.freed(a.queue)
	}
}

// freed runs when something below q was released.
func (s *Scheduler) freed(q *Queue) {
	s.retries.freed(q)
	s.line.mayStart()
	s.lending.again()
}

// accrue adds the application's use up to now, times milliseconds.
func (s *Scheduler) accrue(a *App) {
	now := s.ms()
	if dt := now - a.accrued; dt > 0 {
		if a.containers > 0 {
			a.seconds.AddTimes(&a.used, dt)
		}
		a.accrued = now
	}
}

// SetUsedOverTime sets the earlier use of a recovered application.
func (s *Scheduler) SetUsedOverTime(a *App, v amounts.Vec) { a.seconds = v }

// UsedOverTime returns the application's use up to now, times milliseconds.
func (s *Scheduler) UsedOverTime(a *App) amounts.Vec {
	v := a.seconds
	if dt := s.ms() - a.accrued; dt > 0 && a.containers > 0 {
		v.AddTimes(&a.used, dt)
	}
	for _, x := range a.parts {
		more := x.queue.s.UsedOverTime(x)
		v.Add(&more)
	}
	return v
}
