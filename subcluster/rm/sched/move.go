// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"

	"github.com/creelrm/creel"
)

// Move moves an application, with its containers and asks, to another leaf. It returns an error if that leaf is not
// running, is full, or its maximum or an ancestor's does not admit the application's use. Schedule is due.
func (s *Scheduler) Move(a *App, to *Queue) error {
	switch id := a.id; {
	case to.leaf == nil:
		return invalid(
			"Application "+id.String()+" cannot be moved to "+string(to.path),
			"it is not a leaf queue",
			"name a leaf",
		)
	case to == a.queue:
		return nil
	case to.StateNow() != creel.QueueRunning:
		return invalid(
			fmt.Sprintf("Queue %s is %s. Cannot accept application %s", to.path, to.StateNow(), id),
			"",
			"start the queue",
		)
	case to.sized().leaf.full():
		return invalid(
			fmt.Sprintf(
				"Queue %s already has %d applications, cannot accept submission of application: %s",
				to.path,
				to.leaf.apps,
				id,
			),
			"",
			"",
		)
	}
	if err := s.main.movable(a, to); err != nil {
		return err
	}
	for _, x := range a.parts {
		p := x.queue.part
		if !p.exclusive {
			continue // lent containers count towards no maximum
		}
		if err := p.movable(x, p.counterpart(to)); err != nil {
			return err
		}
	}
	s.line.move(a, to)
	return nil
}

// movable rejects a move that would take a queue above its maximum.
func (part *partition) movable(a *App, to *Queue) error {
	for p := to; p.parent != nil; p = p.parent {
		if p.isAbove(a.queue) {
			break // its use already counts there
		}
		if (a.containers > 0 || a.main == nil) && p.sized().bounds.bounded && !p.admits(&a.used, 1, nil) {
			return invalid(
				fmt.Sprintf("Moving %s to queue %s would break the maximum of %s", a.id, to.path, p.path),
				fmt.Sprintf("it uses %s", part.sizes.Resource(&a.used)),
				"",
			)
		}
	}
	return nil
}

// move moves an application, with its place in line.
func (l *Line) move(a *App, to *Queue) {
	p := &l.s.main
	activated, inLine := a.activated, a.pendSlot != 0
	p.retire(a)
	l.Deactivate(a)
	p.move(a, to)
	for _, x := range a.parts {
		x.queue.part.retire(x)
		x.queue.part.move(x, x.queue.part.counterpart(to))
	}
	switch {
	case activated:
		l.setRunning(a) // it already runs: the new queue's limits on AMs apply to later ones
		l.s.Serve(a)
	case inLine:
		l.push(a)
	}
}

// retire removes an application from the order of service, and its asks from reserved nodes and blocked queues.
func (p *partition) retire(a *App) {
	for _, w := range a.asks {
		p.retries.unblock(w)
		if w.hold != nil {
			p.reservations.drop(w.hold)
		}
	}
	if a.waits {
		p.setWaits(a, false)
	}
}

// move moves a retired application to a queue.
func (p *partition) move(a *App, to *Queue) {
	from, user := a.queue, a.user.name
	p.transfer(a, -1)
	p.leave(a)
	p.freed(from)
	p.retries.touch(from)
	p.enter(a, to, user)
	p.transfer(a, 1)
	p.retries.touch(to)
}

// transfer adds or subtracts all use and asks of an application.
func (p *partition) transfer(a *App, sign int64) {
	p.changes.app(a)
	a.user.uses(&a.used, sign)
	for q := a.queue; q != nil; q = q.parent {
		q.used.AddTimes(&a.used, sign)
		q.pending.AddTimes(&a.pending, sign)
		q.containers += int32(sign) * a.containers
		q.pendingCount += sign * a.pendingCount
		q.rerank()
	}
}
