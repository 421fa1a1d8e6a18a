// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"sync"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// maxQueued limits the bytes of unwritten transactions: Commit waits beyond it.
const maxQueued = 16 << 20

// queue has the transactions of the next group. Any goroutine may use it.
type queue struct {
	wake chan struct{} // a transaction has arrived

	mu      sync.Mutex // guards the fields below; never locked during a call
	written sync.Cond  // the queued transactions are being written
	ops     []byte
	waiting []func(error)
	broken  error
}

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1)}
	q.written.L = &q.mu
	return q
}

// add appends a transaction, or answers it with the error that ended the queue.
func (q *queue) add(ops []byte, done func(error)) {
	q.mu.Lock()
	for q.broken == nil && len(q.waiting) > 0 && len(q.ops)+len(ops) > maxQueued {
		q.written.Wait()
	}
	if err := q.broken; err != nil {
		q.mu.Unlock()
		done(err)
		return
	}
	q.ops = append(q.ops, ops...)
	q.waiting = append(q.waiting, done)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes all transactions.
func (q *queue) take() (ops []byte, waiting []func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ops, waiting = q.ops, q.waiting
	q.ops, q.waiting = nil, nil
	q.written.Broadcast()
	return ops, waiting
}

// err returns the error that ended the queue.
func (q *queue) err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.broken
}

// fail ends the queue: every later transaction fails.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.broken == nil {
		q.broken = err
	}
	q.written.Broadcast()
}

// close ends the queue, and answers the transactions in it.
func (q *queue) close(cause error) {
	if cause == nil {
		cause = state.ErrClosed
	}
	q.fail(cause)
	_, waiting := q.take()
	for _, done := range waiting {
		done(q.err())
	}
}
