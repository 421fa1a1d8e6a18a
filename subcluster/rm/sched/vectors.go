// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Queues with mixed units (queues.Spec.Vectors) divide their parent's amounts all at once, each resource type
// separately, as in Hadoop's CapacityScheduler without its legacy mode. The rounding is Hadoop's to the unit, so the
// order of floating-point operations below matters.

// portions is a child's configured part of one resource type.
type portions struct {
	unit        queues.Unit // Absolute, Percent or Weight
	value       float64
	maximumUnit queues.Unit // Unset, Absolute or Percent
	maximum     float64
	nothing     bool // a child without memory gets no other types
}

// extent is a child's guarantee and maximum.
type extent struct{ least, most int64 }

// divide divides one resource type of a parent among children. The parent is guaranteed have of it and may use most;
// the cluster has total. Absolute amounts come first, scaled down if they exceed the total; percentages are of the
// remainder, weights of the rest. Within a unit the children are served in order, and no child gets more than its
// maximum or the rest.
func divide(total, have, most int64, children []portions, out []extent) {
	var fixed, weights float64
	for _, c := range children {
		switch c.unit {
		case queues.Absolute:
			fixed += c.value
		case queues.Weight:
			weights += c.value
		}
	}
	ofCluster, maxOfCluster := 0.0, 0.0
	if total > 0 {
		ofCluster, maxOfCluster = float64(have)/float64(total), float64(most)/float64(total)
	}
	left := float64(have)
	for _, unit := range [...]queues.Unit{queues.Absolute, queues.Percent, queues.Weight} {
		before, rest := left, 0.0
		if have > 0 {
			rest = left / float64(have)
		}
		for k := range children {
			c := &children[k]
			if c.unit != unit {
				continue
			}
			var part float64
			switch unit {
			case queues.Absolute:
				scale := 1.0
				if fixed > float64(have) {
					scale = float64(float32(have) / float32(fixed))
				}
				part = math.Floor(scale * rest * c.value)
			case queues.Percent:
				part = math.Floor(float64(total) * (ofCluster * rest * c.value / 100))
			case queues.Weight:
				switch share := c.value / weights; {
				case weights == 0:
				case share == 1:
					part = before
				default:
					part = math.Floor(float64(total)*(ofCluster*rest*share) + 0.5)
				}
			}
			limit := float64(most)
			switch c.maximumUnit {
			case queues.Absolute:
				if c.maximum > 0 {
					limit = min(limit, c.maximum)
				}
			case queues.Percent:
				limit = min(limit, math.Floor(float64(total)*(maxOfCluster*c.maximum/100)))
			}
			if c.nothing {
				part = 0
			}
			part = min(part, limit, left)
			left -= part
			out[k] = extent{int64(part), int64(limit)}
		}
	}
}

// asFloat rounds percentages and weights to 32 bits, as Hadoop does.
func asFloat(unit queues.Unit, value float64) float64 {
	if unit == queues.Absolute {
		return value
	}
	return float64(float32(value))
}

// sizeVectors computes the parts of q's children, once per version of the tree.
func (s *Scheduler) sizeVectors(q *Queue) {
	if q.vectorsOf == s.tree.version {
		return
	}
	q.vectorsOf = s.tree.version
	asked, got := make([]portions, len(q.children)), make([]extent, len(q.children))
	for _, c := range q.children {
		c.guaranteed, c.max = amounts.Vec{}, amounts.Vec{}
	}
	for i := 0; i < s.sizes.N; i++ {
		name := s.sizes.Names[i]
		for k, c := range q.children {
			p := &asked[k]
			if p.unit, p.value = c.spec.Capacity.Of(name); p.unit == queues.Unset {
				p.unit = queues.Absolute
			}
			p.value = asFloat(p.unit, p.value)
			p.maximumUnit, p.maximum = c.spec.MaxCapacity.Of(name)
			p.maximum = asFloat(p.maximumUnit, p.maximum)
			p.nothing = i > 0 && c.guaranteed.At(0) == 0
		}
		divide(s.total.At(i), q.guaranteed.At(i), q.max.At(i), asked, got)
		for k, c := range q.children {
			c.guaranteed.Set(i, got[k].least)
			c.max.Set(i, got[k].most)
		}
	}
}

// sizeShares computes a queue's amounts as fractions of its parent's and of the cluster, in 32 bits as in Hadoop.
// Without nodes they are zero, but the maximum as a fraction of the cluster is the configured one.
func (q *Queue) sizeShares() {
	s, p := q.s, q.parent
	of := func(v, whole *amounts.Vec) float32 {
		if d := s.sizes.Dominant(whole, &s.total); d > 0 {
			return float32(s.sizes.Dominant(v, &s.total) / d)
		}
		return 0
	}
	capacity, most := of(&q.guaranteed, &p.guaranteed), of(&q.max, &p.max)
	q.capFrac, q.maxFrac = float64(capacity), float64(most)
	if s.total.IsZero() {
		most = 1
		if m := q.spec.MaxCapacity; m.Unit == queues.Percent {
			most = float32(m.Value / 100)
		}
	}
	q.absCap, q.absMax = float64(float32(p.absCap)*capacity), float64(float32(p.absMax)*most)
	q.bounded = !q.max.Is(&p.max)
}
