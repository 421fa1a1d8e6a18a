// SPDX-License-Identifier: Apache-2.0

package sim

// event is an action at a virtual time. Events at the same time happen in the order in which they were scheduled.
type event struct {
	at  int64 // ns since the epoch
	seq uint64
	do  runner
}

// runner performs an event. Frequent events implement it themselves, which saves a closure.
type runner interface{ run() }

type runFunc func()

func (d runFunc) run() { d() }

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// heap is a four-way heap: it has fewer levels than a binary one, and an event's children are adjacent.
type heap struct{ items []event }

func (h *heap) push(e event) {
	h.items = append(h.items, e)
	i := len(h.items) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h.items[up]) {
			break
		}
		h.items[i] = h.items[up]
		i = up
	}
	h.items[i] = e
}

func (h *heap) pop() event {
	top := h.items[0]
	n := len(h.items) - 1
	last := h.items[n]
	h.items[n] = event{}
	h.items = h.items[:n]
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, n); c++ {
			if h.items[c].before(&h.items[least]) {
				least = c
			}
		}
		if !h.items[least].before(&last) {
			break
		}
		h.items[i] = h.items[least]
		i = least
	}
	if n > 0 {
		h.items[i] = last
	}
	return top
}
