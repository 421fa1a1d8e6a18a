// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// capacityPolicy follows Hadoop's CapacityScheduler. Queues are guaranteed parts of their parents and may grow up to
// a maximum. Users of a leaf share it by a minimum percent and a factor.
type capacityPolicy struct{ spec *queues.Spec }

var capacityTraits = traits{
	amShare:            0.1,
	makesUndeclared:    true, // below a queue whose template permits it
	removesOnlyStopped: true,
	guarantees:         true,
	knowsLabels:        true,
	keepsConstraints:   true,
	oneAMAlways:        true, // otherwise a small queue would never run anything
	holdsTheLine:       true, // since Hadoop's blocked headroom
	within:             true,
	byPartition:        true,
	listsNeedACLs:      true,
}

func (p *capacityPolicy) defaultOrder(q *Queue) queues.Policy {
	if q.leaf != nil {
		return queues.Fifo
	}
	return queues.Utilization
}

func (p *capacityPolicy) measure(part *partition, v *amounts.Vec) float64 {
	return part.sizes.Dominant(v, &part.total)
}

func (p *capacityPolicy) maxApps(q *Queue, all int) int {
	if p.spec.Vectors && q.part.total.IsZero() {
		return all // no share is known yet
	}
	part := q.capacity.absolute // the largest over all partitions
	for _, p := range slices.Concat(q.part.others(), q.part.absent()) {
		if c := p.tree.at(q.path); c != nil {
			part = max(part, c.sized().capacity.absolute)
		}
	}
	most := int(float32(all) * float32(part)) // Hadoop multiplies so: 16.65 % of 10000 are 1665
	if q.lifetime.dynamic ||
		q.part.total.IsZero() && q.capacity.absolute == 0 && q.spec.Capacity.Unit == queues.Absolute {
		// Without nodes an amount has no share: accept applications, which wait for nodes.
		most = max(most, 1)
	}
	return most
}

func (p *capacityPolicy) maxUserApps(q *Queue) int {
	most := q.leaf.maxApps
	if most < 0 {
		return most
	}
	if f := q.spec.Factor(); f > 0 {
		most = min(most, int(float32(most)*(float32(q.spec.UserPercent())/100)*float32(f)))
	}
	return most
}

func (p *capacityPolicy) template(above *queues.Queue, levels int) *queues.AutoCreate {
	if t := above.AutoCreate; t != nil && levels <= max(t.Depth, 1) {
		return t
	}
	return nil
}

func (p *capacityPolicy) keepsMade(q *queues.Queue) bool { return !q.IsLeaf() }

func (p *capacityPolicy) priority(want int32) int32 {
	return max(0, min(want, p.spec.MaxClusterPriority))
}

// patience is counted in nodes' heartbeats: node-locality-delay for the rack, and more for anywhere.
func (p *capacityPolicy) patience(part *partition, w *Ask) int64 {
	nodes := float64(part.active)
	toRack := min(float64(p.spec.NodeLocalityDelay), nodes)
	var toAny float64
	if extra := p.spec.RackLocalityAdditionalDelay; extra >= 0 {
		toAny = min(max(toRack, 0)+float64(extra), nodes)
	} else {
		unique := float64(max(len(w.named.Hosts)+len(w.named.Racks), 1))
		toAny = float64(w.count) * min(unique/max(nodes, 1), 1)
	}
	if p.spec.NodeLocalityDelay < 0 {
		toRack, toAny = -1, -1
	}
	beyond := toAny
	if w.level == places.AtNode && len(w.named.Hosts) > 0 {
		beyond = toRack
		if toAny <= toRack {
			// The whole wait is shorter than the wait for the rack: one step.
			beyond = toAny
		}
	}
	if beyond < 0 {
		return 0
	}
	return int64(math.Floor(beyond)) + 1
}

func (p *capacityPolicy) promise(part *partition, q *Queue) float64 {
	return part.sizes.Dominant(&q.sized().capacity.guaranteed, &part.total)
}

func (p *capacityPolicy) report(*partition, *Queue, *explain.QueueView) {}

func (p *capacityPolicy) countedAs(a *App) (running, pending bool) { return a.activated, a.InLine() }

// percentage and product compute shares in 32 bits, as Hadoop does.
func percentage(v float64) float64 { return float64(float32(v) / 100) }

func product(a, b float64) float64 { return float64(float32(a) * float32(b)) }

// portion returns a child's part f of an amount of its parent q, rounded down once. If the parent's amount is itself a
// fraction (abs) of the cluster, the child's is the product of both, as in Hadoop, so that depth adds no rounding.
func (p *capacityPolicy) portion(q *Queue, of *amounts.Vec, abs, f float64) amounts.Vec {
	if f == 1 {
		return *of
	}
	part := q.part
	if q.spec.Capacity.Unit != queues.Absolute && q.spec.MaxCapacity.Unit != queues.Absolute {
		of, f = &part.total, product(abs, f)
	}
	var v amounts.Vec
	for i := 0; i < part.sizes.N; i++ {
		v.Set(i, int64(float64(of.At(i))*f))
	}
	return v
}

