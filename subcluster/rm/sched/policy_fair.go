// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// fairPolicy follows Hadoop's FairScheduler: queues share by weight, none below
// its minimum while it wants more, none above its maximum. There are no limits on
// users and no priorities of applications.
type fairPolicy struct{ spec *queues.Spec }

func (p *fairPolicy) defaultOrder(*Queue) queues.Policy { return queues.FairShare }

func (p *fairPolicy) inheritsOrder() bool { return true }

func (p *fairPolicy) amShare() float64 { return 0.5 }

func (p *fairPolicy) maxApps(_ *Queue, all int) int { return all }

func (p *fairPolicy) maxUserApps(q *Queue) int { return q.leaf.maxApps }

func (p *fairPolicy) makesUndeclared() bool { return true }

func (p *fairPolicy) template(above *queues.Queue, _ int) *queues.AutoCreate {
	if above.AutoCreate == nil {
		return &queues.AutoCreate{Depth: 64}
	}
	return above.AutoCreate
}

func (p *fairPolicy) keepsMade(*queues.Queue) bool { return true }

func (p *fairPolicy) removesOnlyStopped() bool { return false }

func (p *fairPolicy) knowsLabels() bool      { return false }
func (p *fairPolicy) keepsConstraints() bool { return false }

func (p *fairPolicy) userAdmits(*Scheduler, *user) bool { return true }

func (p *fairPolicy) userLimit(*Scheduler, *user) (amounts.Vec, bool) { return amounts.Vec{}, false }

// holdsTheLine: the next in order is tried, whoever waits before it.
func (p *fairPolicy) holdsTheLine() bool { return false }

func (p *fairPolicy) priority(int32) int32 { return 0 }

// patience is a share of the cluster's nodes.
func (p *fairPolicy) patience(s *Scheduler, w *Ask) int64 {
	t := p.spec.NodeLocalityThreshold
	if w.level == atRack {
		t = max(p.spec.NodeLocalityThreshold, 0) + p.spec.RackLocalityThreshold
		if p.spec.RackLocalityThreshold < 0 {
			return 0
		}
	}
	return int64(math.Ceil(max(t, 0) * float64(s.active)))
}

// amLimit is a share of the queue's fair share, or of its maximum as long as
// that is nothing; in any units, not in steps.
func (p *fairPolicy) amLimit(s *Scheduler, q *Queue, _ *user, set shareSet) (all, one amounts.Vec) {
	s.refreshShares(set)
	base := q.sized().shares[set].share
	if base.IsZero() {
		base = q.max
		base.Min(&s.total)
	}
	return scaleUp(&base, q.maxAM, &amounts.Vec{}, s.sizes.N), amounts.Unlimited
}

func (p *fairPolicy) within() bool { return false }

func (p *fairPolicy) byPartition() bool { return false }

// promise is the queue's fair share of the memory.
func (p *fairPolicy) promise(s *Scheduler, q *Queue) float64 {
	s.refreshShares(inViews)
	return float64(q.shares[inViews].share.Memory) / float64(max(s.total.Memory, 1))
}

// report tells fair shares as what is guaranteed, and counts as active the
// applications that have had a container.
func (p *fairPolicy) report(s *Scheduler, q *Queue, v *QueueView) {
	v.Guaranteed, v.Minimum = v.FairShare, s.sizes.Resource(&q.minimum)
	if l := q.leaf; l != nil {
		v.ActiveApps, v.PendingApps = l.begun, int32(l.apps)-l.begun
	}
}

// size sets the bounds of a queue. Shares of the moment are computed when asked
// for (fairshare.go).
func (p *fairPolicy) size(s *Scheduler, c *Queue) {
	q := c.parent
	amount := func(a *queues.Amount, none amounts.Vec) (amounts.Vec, bool) {
		switch a.Unit {
		case queues.Absolute:
			v := s.sizes.Vec(a.Resource)
			for i := 2; i < s.sizes.N; i++ {
				if v.At(i) == 0 {
					v.Set(i, none.At(i))
				}
			}
			return v, true
		case queues.Percent:
			return s.part(&s.total, a.Value/100), true
		case queues.PerType:
			return s.partByType(&s.total, a.Types), true
		}
		return none, false
	}
	c.minimum, _ = amount(&c.spec.Minimum, amounts.Vec{})
	c.max, c.bounded = amount(&c.spec.MaxCapacity, amounts.Unlimited)
	if !c.bounded {
		c.max, c.bounded = amount(&q.spec.MaxChild, amounts.Unlimited)
	}
	c.maxFrac, c.absMax = 1, 1
	if c.bounded {
		c.absMax = min(1, finite(s.sizes.Dominant(&c.max, &s.total)))
	}
}
