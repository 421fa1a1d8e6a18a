// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timers calls functions at set times, all from one goroutine. A process that simulates ten thousand nodes has a
// hundred thousand deadlines; one heap and one timer serve them.
type timers struct {
	mu    sync.Mutex
	queue dueHeap
	wake  chan struct{}
}

type due struct {
	at time.Time
	do func(now time.Time)
}

func newTimers() *timers { return &timers{wake: make(chan struct{}, 1)} }

// at calls do at or after a time. do must not block.
func (t *timers) at(when time.Time, do func(now time.Time)) {
	t.mu.Lock()
	heap.Push(&t.queue, due{at: when, do: do})
	first := t.queue[0].at.Equal(when)
	t.mu.Unlock()
	if first {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

func (t *timers) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []due
	for {
		now := time.Now()
		t.mu.Lock()
		for len(t.queue) > 0 && !t.queue[0].at.After(now) {
			batch = append(batch, heap.Pop(&t.queue).(due))
		}
		wait := time.Hour
		if len(t.queue) > 0 {
			wait = t.queue[0].at.Sub(now)
		}
		t.mu.Unlock()
		for i := range batch {
			batch[i].do(now)
			batch[i].do = nil
		}
		if len(batch) > 0 {
			batch = batch[:0]
			if ctx.Err() == nil {
				continue // the called functions may have set earlier deadlines
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-t.wake:
		case <-ctx.Done():
			return
		}
	}
}

type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = due{}
	*h = old[:len(old)-1]
	return last
}
