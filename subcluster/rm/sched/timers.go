// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/internal/intrusive"

// timer is a deadline: of an ask's wait for a local node, or of an empty queue created on demand.
type timer struct {
	at, seq int64
	slot    int32
	fire    func()
}

type timers struct {
	intrusive.Heap[*timer]
	seq int64
}

func (t *timers) init() {
	t.Less = func(a, b *timer) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }
	t.Slot = func(t *timer) *int32 { return &t.slot }
}

func (s *Scheduler) timer(at int64, fire func()) *timer {
	if s.main != nil {
		s = s.main // one list of deadlines for all partitions
	}
	s.timers.seq++
	t := &timer{at: at, seq: s.timers.seq, fire: fire}
	s.timers.Push(t)
	return t
}

func (s *Scheduler) stop(t **timer) {
	if *t != nil {
		if s.main != nil {
			s = s.main
		}
		s.timers.Remove(*t)
		*t = nil
	}
}

// NextDeadline is the time at which Tick is due next, in ns since the epoch; 0 if nothing waits.
func (s *Scheduler) NextDeadline() int64 {
	if s.timers.Len() == 0 {
		return 0
	}
	return s.timers.Top().at
}

// Tick runs the deadlines reached by the time of At. Schedule is due after it.
func (s *Scheduler) Tick() {
	for s.timers.Len() > 0 && s.timers.Top().at <= s.now {
		t := s.timers.Top()
		s.timers.Remove(t)
		t.fire()
	}
}
