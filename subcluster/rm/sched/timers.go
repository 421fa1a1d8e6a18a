// SPDX-License-Identifier: Apache-2.0

package sched

func (t *timers) init() {
	t.heap.Less = func(a, b *timer) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }
	t.heap.Slot = func(t *timer) *int32 { return &t.slot }
}

// start adds a deadline, in ns since the epoch, at which fire runs.
func (t *timers) start(at int64, fire func()) *timer {
	t.seq++
	x := &timer{at: at, seq: t.seq, fire: fire}
	t.heap.Push(x)
	return x
}

// stop removes the deadline that x points to, if there is one, and clears x.
func (t *timers) stop(x **timer) {
	if *x != nil {
		t.heap.Remove(*x)
		*x = nil
	}
}

// next returns the earliest deadline; 0 if there is none.
func (t *timers) next() int64 {
	if t.heap.Len() == 0 {
		return 0
	}
	return t.heap.Top().at
}

// run fires the deadlines reached by now.
func (t *timers) run(now int64) {
	for t.heap.Len() > 0 && t.heap.Top().at <= now {
		x := t.heap.Top()
		t.heap.Remove(x)
		x.fire()
	}
}
