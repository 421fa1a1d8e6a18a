// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/places"

// Delay scheduling: an ask that names places skips free resources elsewhere for a while, because local ones soon
// become free. The wait is counted in opportunities, as in Hadoop: free resources on other nodes that the ask could
// have used. Resources are offered when they become free. So an opportunity is either such an offer, or a heartbeat
// of a node that still has free resources. One counter serves all waiting asks; each stores the value at which it may
// go one level further.

// delay starts the wait of an ask that found no local node, or raises its level at once if no wait is configured.
func (s *Scheduler) delay(w *Ask) {
	if w.since >= 0 || !w.named.Any() {
		return
	}
	w.since = s.opps
	s.wait(w)
}

// wait arms the next level of the wait; levels without a wait are skipped.
func (s *Scheduler) wait(w *Ask) {
	for w.level < places.AtAny {
		if at := s.policy.patience(s, w); at > s.opps-w.since {
			w.relaxAt = w.since + at
			if w.serial == 0 {
				s.askSerial++
				w.serial = s.askSerial
			}
			s.delayed.Push(w)
			d := s.tree.spec.NodeLocalityWait
			if w.level == places.AtRack {
				d = s.tree.spec.RackLocalityWait
			}
			if d > 0 {
				w.wake = s.timers.start(s.now+int64(d), func() { s.relax(w) })
			}
			return
		}
		w.level++
	}
}

// opportunity counts one skipped opportunity and raises the level of asks that have waited long enough.
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
	s.timers.stop(&w.wake)
	if w.level < places.AtAny {
		w.level++
	}
	s.wait(w)
	s.retries.add(w.app.queue)
	s.lending.mayBorrow(w.app)
}

// endDelay ends the wait: a local container was granted, or the ask is gone.
func (s *Scheduler) endDelay(w *Ask) {
	w.level, w.since = places.AtNode, -1
	s.delayed.Remove(w)
	s.timers.stop(&w.wake)
}