// partByType returns percentages of an amount, for the resource types that have one.
func partByType(sizes *amounts.Sizes, of *amounts.Vec, types []queues.TypePercent) amounts.Vec {
	v := *of
	for _, tp := range types {
		for i, name := range sizes.Names {
			if name == tp.Type {
				v.Set(i, int64(float64(of.At(i))*tp.Percent/100+1e-6))
			}
		}
	}
	return v
}

// size computes a queue's part of its parent.
func (p *capacityPolicy) size(part *partition, c *Queue) {
	switch {
	case c.parent == nil: // the root has everything
	case p.spec.Vectors:
		c.parent.sizeVectors()
		c.sizeShares()
	default:
		p.sizeGuarantee(part, c)
		p.sizeMaximum(part, c)
	}
}

// sizeGuarantee computes a queue's guarantee from its capacity.
func (p *capacityPolicy) sizeGuarantee(part *partition, q *Queue) {
	a, c, above := &q.spec.Capacity, &q.capacity, &q.parent.capacity
	switch a.Unit {
	case queues.Weight:
		c.fraction = 0
		if above.weights > 0 {
			c.fraction = float64(float32(q.settings.weight) / float32(above.weights))
		}
		c.guaranteed = p.portion(q.parent, &above.guaranteed, above.absolute, c.fraction)
	case queues.Absolute:
		c.guaranteed = part.sizes.Vec(a.Resource)
		of := part.sizes.Dominant(&above.guaranteed, &part.total)
		// If the guarantees exceed the total, by the calculator's measure, each queue gets its proportional part of
		// each type.
		if of < part.sizes.Dominant(&above.fixed, &part.total) {
			for i := 0; i < part.sizes.N; i++ {
				if sum := above.fixed.At(i); sum > 0 {
					c.guaranteed.Set(i, int64(float64(c.guaranteed.At(i))*float64(above.guaranteed.At(i))/float64(sum)))
				}
			}
		}
		c.fraction = finite(part.sizes.Dominant(&c.guaranteed, &part.total) / of)
	case queues.PerType:
		c.guaranteed = partByType(&part.sizes, &above.guaranteed, a.Types)
		c.fraction = part.sizes.Dominant(&c.guaranteed, &above.guaranteed)
	default:
		c.fraction = percentage(a.Value)
		c.guaranteed = p.portion(q.parent, &above.guaranteed, above.absolute, c.fraction)
	}
	c.absolute = product(above.absolute, c.fraction)
	if a.Unit == queues.Absolute {
		c.absolute = finite(part.sizes.Dominant(&c.guaranteed, &part.total))
	}
}

// sizeMaximum computes a queue's maximum from its maximum capacity.
func (p *capacityPolicy) sizeMaximum(part *partition, q *Queue) {
	a, b, above := &q.spec.MaxCapacity, &q.bounds, &q.parent.bounds
	b.bounded = true
	switch a.Unit {
	case queues.Percent:
		b.fraction = percentage(a.Value)
		b.max = p.portion(q.parent, &above.max, above.absolute, b.fraction)
		b.bounded = a.Value < 100
	case queues.Absolute:
		b.max = part.sizes.Vec(a.Resource)
		for i := 0; i < part.sizes.N; i++ {
			if b.max.At(i) == 0 {
				b.max.Set(i, above.max.At(i))
			}
		}
		b.max.Min(&above.max)
		b.fraction = finite(part.sizes.Dominant(&b.max, &part.total) / part.sizes.Dominant(&above.max, &part.total))
	case queues.PerType:
		b.max = partByType(&part.sizes, &above.max, a.Types)
		b.fraction = finite(part.sizes.Dominant(&b.max, &above.max))
	default:
		b.max, b.fraction, b.bounded = above.max, 1, false
	}
	b.absolute = product(above.absolute, b.fraction)
	if a.Unit == queues.Absolute {
		b.absolute = finite(part.sizes.Dominant(&b.max, &part.total))
	}
}

// amLimit returns a share of the queue's current limit if that is at least its guarantee in every type, else of the
// guarantee. On the nodes of a label it is always a share of the guarantee. One user's part is the same share of the
// user's part of the guarantee: the minimum percent, or an equal part for each active user, times the user limit
// factor. So one user cannot take the queue's excess over its guarantee.
func (p *capacityPolicy) amLimit(part *partition, q *Queue, u *user, _ shareSet) (all, one amounts.Vec) {
	promised := *q.sized().base()
	base := promised
	if part.label == "" {
		limit := q.limitNow()
		for i := 0; i < part.sizes.N; i++ { // Hadoop rounds its current limit to whole steps
			if st := part.sizes.Step.At(i); st > 1 {
				limit.Set(i, limit.At(i)/st*st)
			}
		}
		if part.sizes.Fits(&promised, &limit) {
			base = limit
		}
	}
	share := written(q.settings.maxAM)
	all = scaleUp(&base, share, &part.sizes.Step, part.sizes.N)
	fraction, f := 1.0, q.spec.Factor()
	if f >= 0 {
		fraction = max(q.leaf.percent, 1/float64(max(q.wanting(), 1)))
		if u != nil {
			fraction = min(fraction*u.weight, 1)
		}
		fraction *= f
	}
	one = scaleUp(&promised, share*fraction, &part.sizes.Step, part.sizes.N)
	if part.sizes.Dominant(&one, &part.total) > part.sizes.Dominant(&all, &part.total) {
		one = all
	}
	return all, one
}
