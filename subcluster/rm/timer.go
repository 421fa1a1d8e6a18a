// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel/internal/intrusive"

// timer is a deadline with an individual length.
type timer struct {
	at   int64
	seq  int64
	slot int32
	fire func()
}

// timerQueue has the timers that are armed, in order of time.
type timerQueue struct {
	heap intrusive.Heap[*timer]
	seq  int64
}

func (q *timerQueue) init() {
	q.heap = intrusive.Heap[*timer]{
		Less: func(a, b *timer) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq },
		Slot: func(t *timer) *int32 { return &t.slot },
	}
}

// arm arms a timer; stop disarms it.
func (q *timerQueue) arm(at int64, fire func()) *timer {
	q.seq++
	t := &timer{at: at, seq: q.seq, fire: fire}
	q.heap.Push(t)
	return t
}

func (q *timerQueue) stop(t **timer) {
	if *t != nil {
		q.heap.Remove(*t)
		*t = nil
	}
}

// due removes the first timer if it is due.
func (q *timerQueue) due(now int64) (t *timer, is bool) {
	if q.heap.Len() == 0 || q.heap.Top().at > now {
		return nil, false
	}
	t = q.heap.Top()
	q.heap.Remove(t)
	return t, true
}
