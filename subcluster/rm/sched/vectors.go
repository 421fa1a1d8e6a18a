// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/shares"
)

// Queues with mixed units (queues.Spec.Vectors) divide their parent's amounts all at once, each resource type
// separately, as in Hadoop's CapacityScheduler without its legacy mode. Package shares has the division.

// sizeVectors computes the parts of q's children, once per version of the tree.
func (q *Queue) sizeVectors() {
	part := q.part
	if q.capacity.divided == part.tree.version {
		return
	}
	q.capacity.divided = part.tree.version
	asked, got := make([]shares.Portion, len(q.children)), make([]shares.Extent, len(q.children))
	for _, c := range q.children {
		c.capacity.guaranteed, c.bounds.max = amounts.Vec{}, amounts.Vec{}
	}
	for i := 0; i < part.sizes.N; i++ {
		name := part.sizes.Names[i]
		for k, c := range q.children {
			p := &asked[k]
			if p.Unit, p.Value = c.spec.Capacity.Of(name); p.Unit == queues.Unset {
				p.Unit = queues.Absolute
			}
			p.Value = shares.As32Bits(p.Unit, p.Value)
			p.MaximumUnit, p.Maximum = c.spec.MaxCapacity.Of(name)
			p.Maximum = shares.As32Bits(p.MaximumUnit, p.Maximum)
			p.Nothing = i > 0 && c.capacity.guaranteed.At(0) == 0
		}
		shares.Divide(part.total.At(i), q.capacity.guaranteed.At(i), q.bounds.max.At(i), asked, got)
		for k, c := range q.children {
			c.capacity.guaranteed.Set(i, got[k].Least)
			c.bounds.max.Set(i, got[k].Most)
		}
	}
}

// sizeShares computes a queue's amounts as fractions of its parent's and of the cluster, in 32 bits as in Hadoop.
// Without nodes they are zero, but the maximum as a fraction of the cluster is the configured one.
func (q *Queue) sizeShares() {
	part, p := q.part, q.parent
	of := func(v, whole *amounts.Vec) float32 {
		if d := part.sizes.Dominant(whole, &part.total); d > 0 {
			return float32(part.sizes.Dominant(v, &part.total) / d)
		}
		return 0
	}
	capacity, most := of(&q.capacity.guaranteed, &p.capacity.guaranteed), of(&q.bounds.max, &p.bounds.max)
	q.capacity.fraction, q.bounds.fraction = float64(capacity), float64(most)
	if part.total.IsZero() {
		most = 1
		if m := q.spec.MaxCapacity; m.Unit == queues.Percent {
			most = float32(m.Value / 100)
		}
	}
	q.capacity.absolute = float64(float32(p.capacity.absolute) * capacity)
	q.bounds.absolute = float64(float32(p.bounds.absolute) * most)
	q.bounds.bounded = !q.bounds.max.Is(&p.bounds.max)
}
