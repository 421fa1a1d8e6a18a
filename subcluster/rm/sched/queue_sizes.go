// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"math"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// reorder recomputes the ranks of all waiting entries below q.
func (q *Queue) reorder() {
	for _, c := range q.ready.Items {
		c.rank = q.ordering.rankOf(c)
		c.reorder()
	}
	q.ready.Rebuild()
	for _, u := range q.users.Items {
		for _, a := range u.apps.Items {
			a.ratio = q.share(a)
		}
		u.apps.Rebuild()
	}
	q.users.Rebuild()
}

// sized updates a queue's amounts, after its ancestors'.
func (q *Queue) sized() *Queue {
	if q.version != q.part.tree.version {
		q.resize()
	}
	return q
}

func (q *Queue) resize() {
	p := q.part
	q.version = p.tree.version
	if q.parent == nil {
		q.capacity.whole(&p.total)
		q.bounds.whole(&p.total)
	} else {
		q.parent.sized()
	}
	p.policy.size(p, q)
	q.bounds.setCap(p.leases.Cap(q.path, p.label))
	q.byPlan()
	q.capacity.promised = p.sizes.Dominant(&q.capacity.entitled, &p.total)
	if q.leaf != nil {
		q.leaf.caps = p.leases.Users(q.path, p.label)
		q.sizeLeaf()
	}
}

// Max returns the queue's maximum; false if only the cluster limits it.
func (q *Queue) Max() (amounts.Vec, bool) {
	q.sized()
	return q.bounds.max, q.bounds.bounded
}

// larger returns the amount with the larger dominant share.
func (p *partition) larger(a, b *amounts.Vec) *amounts.Vec {
	if p.sizes.Compare(a, b, &p.total) >= 0 {
		return a
	}
	return b
}

// sum adds the guarantees of q's children.
func (q *Queue) sum() {
	q.capacity.claims()
	for _, c := range q.children {
		q.capacity.claim(&q.part.sizes, &c.spec.Capacity, c.settings.weight)
	}
}

func finite(f float64) float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	return f
}

// sizeLeaf sets a leaf's limits on applications.
func (q *Queue) sizeLeaf() {
	p, l := q.part, q.leaf
	l.measureUsers()
	base := q.base()
	l.assured = *p.larger(base, &p.sizes.Least)
	l.percent, l.factor = q.spec.UserPercent()/100, q.spec.Factor()
	if l.bound = p.sizes.Dominant(&l.assured, &p.total) * l.factor; l.factor < 0 || base.IsZero() {
		l.bound = p.sizes.Dominant(&q.bounds.max, &p.total)
	}
	step := p.sizes.Step
	step.Max(&amounts.Vec{Memory: 1, VCores: 1})
	l.bound -= p.sizes.Dominant(&step, &p.total)
	part := l.percent
	if l.factor >= 0 {
		part = min(part, l.factor)
	} else {
		l.assured.Min(&q.bounds.max)
	}
	for i := 0; i < p.sizes.N; i++ {
		l.assured.Set(i, int64(float64(l.assured.At(i))*part))
	}
	l.maxApps = -1
	if all := p.tree.spec.MaxApplications; q.spec.MaxApps > 0 {
		l.maxApps = q.spec.MaxApps
	} else if all > 0 {
		all = min(all, cmp.Or(p.tree.spec.MaxQueueApps, all))
		l.maxApps = p.policy.maxApps(q, all)
	}
	l.maxUserApps = p.policy.maxUserApps(q)
}

// written returns a share as configured. A configured zero is stored as a billionth, to distinguish it from an absent
// share.
func written(f float64) float64 {
	if f > 0 && f <= 1e-9 {
		return 0
	}
	return f
}

// byPlan computes a queue's entitlement; its parent's is already known.
func (q *Queue) byPlan() {
	part := q.part
	q.capacity.entitled, q.capacity.planned = q.capacity.guaranteed, q.capacity.absolute
	p := part.planned
	if p == nil || q.parent == nil {
		return
	}
	share, ok := p.byPath[q.path]
	if !ok {
		left, others := q.parent.capacity.planned, 0
		for _, c := range q.parent.children {
			if x, named := p.byPath[c.path]; named {
				left -= x
			} else {
				others++
			}
		}
		share = min(q.capacity.absolute, max(0, left)/float64(max(others, 1)))
	}
	q.capacity.plan(share, &part.total, part.sizes.N)
}

// base returns the amount that limits of users and AMs are fractions of.
func (q *Queue) base() *amounts.Vec {
	if q.part.planned == nil {
		return &q.capacity.guaranteed
	}
	return q.part.larger(&q.capacity.guaranteed, &q.capacity.entitled)
}
