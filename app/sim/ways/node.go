// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"slices"
	"time"
)

// slots is a model of a node: containers run in slots, and others wait in queues. Guaranteed ones start first, and end
// the opportunistic containers that were started last.
type slots struct {
	w          *world
	number     int
	running    []*process // by start
	guaranteed []*task    // waiting
	queue      []*task    // waiting opportunistic ones
	since      map[*task]time.Time
	freed      int // guaranteed containers that have ended since the last heartbeat
	lost       []*task
	mean       time.Duration // run time of opportunistic containers that ended here

	// next chooses the waiting opportunistic container to start, by its place; nil: the first.
	next func(n *slots) int
	// ended is called after a container has ended with success; nil: nothing.
	ended func()
}

type process struct {
	t          *task
	guaranteed bool
	until      time.Time
}

func newSlots(w *world, number int) *slots {
	return &slots{w: w, number: number, since: map[*task]time.Time{}}
}

// arrive adds a container to its queue.
func (n *slots) arrive(t *task, guaranteed bool) {
	n.since[t] = n.w.now
	if guaranteed {
		n.guaranteed = append(n.guaranteed, t)
	} else {
		n.queue = append(n.queue, t)
	}
	n.settle()
}

func (n *slots) free() int { return n.w.Slots - len(n.running) }

// settle starts containers in free slots.
func (n *slots) settle() {
	for len(n.guaranteed) > 0 {
		if n.free() == 0 && !n.kill() {
			return
		}
		t := n.guaranteed[0]
		n.guaranteed = n.guaranteed[1:]
		n.start(t, true)
	}
	for len(n.queue) > 0 && n.free() > 0 {
		i := 0
		if n.next != nil {
			i = n.next(n)
		}
		t := n.queue[i]
		n.queue = slices.Delete(n.queue, i, i+1)
		n.start(t, false)
	}
}

func (n *slots) start(t *task, guaranteed bool) {
	delete(n.since, t)
	n.w.starts(t, n.number)
	p := &process{t, guaranteed, n.w.now.Add(t.run)}
	n.running = append(n.running, p)
	n.w.after(t.run, func() {
		i := slices.Index(n.running, p)
		if i < 0 {
			return // killed
		}
		n.running = slices.Delete(n.running, i, i+1)
		if guaranteed {
			n.freed++
		} else {
			n.ran(t.run)
		}
		n.w.ends(t)
		n.settle()
		if n.ended != nil {
			n.ended()
		}
	})
}

// ran adds a run time to the mean, an average over about the last 8.
func (n *slots) ran(d time.Duration) {
	if n.mean == 0 {
		n.mean = d
		return
	}
	n.mean += (d - n.mean) / 8
}

// kill ends the opportunistic container that was started last. It reports false for none.
func (n *slots) kill() bool {
	for i, p := range slices.Backward(n.running) {
		if !p.guaranteed {
			n.running = slices.Delete(n.running, i, i+1)
			n.w.kills(p.t)
			n.lost = append(n.lost, p.t)
			return true
		}
	}
	return false
}

// drop rejects a container, or one that waits.
func (n *slots) drop(t *task) {
	delete(n.since, t)
	n.w.result.Dropped++
	n.lost = append(n.lost, t)
}

// report returns at a heartbeat the number of guaranteed containers that have ended. AMs hear of lost containers at
// their next heartbeats.
func (n *slots) report() (freed int) {
	for _, t := range n.lost {
		t.job.lost = append(t.job.lost, t)
	}
	freed, n.freed, n.lost = n.freed, 0, nil
	return freed
}
