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
	if err := s.movable(a, to); err != nil {
		return err
	}
	for _, x := range a.parts {
		p := x.queue.s
		if !p.exclusive {
			continue // lent containers count towards no maximum
		}
		if err := p.movable(x, p.counterpart(to)); err != nil {
			return err
		}
	}
	s.move(a, to)
	return nil
}

// movable rejects a move that would take a queue above its maximum.
func (s *Scheduler) movable(a *App, to *Queue) error {
	for p := to; p.parent != nil; p = p.parent {
		if p.isAbove(a.queue) {
			break // its use already counts there
		}
		if (a.containers > 0 || a.main == nil) && p.sized().bounded && !p.admits(&a.used, 1, nil) {
			return invalid(
				fmt.Sprintf("Moving %s to queue %s would break the maximum of %s", a.id, to.path, p.path),
				fmt.Sprintf("it uses %s", s.sizes.Resource(&a.used)),
				"",
			)
		}
	}
	return nil
}

func (s *Scheduler) move(a *App, to *Queue) {
	for _, w := range a.asks {
		s.retries.unblock(w)
		if w.hold != nil {
			s.reservations.drop(w.hold)
		}
	}
	activated, inLine := a.activated, a.pendSlot != 0
	if a.waits {
		s.setWaits(a, false)
	}
	s.line.Deactivate(a)
	from, user := a.queue, a.user.name
	s.transfer(a, -1)
	s.leave(a)
	s.freed(from)
	s.retries.touch(from)
	s.Enter(a, to, user)
	for _, x := range a.parts {
		p := x.queue.s
		p.move(x, p.counterpart(to))
	}
	s.transfer(a, 1)
	s.retries.touch(to)
	switch {
	case activated:
		s.line.setRunning(a) // it already runs: the new queue's limits on AMs apply to later ones
		s.Serve(a)
	case inLine:
		s.line.push(a)
	}
}

// transfer adds or subtracts all use and asks of an application.
func (s *Scheduler) transfer(a *App, sign int64) {
	s.changes.app(a)
	a.user.uses(&a.used, sign)
	for q := a.queue; q != nil; q = q.parent {
		q.used.AddTimes(&a.used, sign)
		q.pending.AddTimes(&a.pending, sign)
		q.containers += int32(sign) * a.containers
		q.pendingCount += sign * a.pendingCount
		q.rerank()
	}
}
