// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"sync"
	"sync/atomic"
)

// Workers do pieces of work, each at once and on a goroutine that does no other
// meanwhile. It is the go statement with goroutines that stay: one that has
// done a piece has the stack the next one needs, while a new one grows it step
// by step, which was a fifth of a router's processor.
//
// How many work at a time is not limited; who gives the work is.
type Workers[T any] struct {
	do    func(T)
	queue chan T         // to workers that wait; has no room
	wg    sync.WaitGroup // the workers
	spare atomic.Int64   // of them, those that wait
}

// spareWorkers is how many goroutines may wait for work.
const spareWorkers = 256

// NewWorkers makes Workers that call do for each piece. It starts none.
func NewWorkers[T any](do func(T)) *Workers[T] {
	return &Workers[T]{do: do, queue: make(chan T)}
}

// Give has a piece done by a worker that waits, or by a new one. It does not
// wait. It may be called by many at a time, also from within do.
func (w *Workers[T]) Give(piece T) {
	select {
	case w.queue <- piece:
	default:
		w.wg.Go(func() { w.work(piece) })
	}
}

func (w *Workers[T]) work(piece T) {
	for ok := true; ok; {
		w.do(piece)
		if w.spare.Add(1) > spareWorkers {
			w.spare.Add(-1)
			return
		}
		piece, ok = <-w.queue
		w.spare.Add(-1)
	}
}

// Close waits for what was given and ends the workers. Nobody may give any more.
func (w *Workers[T]) Close() {
	close(w.queue)
	w.wg.Wait()
}
