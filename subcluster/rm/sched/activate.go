// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Activation: an application in a queue waits until its AM may run. The queue's share for AMs, the user's part of it,
// and the limits on concurrent applications decide that (limits_am.go). Only then does it ask for containers.

// Enqueue adds an application to the line for activation. am is its ask at activation, nil if its AM needs no
// container.
func (l *Line) Enqueue(a *App, am *AMAsk) {
	a.am = am
	if am != nil {
		l.SetAMLabel(a, am.Label)
	}
	l.push(a)
}

// SetAMLabel sets the partition whose AM limits count the AM of an application that is not activated yet.
func (l *Line) SetAMLabel(a *App, label string) {
	a.amPart = nil
	if p := l.s.partitionOr(label); p != &l.s.main {
		a.amPart = l.s.appIn(a, p)
	}
}

// activate starts as many applications of a leaf as possible, in order. It skips users at a limit; a queue at a limit
// ends the round.
func (l *Line) activate(q *Queue) {
	leaf := q.leaf
	var aside []*user
	var passed []*App
	for leaf.pending.Len() > 0 {
		u := leaf.pending.Top()
		a := u.pending.Top()
		limit, where := l.mayActivate(a, inDecisions)
		if limit == explain.LimitNone {
			l.remove(a)
			l.Activate(a)
			continue
		}
		if len(l.s.labelled) > 0 && (limit == explain.LimitAM || limit == explain.LimitUserAM) {
			// The limit applies to one partition: AMs of other partitions may start.
			if u.pending.Remove(a); u.pending.Len() == 0 {
				leaf.pending.Remove(u)
			} else {
				leaf.pending.Fix(u)
			}
			passed = append(passed, a)
			continue
		}
		if limit == explain.LimitUserAM || where == nil {
			leaf.pending.Remove(u)
			aside = append(aside, u)
			continue
		}
		break
	}
	for _, u := range aside {
		if u.pending.Len() > 0 && u.pendSlot == 0 {
			leaf.pending.Push(u)
		}
	}
	for _, a := range passed {
		u := a.user
		if u.pending.Push(a); u.pendSlot == 0 {
			leaf.pending.Push(u)
		} else {
			leaf.pending.Fix(u)
		}
	}
	l.activateUnmanaged(q)
	if leaf.pending.Len() > 0 {
		l.s.main.retries.watch(q) // loosen, a possible caller, has removed it
		l.hold(q)
	}
}

// activateUnmanaged starts applications whose AM runs elsewhere, even if the AM share stops others. An application
// that runs in one subcluster waits for its containers of another; if both waited behind AMs in line, neither would
// ever end.
func (l *Line) activateUnmanaged(q *Queue) {
	for i := 0; i < len(q.leaf.unmanaged); {
		a := q.leaf.unmanaged[i]
		limit, where := l.mayActivate(a, inDecisions)
		switch {
		case limit == explain.LimitNone:
			l.Activate(a) // and leaves the line
		case where != nil:
			return // the queue runs its maximum number
		default:
			i++
		}
	}
}

// start starts the first applications of a leaf that is due for a try, or makes a held leaf due; false if there is
// neither.
func (l *Line) start() bool {
	if q, due := take(&l.due); due {
		q.leaf.queuedActivate = false
		l.activate(q)
		return true
	}
	if l.tries > 0 && l.tryHeld() {
		l.tries--
		return true
	}
	return false
}

// amTries is the number of leaves with applications in line that one Schedule tries after a release elsewhere; the
// next Schedule tries further ones.
const amTries = 8

// amEvery is the minimum pause between two tries of a leaf in which applications stay in line. A try iterates over
// all users in line, and containers end thousands of times a second.
const amEvery = int64(100 * time.Millisecond)

// tryHeld tries the leaf whose last try is the oldest, and reports whether one was due.
func (l *Line) tryHeld() bool {
	p := &l.s.main
	if at := p.tree.sharesAt; l.heldDue == 0 && len(l.held) > 0 && at != 0 && p.now-at >= shareRefresh {
		p.tree.refreshShares(inDecisions) // for FairScheduler, whose limit depends on the shares
		l.mayStart()
	}
	if l.heldDue == 0 {
		return false
	}
	q := l.held[0]
	if q.leaf != nil && p.now-q.leaf.heldAt < amEvery {
		return false // nor are the leaves after it
	}
	l.heldDue--
	l.held = l.held[1:]
	if q.leaf == nil || q.lifetime.removed {
		return true // the tree has changed since
	}
	q.leaf.heldAMs = false
	l.try(q)
	return true
}

// Activate lets an application's AM run, regardless of limits, and tries its asks.
func (l *Line) Activate(a *App) {
	l.remove(a)
	l.setRunning(a)
	if a.am != nil {
		l.askForAM(a)
	}
	l.s.Serve(a)
}

// setRunning counts an application among those that run.
func (l *Line) setRunning(a *App) {
	l.s.main.changes.app(a)
	a.activated = true
	for _, x := range a.parts {
		x.activated = true
		x.queue.part.enroll(x)
	}
	a.user.running++
	a.user.setInLine()
	for q := a.queue; q != nil; q = q.parent {
		q.apps.running++
	}
	n := l.running[a.user.name]
	if n == nil {
		n = new(int)
		l.running[a.user.name] = n
	}
	*n++
	if a.amSize != nil {
		a.chargeAM(1)
	}
}

// chargeAM adds its AM to the sums of AMs (sign 1), or subtracts it (-1).
func (a *App) chargeAM(sign int64) {
	v := &a.amSize.V
	if a.amPart != nil {
		a = a.amPart
	}
	a.queue.leaf.amUsed.AddTimes(v, sign)
	a.user.amUsed.AddTimes(v, sign)
	a.amUsed.AddTimes(v, sign)
}

// Deactivate removes an application from the running ones, or from the line.
func (l *Line) Deactivate(a *App) {
	l.remove(a)
	if !a.activated {
		l.try(a.queue) // those behind it may have waited for it
		return
	}
	p := &l.s.main
	p.changes.app(a)
	a.activated = false
	for _, x := range a.parts {
		x.activated = false
		x.queue.part.enroll(x)
	}
	a.user.running--
	a.user.setInLine()
	blocked := false
	for q := a.queue; q != nil; q = q.parent {
		blocked = blocked || q.settings.full(q.apps.running)
		q.apps.running--
	}
	if n := l.running[a.user.name]; n != nil {
		blocked = blocked || l.userMaxApps(a.user.name) > 0
		if *n--; *n == 0 {
			delete(l.running, a.user.name)
		}
	}
	if a.amSize != nil {
		a.chargeAM(-1)
	}
	p.enroll(a)
	l.try(a.queue)
	if blocked {
		// Other leaves may have applications under the same limit.
		for _, q := range p.tree.all {
			if q.leaf != nil && !q.lifetime.removed {
				l.try(q)
			}
		}
	}
}
