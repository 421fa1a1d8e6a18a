// SPDX-License-Identifier: Apache-2.0

// Package workerpool runs functions on pooled goroutines. A reused goroutine already has a stack of the needed size.
// Growing the stacks of new goroutines took a fifth of a router's CPU time.
package workerpool

import (
	"sync"
	"sync/atomic"
)

// Pool executes pieces of work, each at once on its own goroutine. It does not limit the number of simultaneous pieces;
// its callers do.
type Pool[T any] struct {
	do    func(T)
	queue chan T         // to waiting workers; unbuffered
	wg    sync.WaitGroup // the workers
	spare atomic.Int64   // number of waiting workers
}

// maxSpare is the largest number of goroutines that wait for work.
const maxSpare = 256

// New makes a pool that calls do for each piece. It starts no goroutine.
func New[T any](do func(T)) *Pool[T] {
	return &Pool[T]{do: do, queue: make(chan T)}
}

// Give passes a piece to a waiting worker, or to a new one. It does not wait. Any number of goroutines may call it at a
// time, and so may do.
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
