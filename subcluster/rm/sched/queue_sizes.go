// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// resize runs after the cluster or the configuration changed. Guarantees and maximums are computed at the next use
// (sized), so idle queues cost nothing. Waiting queues are ranked again, and queues that a limit had stopped are
// tried again.
func (s *Scheduler) resize() {
	s.tree.version++
	s.tree.sharesAt = 0
	if s.waiting > 0 {
		s.tree.root.reorder()
	}
	s.loosen()
	if s.main != nil {
		s.main.resizeDue = true // there, AMs of the partition wait in line
	}
}

// loosen retries the asks that limits had stopped.
func (s *Scheduler) loosen() {
	s.retries.loosen(s.line.try)
	s.lending.again()
}

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
	if q.version != q.s.tree.version {
		q.resize()
	}
	return q
}

func (q *Queue) resize() {
	s := q.s
	q.version = s.tree.version
	if q.parent == nil {
		q.guaranteed, q.max, q.absCap, q.absMax, q.capFrac, q.maxFrac = s.total, s.total, 1, 1, 1, 1
	} else {
		q.parent.sized()
	}
	s.policy.size(s, q)
	if q.cap = s.leases.Cap(q.path, s.label); q.cap != nil {
		q.bounded = true
	}
	q.limit()
	s.byPlan(q)
	q.promised = s.sizes.Dominant(&q.entitled, &s.total)
	if q.leaf != nil {
		q.leaf.caps = s.leases.Users(q.path, s.label)
		s.sizeLeaf(q)
	}
}

// sum adds the guarantees of q's children.
func (q *Queue) sum() {
	q.weights, q.fixed = 0, amounts.Vec{}
	for _, c := range q.children {
		switch c.spec.Capacity.Unit {
		case queues.Weight:
			q.weights += c.weight
		case queues.Absolute:
			v := q.s.sizes.Vec(c.spec.Capacity.Resource)
			q.fixed.Add(&v)
		}
	}
}

func finite(f float64) float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	return f
}

// portion returns a child's part f of a parent's amount, rounded down once. If the parent's amount is itself a
// fraction (abs) of the cluster, the child's is the product of both, as in Hadoop, so that depth adds no rounding.
func (s *Scheduler) portion(parent *Queue, of *amounts.Vec, abs, f float64) amounts.Vec {
	if f == 1 {
		return *of
	}
	if parent.spec.Capacity.Unit != queues.Absolute && parent.spec.MaxCapacity.Unit != queues.Absolute {
		of, f = &s.total, product(abs, f)
	}
	var v amounts.Vec
	for i := 0; i < s.sizes.N; i++ {
		v.Set(i, int64(float64(of.At(i))*f))
	}
	return v
}

func (s *Scheduler) partByType(of *amounts.Vec, types []queues.TypePercent) amounts.Vec {
	v := *of
	for _, tp := range types {
		for i, name := range s.sizes.Names {
			if name == tp.Type {
				v.Set(i, int64(float64(of.At(i))*tp.Percent/100+1e-6))
			}
		}
	}
	return v
}

// sizeLeaf sets a leaf's limits on applications.
func (s *Scheduler) sizeLeaf(q *Queue) {
	l := q.leaf
	l.measureUsers()
	base := q.base()
	l.assured = *s.larger(base, &s.sizes.Least)
	l.percent, l.factor = q.minUserPercent()/100, q.factor()
	if l.bound = s.sizes.Dominant(&l.assured, &s.total) * l.factor; l.factor < 0 || base.IsZero() {
		l.bound = s.sizes.Dominant(&q.max, &s.total)
	}
	step := s.sizes.Step
	step.Max(&amounts.Vec{Memory: 1, VCores: 1})
	l.bound -= s.sizes.Dominant(&step, &s.total)
	part := l.percent
	if l.factor >= 0 {
		part = min(part, l.factor)
	} else {
		l.assured.Min(&q.max)
	}
	for i := 0; i < s.sizes.N; i++ {
		l.assured.Set(i, int64(float64(l.assured.At(i))*part))
	}
	l.maxApps = -1
	if all := s.tree.spec.MaxApplications; q.spec.MaxApps > 0 {
		l.maxApps = q.spec.MaxApps
	} else if all > 0 {
		all = min(all, cmp.Or(s.tree.spec.MaxQueueApps, all))
		l.maxApps = s.policy.maxApps(q, all)
	}
	l.maxUserApps = s.policy.maxUserApps(q)
}

// written returns a share as configured. A configured zero is stored as a billionth, to distinguish it from an absent
// share.
func written(f float64) float64 {
	if f > 0 && f <= 1e-9 {
		return 0
	}
	return f
}

func (q *Queue) minUserPercent() float64 {
	if q.spec.MinUserPercent <= 0 || q.spec.MinUserPercent > 100 {
		return 100
	}
	return q.spec.MinUserPercent
}

func (q *Queue) factor() float64 {
	if q.spec.UserFactor == 0 {
		return 1
	}
	return q.spec.UserFactor
}
