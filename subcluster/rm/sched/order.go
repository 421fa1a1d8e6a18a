// SPDX-License-Identifier: Apache-2.0

package sched

import "math"

// share returns the weight of an application's use in the order of its leaf. With size-based weight it is divided by
// the binary logarithm of one plus the MiB of the application's use and demand, as in both of Hadoop's schedulers. So
// an application with large demand may have more before others are served.
func (q *Queue) share(a *App) float64 {
	if q.ordering.use == nil {
		return 0
	}
	v := q.ordering.use(a)
	if demand := a.used.Memory + a.pending.Memory; q.settings.sizeWeight && demand > 0 {
		v /= math.Log1p(float64(demand)) / math.Ln2
	}
	return v
}

// demandChanged reorders an application under size-based weight.
func (a *App) demandChanged() {
	if a.queue.settings.sizeWeight {
		a.rerank()
	}
}

// rankOf ranks a child of a queue with this ordering.
func (o *ordering) rankOf(c *Queue) rank {
	if o.rank == nil {
		return rank{}
	}
	return o.rank(c)
}

// rerank records that the queue's use changed, so that its heap position is stale. The queue moves when the order is
// next read, so that ten containers that complete together move it once; until then all keep their rank.
func (q *Queue) rerank() {
	if !q.outranked && q.slot != 0 {
		q.outranked = true
		q.part.walk.outranked = append(q.part.walk.outranked, q)
	}
}

// enter puts a queue into its parent's heap.
func (q *Queue) enter() {
	h, o := &q.parent.ready, q.parent.ordering
	if h.Len() == 1 {
		h.Top().rank = o.rankOf(h.Top())
	}
	q.rank = o.rankOf(q)
	h.Push(q)
}

// rankChildren recomputes the ranks of a parent's waiting children.
func (q *Queue) rankChildren() {
	for _, c := range q.ready.Items {
		c.rank = q.ordering.rank(c)
	}
	q.ready.Rebuild()
}

// hasReady reports whether something below waits, parked or not.
func (q *Queue) hasReady() bool {
	if q.leaf != nil {
		return q.users.Len() > 0
	}
	return q.ready.Len() > 0 || q.stopped.below > 0
}

// rerank recomputes the application's order value, and moves it.
func (a *App) rerank() {
	o := a.queue.ordering
	if a.slot == 0 || o.use == nil {
		return
	}
	a.ratio = a.queue.share(a)
	u := a.user
	u.apps.Fix(a)
	u.q.users.Fix(u)
}

// useDominant is the largest share that the application has of any type.
func useDominant(a *App) float64 {
	p := a.queue.part
	return p.sizes.Dominant(&a.used, &p.total)
}

// weightNow avoids division by a weight of zero: such a queue is served last.
func (q *Queue) weightNow() float64 {
	if q.settings.weight <= 0 {
		return 1e-9
	}
	return q.settings.weight
}
