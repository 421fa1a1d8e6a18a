// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// fairPolicy follows Hadoop's FairScheduler: queues share by weight. None stays below its minimum while it wants
// more, and none exceeds its maximum. There are no limits on users and no priorities of applications.
type fairPolicy struct{ spec *queues.Spec }

// fairTraits: without oneAMAlways a queue whose AM limit is less than one AM runs none, and without holdsTheLine the
// next ask in order is always tried.
var fairTraits = traits{inheritsOrder: true, amShare: 0.5, makesUndeclared: true}

func (p *fairPolicy) defaultOrder(*Queue) queues.Policy { return queues.FairShare }

func (p *fairPolicy) maxApps(_ *Queue, all int) int { return all }

func (p *fairPolicy) maxUserApps(q *Queue) int { return q.leaf.maxApps }

func (p *fairPolicy) template(above *queues.Queue, _ int) *queues.AutoCreate {
	if above.AutoCreate == nil {
		return &queues.AutoCreate{Depth: 64}
	}
	return above.AutoCreate
}

func (p *fairPolicy) keepsMade(*queues.Queue) bool { return true }

func (p *fairPolicy) userAdmits(*partition, *user) bool { return true }

func (p *fairPolicy) userLimit(*partition, *user) (amounts.Vec, bool) { return amounts.Vec{}, false }

func (p *fairPolicy) priority(int32) int32 { return 0 }

// patience is a fraction of the number of nodes.
func (p *fairPolicy) patience(part *partition, w *Ask) int64 {
	t := p.spec.NodeLocalityThreshold
	if w.level == places.AtRack {
		t = max(p.spec.NodeLocalityThreshold, 0) + p.spec.RackLocalityThreshold
		if p.spec.RackLocalityThreshold < 0 {
			return 0
		}
	}
	return int64(math.Ceil(max(t, 0) * float64(part.active)))
}

// amLimit returns a share of the queue's fair share, or, for a type with fair share 0, of the free resources within
// the queue's maximum. It does not round to steps.
func (p *fairPolicy) amLimit(part *partition, q *Queue, _ *user, set shareSet) (all, one amounts.Vec) {
	part.tree.refreshShares(set)
	base := p.dividedAmong(q.sized(), q.shares[set].share)
	root := part.tree.root
	for i := 0; i < part.sizes.N; i++ {
		if base.At(i) == 0 {
			base.Set(i, min(max(part.total.At(i)-root.used.At(i), 0), q.bounds.max.At(i)))
		}
	}
	return scaleUp(&base, written(q.settings.maxAM), &amounts.Vec{}, part.sizes.N), amounts.Unlimited
}

// dividedAmong returns the part of a share that the parent's policy divides: the fair policy divides only memory.
func (p *fairPolicy) dividedAmong(q *Queue, share amounts.Vec) amounts.Vec {
	if q.parent != nil && !q.parent.ordering.byType {
		return amounts.Vec{Memory: share.Memory}
	}
	return share
}

// measure returns the share of memory, whatever the queues' policy.
func (p *fairPolicy) measure(part *partition, v *amounts.Vec) float64 {
	return float64(v.Memory) / float64(max(part.total.Memory, 1))
}

// demand returns a queue's use and waiting asks, within its maximum and its descendants'.
func (p *fairPolicy) demand(part *partition, q *Queue) amounts.Vec {
	var v amounts.Vec
	if q.leaf != nil {
		v = q.used
		v.Add(&q.pending)
		v.Add(&q.apps.inLine)
	}
	for _, c := range q.children {
		below := p.demand(part, c)
		v.Add(&below)
	}
	if q.sized().bounds.bounded {
		v.Min(&q.bounds.max)
	}
	return v
}

// promise is the queue's fair share of memory.
func (p *fairPolicy) promise(part *partition, q *Queue) float64 {
	part.tree.refreshShares(inViews)
	return float64(q.shares[inViews].share.Memory) / float64(max(part.total.Memory, 1))
}

// report sets fair shares as guarantees, and counts as active the applications that have had a container.
func (p *fairPolicy) report(part *partition, q *Queue, v *explain.QueueView) {
	v.Guaranteed, v.Minimum = v.FairShare, part.sizes.Resource(&q.capacity.minimum)
	told := func(share amounts.Vec) creel.Resource {
		share = p.dividedAmong(q, share)
		return part.sizes.Resource(&share)
	}
	v.FairShare, v.SteadyShare = told(q.shares[inViews].share), told(q.shares[inViews].steady)
	demand := p.demand(part, q)
	v.Demand = part.sizes.Resource(&demand)
	if l := q.leaf; l != nil {
		v.ActiveApps, v.PendingApps = l.begun, int32(l.apps)-l.begun
	}
}

func (p *fairPolicy) countedAs(a *App) (running, pending bool) { return a.begun, !a.begun }

// fraction is a percentage of an amount in Hadoop's order of operations, rounded down to whole units, not to steps.
func fraction(of int64, percent float64) int64 { return int64(float64(of) * (percent / 100)) }

// size sets the bounds of a queue. Current shares are computed on request (fairshare.go).
func (p *fairPolicy) size(part *partition, c *Queue) {
	amount := func(a *queues.Amount, none amounts.Vec) (amounts.Vec, bool) {
		switch a.Unit {
		case queues.Absolute:
			v := part.sizes.Vec(a.Resource)
			for i := 2; i < part.sizes.N; i++ {
				if v.At(i) == 0 {
					v.Set(i, none.At(i))
				}
			}
			return v, true
		case queues.Percent:
			v := none
			for i := 0; i < part.sizes.N; i++ {
				v.Set(i, fraction(part.total.At(i), a.Value))
			}
			return v, true
		case queues.PerType:
			v := part.total
			for _, tp := range a.Types {
				if i := slices.Index(part.sizes.Names[:part.sizes.N], tp.Type); i >= 0 {
					v.Set(i, fraction(part.total.At(i), tp.Percent))
				}
			}
			return v, true
		}
		return none, false
	}
	c.capacity.minimum, _ = amount(&c.spec.Minimum, amounts.Vec{})
	c.bounds.max, c.bounds.bounded = amount(&c.spec.MaxCapacity, amounts.Unlimited)
	for i := 0; i < part.sizes.N; i++ {
		c.bounds.max.Set(i, max(c.bounds.max.At(i), c.capacity.minimum.At(i)))
	}
	if c.parent == nil {
		c.bounds.max.Min(&part.total)
	}
	c.bounds.fraction, c.bounds.absolute = 1, 1
	if c.bounds.bounded {
		c.bounds.absolute = min(1, finite(part.sizes.Dominant(&c.bounds.max, &part.total)))
	}
}
