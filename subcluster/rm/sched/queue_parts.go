// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// These are the parts of a Queue that need no pointer to other queues. Each has the rules about its own fields.

// reserved is the sum of the reservations of a queue and its descendants.
type reserved struct {
	containers int32
	sum        amounts.Vec
}

// add counts a reservation (sign 1), or the end of one (-1).
func (r *reserved) add(v *amounts.Vec, sign int64) {
	r.sum.AddTimes(v, sign)
	r.containers += int32(sign)
}

// and returns an amount together with the reserved one.
func (r *reserved) and(used *amounts.Vec) amounts.Vec {
	v := *used
	v.Add(&r.sum)
	return v
}

// queueBounds limit the use of a queue: its maximum, and its cap in the federation.
type queueBounds struct {
	bounded  bool // most can apply before the parent's limit does
	until    int64
	most     amounts.Vec // limit before until, in ns since the epoch: max, or the cap if that is smaller
	max      amounts.Vec
	absolute float64     // max as a fraction of the cluster
	fraction float64     // max as a fraction of the parent's
	cap      *leases.Cap // nil: no federation-wide maximum
}

// whole sets the maximum of the root.
func (b *queueBounds) whole(total *amounts.Vec) { b.max, b.absolute, b.fraction = *total, 1, 1 }

// setCap sets the cap, or none.
func (b *queueBounds) setCap(to *leases.Cap) {
	if b.cap = to; to != nil {
		b.bounded = true
	}
	b.limit()
}

// limit combines maximum and cap in one limit, so that a cap costs an allocation no further comparison. It must run
// after each change of them.
func (b *queueBounds) limit() {
	b.most, b.until = b.max, math.MaxInt64
	if b.cap != nil {
		b.most.Min(&b.cap.Lease.Amount)
		b.until = b.cap.Lease.Until
	}
}

// admits reports whether the limit permits count times need beside an amount in use.
func (b *queueBounds) admits(sizes *amounts.Sizes, now int64, have, need *amounts.Vec, count int64) bool {
	return now < b.until && sizes.FitsPlusTimes(have, need, count, &b.most)
}

// lower reduces an amount to the maximum and the cap.
func (b *queueBounds) lower(now int64, v *amounts.Vec) {
	v.Min(&b.max)
	if b.cap != nil {
		b.cap.Lease.Left(now, v)
	}
}

// capacity is the part of the cluster promised to a queue.
type capacity struct {
	promised   float64     // dominant share of entitled
	entitled   amounts.Vec // guarantee, or the capacity by the federation's plan; see planned.go
	guaranteed amounts.Vec
	minimum    amounts.Vec // FairScheduler
	absolute   float64     // guarantee as a fraction of the cluster
	fraction   float64     // guarantee as a fraction of the parent's
	planned    float64     // entitled as a fraction of the cluster

	// For the division among the children.
	weights float64     // sum of the children's
	fixed   amounts.Vec // sum of the children's absolute capacities
	divided int64       // version at which the children were sized; see sizeVectors
}

// whole sets the guarantee of the root.
func (c *capacity) whole(total *amounts.Vec) { c.guaranteed, c.absolute, c.fraction = *total, 1, 1 }

// claims clears the sums of the children's configured capacities; claim adds a child's.
func (c *capacity) claims() { c.weights, c.fixed = 0, amounts.Vec{} }

func (c *capacity) claim(sizes *amounts.Sizes, of *queues.Amount, weight float64) {
	switch of.Unit {
	case queues.Weight:
		c.weights += weight
	case queues.Absolute:
		v := sizes.Vec(of.Resource)
		c.fixed.Add(&v)
	}
}

// plan sets the entitlement to a fraction of the cluster.
func (c *capacity) plan(share float64, total *amounts.Vec, types int) {
	c.planned, c.entitled = share, amounts.Vec{}
	for i := range types {
		c.entitled.Set(i, int64(float64(total.At(i))*share+1e-6))
	}
}

// settings are a queue's settings after inheritance.
type settings struct {
	order      queues.Policy // of service
	nodes      queues.NodeOrder
	sizeWeight bool // in an order by use, large applications may use more
	weight     float64
	largest    amounts.Vec // container
	maxAM      float64     // share for AMs; negative = no limit
	maxRunning int         // activated applications; 0 = no limit, negative = none
}

// settingsOf returns the settings of a queue. above has those of its parent, nil for the root.
func settingsOf(spec *queues.Queue, above *settings, of *queues.Spec, sizes *amounts.Sizes, t *traits) settings {
	s := settings{
		order: spec.Policy, nodes: spec.NodeOrder, weight: 1, sizeWeight: spec.SizeWeight || of.SizeWeight,
		largest: sizes.Most, maxAM: spec.MaxAMPercent, maxRunning: spec.MaxParallelApps,
	}
	if spec.Capacity.Unit == queues.Weight {
		s.weight = spec.Capacity.Value
	}
	if above != nil {
		s.inherit(above, t.inheritsOrder)
	}
	if s.nodes == queues.NodeOrderDefault {
		s.nodes = queues.Spread
	}
	if s.maxAM == 0 {
		s.maxAM = t.amShare
	}
	if !spec.MaxAllocation.IsZero() {
		v := sizes.Vec(spec.MaxAllocation)
		for i := range sizes.N {
			if v.At(i) > 0 {
				s.largest.Set(i, min(v.At(i), sizes.Most.At(i)))
			}
		}
	}
	return s
}

// inherit applies the parent's settings where the queue has none of its own.
func (s *settings) inherit(above *settings, order bool) {
	s.largest = above.largest
	if s.nodes == queues.NodeOrderDefault {
		s.nodes = above.nodes
	}
	if s.order == queues.PolicyDefault && order {
		s.order = above.order
	}
	if s.maxAM == 0 {
		s.maxAM = above.maxAM
	}
}

// full reports whether no further application may be activated beside so many.
func (s *settings) full(activated int) bool { return s.maxRunning != 0 && activated >= s.maxRunning }

// appCounts are the applications of a queue and its descendants.
type appCounts struct {
	running int         // activated ones
	lined   int32       // with an AM that is in line in this partition
	inLine  amounts.Vec // sum of these AMs
}

// line adds an AM to those in line (sign 1), or subtracts it (-1).
func (c *appCounts) line(am *amounts.Vec, sign int64) {
	c.inLine.AddTimes(am, sign)
	c.lined += int32(sign)
}
