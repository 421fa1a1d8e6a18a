// SPDX-License-Identifier: Apache-2.0

// Package workerpool runs functions on pooled goroutines. A reused goroutine already has a stack of the needed size.
// Growing the stacks of new goroutines took a fifth of a router's CPU time.
package workerpool

import (
	"sync"
	"sync/atomic"
)

// Pool executes pieces of work, each at once on a goroutine of its own for that time. It does not limit how many run
// at a time; its callers do.
type Pool[T any] struct {
	do    func(T)
	queue chan T         // to workers that wait; has no room
	wg    sync.WaitGroup // the workers
	spare atomic.Int64   // of them, those that wait
}

// maxSpare is how many goroutines may wait for work.
const maxSpare = 256

// New makes a pool that calls do for each piece. It starts no goroutine.
func New[T any](do func(T)) *Pool[T] {
	return &Pool[T]{do: do, queue: make(chan T)}
}

// Give has a piece done by a worker that waits, or by a new one. It does not
// wait. It may be called by many at a time, also from within do.
func (p *Pool[T]) Give(piece T) {
	select {
	case p.queue <- piece:
	default:
		p.wg.Go(func() { p.work(piece) })
	}
}

func (p *Pool[T]) work(piece T) {
	for ok := true; ok; {
		p.do(piece)
		if p.spare.Add(1) > maxSpare {
			p.spare.Add(-1)
			return
		}
		piece, ok = <-p.queue
		p.spare.Add(-1)
	}
}

// Close waits for submitted work and ends the workers. No more work may be submitted.
func (p *Pool[T]) Close() {
	close(p.queue)
	p.wg.Wait()
}
