// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// Charge books a container that already runs on a node, regardless of limits: one from before this ResourceManager
// started.
func (s *Scheduler) Charge(a *App, n *Node, size *amounts.Size) {
	p := &s.main
	if len(s.labelled) > 0 {
		p, a = s.on(a, n)
	}
	p.chargeOn(a, n, size)
}

// chargeOn is Charge in one partition.
func (p *partition) chargeOn(a *App, n *Node, size *amounts.Size) {
	n.free.AddTimes(&size.V, -1)
	p.nodes.reindex(n)
	p.charge(a, size, 1)
	a.queue.granted++
	p.changes.charged(a.queue)
}

// Release returns a container's resources. The next Schedule offers them to waiting applications.
func (s *Scheduler) Release(a *App, n *Node, size *amounts.Size) {
	p := &s.main
	if len(s.labelled) > 0 {
		p, a = s.on(a, n)
	}
	n.free.Add(&size.V)
	p.nodes.reindex(n)
	p.nodes.roomOn(n)
	a.queue.released++
	p.charge(a, size, -1)
}

// Resize changes a container's size, regardless of limits.
func (s *Scheduler) Resize(a *App, n *Node, from, to *amounts.Size) {
	p := &s.main
	if len(s.labelled) > 0 {
		p, a = s.on(a, n)
	}
	p.resizeOn(a, n, from, to)
}

// resizeOn is Resize in one partition.
func (p *partition) resizeOn(a *App, n *Node, from, to *amounts.Size) {
	p.charge(a, from, -1)
	n.free.Add(&from.V)
	p.charge(a, to, 1)
	n.free.Sub(&to.V)
	p.nodes.reindex(n)
	p.nodes.roomOn(n)
}

// charge adds (sign 1) or subtracts (-1) a container's size, from the application up to the root, and updates the
// order of waiting applications.
func (p *partition) charge(a *App, size *amounts.Size, sign int64) {
	p.changes.app(a)
	p.accrue(a)
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
		p.retries.touch(a.queue)
		u.unlimit()
	} else if sign > 0 && l.limitedUsers > 0 {
		p.retries.touch(a.queue) // limits grow with use
	}
	if sign < 0 {
		p.freed(a.queue)
	}
}

// freed runs when something below q was released.
func (p *partition) freed(q *Queue) {
	p.retries.freed(q)
	p.cluster.line.mayStart()
	p.lendAgain()
}

// accrue adds the application's use up to now, times milliseconds.
func (p *partition) accrue(a *App) {
	now := p.ms()
	if dt := now - a.accrued; dt > 0 {
		if a.containers > 0 {
			a.seconds.AddTimes(&a.used, dt)
		}
		a.accrued = now
	}
}

// SetUsedOverTime sets the earlier use of a recovered application.
func (a *App) SetUsedOverTime(v amounts.Vec) { a.seconds = v }

// UsedOverTime returns an application's use up to now, times milliseconds.
func (s *Scheduler) UsedOverTime(a *App) amounts.Vec {
	v := a.seconds
	if dt := s.main.ms() - a.accrued; dt > 0 && a.containers > 0 {
		v.AddTimes(&a.used, dt)
	}
	for _, x := range a.parts {
		more := s.UsedOverTime(x)
		v.Add(&more)
	}
	return v
}
