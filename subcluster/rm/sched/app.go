// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// AddApp registers an application, in no queue yet. am is the size of its AM, nil if the AM runs without a container.
// Owner returns owner; the scheduler does not use it.
func (s *Scheduler) AddApp(a *App, id creel.ApplicationID, owner any, am *amounts.Size, priority int32) {
	s.seq++
	*a = App{id: id, owner: owner, amSize: am, priority: priority, seq: s.seq, accrued: s.main.ms()}
	a.tagged.ID = id
}

// Refuses returns the reason why an application of a user cannot enter the queue, "" if it can. The texts are those
// of FairScheduler and CapacityScheduler.
func (q *Queue) Refuses(id creel.ApplicationID, user string) string {
	if q.leaf == nil {
		return fmt.Sprintf("Application %s submitted by user %s to non-leaf queue: %s", id, user, q.path)
	}
	if state := q.StateNow(); state != creel.QueueRunning {
		return fmt.Sprintf("Queue %s is %s. Cannot accept submission of application: %s", q.path, state, id)
	}
	l := q.sized().leaf
	if l.full() {
		return fmt.Sprintf("Queue %s already has %d applications, cannot accept submission of application: %s",
			q.path, l.apps, id)
	}
	has := 0
	if u := l.byName[user]; u != nil {
		has = u.total
	}
	if l.maxUserApps >= 0 && has >= l.maxUserApps {
		return fmt.Sprintf(
			"Queue %s already has %d applications from user %s cannot accept submission of application: %s",
			q.path,
			l.maxUserApps,
			user,
			id,
		)
	}
	return ""
}

// full reports whether a leaf has its maximum number of applications.
func (l *leafState) full() bool { return l.maxApps >= 0 && l.apps >= l.maxApps }

// Enter adds an application of a user to a leaf.
func (s *Scheduler) Enter(a *App, q *Queue, user string) { s.main.enter(a, q, user) }

func (p *partition) enter(a *App, q *Queue, user string) {
	a.queue, a.user, a.inQueue, a.accrued = q, q.user(user), true, p.ms()
	a.user.total++
	if q.leaf.apps++; q.leaf.apps == 1 {
		p.tree.actives++
	}
	if a.begun {
		q.leaf.begun++
	}
	p.cluster.timers.stop(&q.lifetime.idle)
}

// Leave removes an application from its queue. The application has no asks and no containers and is not activated, or
// it moves.
func (s *Scheduler) Leave(a *App) {
	for _, x := range a.parts {
		x.queue.part.leave(x)
	}
	s.main.leave(a)
}

func (p *partition) leave(a *App) {
	if !a.inQueue {
		return
	}
	p.accrue(a)
	q := a.queue
	a.inQueue = false
	a.user.total--
	if q.leaf.apps--; q.leaf.apps == 0 {
		p.tree.actives++
	}
	if a.begun {
		q.leaf.begun--
	}
	q.forget(a.user)
	p.idle(q)
}

// SetOpen sets whether the owner permits containers for an application. A closed application keeps its asks and use,
// but leaves the order of service at once and loses its reserved nodes.
func (s *Scheduler) SetOpen(a *App, open bool) {
	for _, x := range a.parts {
		x.queue.part.setOpen(x, open)
	}
	s.main.setOpen(a, open)
}

// setOpen is SetOpen in one partition.
func (p *partition) setOpen(a *App, open bool) {
	if a.open == open {
		return
	}
	p.changes.app(a)
	a.open = open
	if !open {
		for _, w := range a.asks {
			p.retries.unblock(w)
			if w.hold != nil {
				p.reservations.drop(w.hold)
			}
		}
	}
	p.enroll(a)
}

// Begun reports whether an application has had a container.
func (a *App) Begun() bool {
	for _, x := range a.parts {
		if x.begun {
			return true
		}
	}
	return a.begun
}

// runnable reports whether it may be granted containers.
func (a *App) runnable() bool { return a.activated && a.open }

// SetPriority changes an application's priority in its leaf.
func (s *Scheduler) SetPriority(a *App, priority int32) {
	for _, x := range a.parts {
		x.setPriority(priority)
	}
	a.setPriority(priority)
	s.line.reorder(a)
}

// setPriority is SetPriority in one partition.
func (a *App) setPriority(priority int32) {
	a.priority = priority
	if a.slot != 0 {
		a.user.apps.Fix(a)
		a.queue.users.Fix(a.user)
	}
}

