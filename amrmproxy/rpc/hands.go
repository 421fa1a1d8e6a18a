// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"sync"
	"sync/atomic"
)

// hands make calls for sessions. A goroutine that has made one has the stack
// that a call needs, which a new one grows step by step; so it waits for the
// next.
type hands struct {
	work  chan func()
	wg    sync.WaitGroup
	spare atomic.Int64 // of them, those that wait
}

// handsMost may wait; more are let go when their call is over.
const handsMost = 256

func newHands() hands { return hands{work: make(chan func())} }

// give has a function called by a hand that waits, or by a new one. It does not
// wait.
func (h *hands) give(do func()) {
	select {
	case h.work <- do:
	default:
		h.wg.Go(func() {
			for ok := true; ok; {
				do()
				if h.spare.Add(1) > handsMost {
					h.spare.Add(-1)
					return
				}
				do, ok = <-h.work
				h.spare.Add(-1)
			}
		})
	}
}

// dismiss sends all home once the work under way is done. Nobody gives any more.
func (h *hands) dismiss() {
	close(h.work)
	h.wg.Wait()
}
