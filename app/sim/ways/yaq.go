// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"slices"
	"time"
)

// yaq is a model of Yaq-c: a central scheduler places all tasks in bounded queues of the nodes, on the node with the
// least expected wait. It knows the run times of the tasks exactly.
type yaq struct {
	polls
	nodes  []*yaqNode
	order  []*job // with asks
	asks   map[*job]int
	fresh  map[*job][]grant
	prompt bool // grants are in the answer to the call that asks
	mean   time.Duration
}

// yaqNode is a node as its scheduler knows it.
type yaqNode struct {
	*slots
	ends    []time.Time // of each slot's last known task, expected
	known   int         // tasks of the last heartbeat, and those placed since
	flights int         // placed tasks that have not arrived
}

// patience is the time after which a waiting task is not passed any more.
const patience = 30 * time.Second

func newYaq(w *world, prompt bool) way {
	y := &yaq{asks: map[*job]int{}, fresh: map[*job][]grant{}, prompt: prompt, mean: time.Second}
	y.polls = polls{w, y.allocate}
	for i := range w.Nodes {
		n := &yaqNode{slots: newSlots(w, i), ends: make([]time.Time, w.Slots)}
		n.next = byWork
		y.nodes = append(y.nodes, n)
	}
	w.every(w.NodeHeartbeat, func(i int) {
		w.send(func() {
			y.nodes[i].hear(y.mean)
			y.place()
		})
	})
	return y
}

// byWork chooses the task whose job has the least work left. A task that has waited for the patience is not passed.
func byWork(n *slots) int {
	best := 0
	for i, t := range n.queue {
		if n.w.now.Sub(n.since[t]) >= patience {
			return i // the first: tasks are in the order of their arrival
		}
		if t.job.work < n.queue[best].job.work {
			best = i
		}
	}
	return best
}

// hear updates the scheduler's view of a node. mean stands for the run times of tasks that have not arrived.
func (n *yaqNode) hear(mean time.Duration) {
	now := n.w.now
	n.known = len(n.running) + len(n.queue) + n.flights
	for i := range n.ends {
		n.ends[i] = now
		if i < len(n.running) {
			n.ends[i] = n.running[i].until
		}
	}
	for _, t := range n.queue {
		n.add(t.run)
	}
	for range n.flights {
		n.add(mean)
	}
}

// add counts a task in the expected waits.
func (n *yaqNode) add(run time.Duration) {
	i := n.soonest()
	if n.ends[i].Before(n.w.now) {
		n.ends[i] = n.w.now
	}
	n.ends[i] = n.ends[i].Add(run)
}

// soonest is the slot that is expected to be free first.
func (n *yaqNode) soonest() int {
	best := 0
	for i, at := range n.ends {
		if at.Before(n.ends[best]) {
			best = i
		}
	}
	return best
}

// bound is the length of each slot's queue: no slot is idle before the scheduler's next task arrives.
func (y *yaq) bound() int {
	delay := y.w.NodeHeartbeat + y.w.AMHeartbeat
	return int((delay + y.mean - 1) / y.mean)
}

func (y *yaq) allocate(j *job) []grant {
	out := y.fresh[j]
	delete(y.fresh, j)
	if y.asks[j] = len(j.waiting) - len(out); y.asks[j] > 0 && !slices.Contains(y.order, j) {
		y.order = append(y.order, j)
	}
	if y.prompt {
		y.place()
		out = append(out, y.fresh[j]...)
		delete(y.fresh, j)
	}
	return out
}

// place gives each asked task to the node with the least expected wait, while queues have room: the job with the least
// work left first.
func (y *yaq) place() {
	slices.SortStableFunc(y.order, func(a, b *job) int { return int(a.work - b.work) })
	for len(y.order) > 0 {
		j := y.order[0]
		for ; y.asks[j] > 0; y.asks[j]-- {
			n := y.best()
			if n == nil {
				return
			}
			n.known++
			n.flights++
			run := j.meanRun()
			n.add(run)
			y.mean += (run - y.mean) / 100
			y.fresh[j] = append(y.fresh[j], grant{n.number, func(t *task) {
				n.flights--
				n.arrive(t, false)
			}})
		}
		y.order = y.order[1:]
	}
}

// best is the node with the least expected wait among those with room; nil for none.
func (y *yaq) best() (out *yaqNode) {
	most := y.w.Slots * (1 + y.bound())
	var least time.Time
	for _, n := range y.nodes {
		if n.known >= most {
			continue
		}
		at := n.ends[n.soonest()]
		if at.Before(y.w.now) {
			at = y.w.now
		}
		if out == nil || at.Before(least) || at.Equal(least) && n.known < out.known {
			out, least = n, at
		}
	}
	return out
}

// meanRun is the mean run time of the tasks of a job's stage.
func (j *job) meanRun() (sum time.Duration) {
	for _, d := range j.Stages[j.stage] {
		sum += d
	}
	return sum / time.Duration(len(j.Stages[j.stage]))
}

func (y *yaq) finished(j *job) {
	if i := slices.Index(y.order, j); i >= 0 {
		y.order = slices.Delete(y.order, i, i+1)
	}
	delete(y.asks, j)
	for _, g := range y.fresh[j] {
		y.nodes[g.node].flights--
	}
	delete(y.fresh, j)
}