// enroll adds an application to the waiting ones or removes it, depending on its asks. It must run after every change
// of its asks or of the result of runnable.
func (p *partition) enroll(a *App) {
	if a.queue == nil {
		return
	}
	waits := a.pendingCount > 0 && a.runnable()
	if waits != a.waits {
		p.setWaits(a, waits)
	}
	if !waits {
		return
	}
	least := amounts.Unlimited
	for _, w := range a.asks {
		if w.count > 0 && w.size != nil {
			least.Min(&w.size.V)
		}
	}
	a.least = least
	u, q := a.user, a.queue
	if a.slot == 0 {
		a.ratio = q.share(a)
		u.apps.Push(a)
		if u.slot == 0 {
			q.users.Push(u)
		} else {
			q.users.Fix(u)
		}
	}
	for ; q.parent != nil; q = q.parent {
		q.least.Min(&least)
		if q.stopped.parked {
			q.stopped.limited = true // no ask was tried: a later release must retry
			q.unpark()
		} else if q.slot == 0 {
			q.enter()
		}
	}
	q.least.Min(&least)
}

// setWaits maintains the active users of a leaf, by whom user limits divide. It removes an application that no longer
// waits from the order.
func (p *partition) setWaits(a *App, waits bool) {
	p.changes.app(a)
	a.waits = waits
	if waits {
		p.cluster.lending.mayBorrow(a)
	}
	u, q := a.user, a.queue
	l := q.leaf
	if waits {
		p.waiting++
		if u.waitingApps++; u.waitingApps == 1 {
			l.active++
			l.weights += u.weight
			l.usedByActive.Add(&u.used)
		}
		return
	}
	p.waiting--
	if u.waitingApps--; u.waitingApps == 0 {
		l.active--
		l.weights -= u.weight
		l.usedByActive.Sub(&u.used)
		if l.active == 0 {
			l.weights = 0
		}
		p.retries.touch(q) // fewer users share: the others' limits rise
		p.cluster.line.mayStart()
	}
	if a.slot == 0 {
		return
	}
	u.apps.Remove(a)
	if u.apps.Len() > 0 {
		q.users.Fix(u)
		return
	}
	if u.slot != 0 {
		q.users.Remove(u)
	}
	for ; q.parent != nil && !q.hasReady(); q = q.parent {
		q.least = amounts.Unlimited
		q.dropPark()
		q.parent.ready.Remove(q)
	}
	if q.parent == nil && !q.hasReady() {
		q.least = amounts.Unlimited
	}
}

// ID is the application's id.
func (a *App) ID() creel.ApplicationID { return a.id }

// Owner returns the owner passed to AddApp.
func (a *App) Owner() any { return a.owner }

// Queue is the leaf of the application, or its last one; nil before it entered one.
func (a *App) Queue() *Queue { return a.queue }

// InQueue reports whether it is still in that leaf.
func (a *App) InQueue() bool { return a.inQueue }

// InLine reports whether it waits for the activation of its AM.
func (a *App) InLine() bool { return a.pendSlot != 0 }

// Activated reports whether its AM may run.
func (a *App) Activated() bool { return a.activated }

// Open reports the last value of SetOpen.
func (a *App) Open() bool { return a.open }

// Priority is the application's priority; larger comes first.
func (a *App) Priority() int32 { return a.priority }

// AMSize is the size of its AM, nil if the AM has no container.
func (a *App) AMSize() *amounts.Size { return a.amSize }

// Used returns the sum and number of its containers.
func (a *App) Used() (amounts.Vec, int32) {
	used, count := a.used, a.containers
	for _, x := range a.parts {
		used.Add(&x.used)
		count += x.containers
	}
	return used, count
}

// Pending returns the sum and number of its outstanding asks, at most MaxInt32.
func (a *App) Pending() (amounts.Vec, int32) {
	pending, count := a.pending, a.pendingCount
	for _, x := range a.parts {
		pending.Add(&x.pending)
		count += x.pendingCount
	}
	return pending, clampInt32(count)
}

// clampInt32 limits a count to the 32 bits of protocols.
func clampInt32(count int64) int32 { return int32(min(count, math.MaxInt32)) }

// Reserved returns the sum of its reservations and the number of their nodes.
func (a *App) Reserved() (amounts.Vec, int32) {
	held, count := a.held, a.heldContainers
	for _, x := range a.parts {
		held.Add(&x.held)
		count += x.heldContainers
	}
	return held, count
}

// AMUsed returns its AM's size, even before the AM is allocated.
func (a *App) AMUsed() amounts.Vec {
	used := a.amUsed
	for _, x := range a.parts {
		used.Add(&x.amUsed)
	}
	return used
}

// partIn returns the App of a in a partition, nil if it has none there.
func (a *App) partIn(p *partition) *App {
	for _, x := range a.parts {
		if x.queue.part == p {
			return x
		}
	}
	return nil
}

// label returns the label of a's partition.
func (a *App) label() string {
	if a.main == nil {
		return ""
	}
	return a.queue.part.label
}

// whole returns the application itself for one of its parts.
func (a *App) whole() *App {
	if a.main != nil {
		return a.main
	}
	return a
}
