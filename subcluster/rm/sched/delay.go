// SPDX-License-Identifier: Apache-2.0

package sched

// Delay scheduling: an ask that names places passes up rooms elsewhere for a
// while, because a local one soon frees itself. The wait is counted in
// opportunities, as in Hadoop: rooms on other nodes that the ask could have
// had. Room is offered the moment it appears, so an opportunity is either such
// an offer or, for rooms that lie free, a heartbeat of a node that has one.
// One counter serves all waiting asks; each keeps the value at which it may go
// one level further.

// delay starts the wait of an ask that found no local room, or lets it go
// further at once if none is configured.
func (s *Scheduler) delay(w *Ask) {
	if w.since >= 0 || !w.placed() {
		return
	}
	w.since = s.opps
	s.wait(w)
}

// wait arms the next level of the wait; levels without a wait are passed.
func (s *Scheduler) wait(w *Ask) {
	for w.level < atAny {
		if at := s.policy.patience(s, w); at > s.opps-w.since {
			w.relaxAt = w.since + at
			if w.serial == 0 {
				s.askSerial++
				w.serial = s.askSerial
			}
			s.delayed.Push(w)
			d := s.tree.spec.NodeLocalityWait
			if w.level == atRack {
				d = s.tree.spec.RackLocalityWait
			}
			if d > 0 {
				w.wake = s.timer(s.now+int64(d), func() { s.relax(w) })
			}
			return
		}
		w.level++
	}
}

// opportunity counts one room passed up and lets those go further that have
// waited long enough.
func (s *Scheduler) opportunity() {
	if s.delayed.Len() == 0 {
		return
	}
	s.opps++
	for s.delayed.Len() > 0 && s.delayed.Top().relaxAt <= s.opps {
		s.relax(s.delayed.Top())
	}
}

// relax raises the level of a waiting ask and tries it.
func (s *Scheduler) relax(w *Ask) {
	s.delayed.Remove(w)
	s.stop(&w.wake)
	if w.level < atAny {
		w.level++
	}
	s.wait(w)
	s.retry(w.app.queue)
	s.mayBorrow(w.app)
}

// endDelay forgets the wait: a local container was given, or the ask is gone.
func (s *Scheduler) endDelay(w *Ask) {
	w.level, w.since = atNode, -1
	s.delayed.Remove(w)
	s.stop(&w.wake)
}
