// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// admit reports whether the limits permit the application one container of this size. It checks the maximum of each
// queue on the path, then the user limit of the leaf, then the user's cap. Reserved amounts count as used, except
// own, which is about to become the container.
func (a *App) admit(size *amounts.Size, own *amounts.Size) verdict {
	if v := a.admitQueues(size, 1, own); v.limit != explain.LimitNone {
		return v
	}
	if v := a.userRefusal(); v.limit != explain.LimitNone {
		return v
	}
	return a.capRefusal(size)
}

// capRefusal checks the user's cap in the federation.
func (a *App) capRefusal(size *amounts.Size) verdict {
	if a.user.underCap(&size.V) {
		return verdict{}
	}
	return verdict{explain.LimitUser, a.queue}
}

// admitQueues checks only the queues' limits, for count containers.
func (a *App) admitQueues(size *amounts.Size, count int64, own *amounts.Size) verdict {
	need := &size.V
	for q := a.queue; q.parent != nil; q = q.parent {
		if !q.sized().bounds.bounded {
			continue
		}
		if !q.admits(need, count, own) {
			return verdict{explain.LimitQueue, q}
		}
	}
	return verdict{}
}

// userRefusal is userAdmits for all limits at once, with the limit and its place.
func (a *App) userRefusal() verdict {
	p := a.queue.part
	if p.policy.userAdmits(p, a.user) {
		return verdict{}
	}
	return verdict{explain.LimitUser, a.queue}
}

// admits reports whether a queue's maximum and cap permit count times need more.
func (q *Queue) admits(need *amounts.Vec, count int64, own *amounts.Size) bool {
	p := q.part
	b := &q.sized().bounds
	if q.reserved.containers == 0 {
		return b.admits(&p.sizes, p.now, &q.used, need, count)
	}
	have := q.reserved.and(&q.used)
	if own != nil {
		have.Sub(&own.V)
	}
	return b.admits(&p.sizes, p.now, &have, need, count)
}

// limitNow returns a queue's current limit: its maximum, reduced to the rest under each ancestor's maximum.
func (q *Queue) limitNow() amounts.Vec {
	p := q.part
	if q.parent == nil {
		return p.total
	}
	q.sized()
	v := q.parent.limitNow()
	v.Sub(&q.parent.used)
	v.Add(&q.used)
	for i := 0; i < p.sizes.N; i++ {
		v.Set(i, max(v.At(i), 0))
	}
	q.bounds.lower(p.now, &v)
	return v
}

// Headroom returns the amount an application could still get, as reported to its AM: the rest under the limits of its
// queue, of its ancestors, and of the user.
func (a *App) Headroom() amounts.Vec {
	if len(a.parts) > 0 {
		return a.headroomByPartition()
	}
	return a.headroom()
}

func (a *App) headroom() amounts.Vec {
	p := a.queue.part
	v, of := a.queue.left(), a.queue.limitNow()
	if limit, has := p.policy.userLimit(p, a.user); has {
		if p.sizes.Compare(&limit, &of, &p.total) >= 0 {
			limit = of
		}
		limit.Sub(&a.user.used)
		for i := 0; i < p.sizes.N; i++ {
			v.Set(i, min(v.At(i), limit.At(i)))
		}
	}
	if limit, has := a.user.cap(); has {
		limit.Sub(&a.user.used)
		v.Min(&limit)
	}
	for i := 0; i < p.sizes.N; i++ {
		v.Set(i, max(v.At(i), 0))
	}
	return v
}

// left returns the rest under the limits of a queue and its ancestors. Reservations count as used: admission counts
// them (see admits), and so do Hadoop's queues.
func (q *Queue) left() amounts.Vec {
	p := q.part
	left := p.total
	for ; q != nil; q = q.parent {
		limit := q.sized().bounds.max
		q.bounds.lower(p.now, &limit)
		limit.Sub(&q.used)
		limit.Sub(&q.reserved.sum)
		left.Min(&limit)
	}
	return left
}

// headroomByPartition returns the sum over the partitions in which the application now asks; of the default partition
// if it asks for nothing.
func (a *App) headroomByPartition() amounts.Vec {
	var sum amounts.Vec
	asks := len(a.asks) > 0
	for _, x := range a.parts {
		if len(x.asks) > 0 {
			v := x.headroom()
			sum.Add(&v)
			asks = true
		}
	}
	if len(a.asks) > 0 || !asks {
		v := a.headroom()
		sum.Add(&v)
	}
	return sum
}

func scaleUp(v *amounts.Vec, f float64, step *amounts.Vec, n int) amounts.Vec {
	var out amounts.Vec
	for i := 0; i < n; i++ {
		x := int64(math.Ceil(float64(v.At(i))*f - 1e-6))
		if s := step.At(i); s > 1 {
			x = (x + s - 1) / s * s
		}
		out.Set(i, x)
	}
	return out
}
