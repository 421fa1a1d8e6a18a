// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"maps"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// PreemptionBudget is this subcluster's share of the preemption for a queue and its descendants, on the nodes of a
// label in one interval. It applies beside the settings of preemption; when its lease is over only these apply. It
// does not limit preemption between users and applications of one leaf.
type PreemptionBudget struct {
	Queue creel.QueuePath
	Label string         // "" for nodes without one
	Share creel.Resource // memory and vcores bind; of other types those that Most names
	Most  creel.Resource // in the federation, for Why
	// Begins identifies the interval: budgets that begin at the same time share one, and its preemption counts
	// against all of them.
	Begins time.Time
	Ends   time.Time // of the interval, by the scheduler's time: then nothing is left of it
	Until  time.Time // of the lease, by the scheduler's time
}

// preemptionBudget is one in force.
type preemptionBudget struct {
	PreemptionBudget
	amount      amounts.Vec
	spent       *spending
	ends, until int64
}

// spending is the sum of the victims that were notified in one interval, minus the pardoned.
type spending struct{ sum amounts.Vec }

// SetPreemptionBudgets puts budgets in force, in place of all before, also for labels that do
// not exist yet.
func (s *Scheduler) SetPreemptionBudgets(list []PreemptionBudget) {
	was := maps.Clone(s.preemptBudgets)
	clear(s.preemptBudgets)
	for _, b := range list {
		k := &preemptionBudget{
			PreemptionBudget: b, amount: s.sizes.Vec(b.Share), spent: &spending{},
			ends: b.Ends.UnixNano(), until: b.Until.UnixNano(),
		}
		for i := 2; i < s.sizes.N; i++ {
			if b.Most.Get(s.sizes.Names[i]) == 0 {
				k.amount.Set(i, amounts.Unbounded)
			}
		}
		of := capKey{b.Queue, b.Label}
		if old := was[of]; old != nil && old.Begins.Equal(b.Begins) {
			k.spent = old.spent
		}
		s.preemptBudgets[of] = k
	}
}

// budgetsOf calls yield for the budgets in force of a queue and those above it, in this partition.
func (s *Scheduler) budgetsOf(q *Queue, yield func(*preemptionBudget) bool) {
	if len(s.preemptBudgets) == 0 {
		return
	}
	for ; q != nil; q = q.parent {
		if b := s.preemptBudgets[capKey{q.path, s.label}]; b != nil && s.now < b.until && !yield(b) {
			return
		}
	}
}

// withinBudgets reports whether so much more may be taken back for a queue.
func (r *round) withinBudgets(q *Queue, v *amounts.Vec) bool {
	ok := true
	r.s.budgetsOf(q, func(b *preemptionBudget) bool {
		have := b.spent.sum
		if x := r.planned[b.spent]; x != nil {
			have.Add(x)
		}
		ok = r.s.now < b.ends && r.s.sizes.FitsPlus(&have, v, &b.amount)
		return ok
	})
	return ok
}

// spend counts a claim against the budgets of its queue: in this round only, until its victims are notified. A claim
// within a leaf costs other queues nothing.
func (r *round) spend(c *claim) {
	if c.rule.within() {
		return
	}
	r.s.budgetsOf(c.queue, func(b *preemptionBudget) bool {
		if r.planned == nil {
			r.planned = map[*spending]*amounts.Vec{}
		}
		for _, v := range c.victims {
			sumOf(r.planned, b.spent).Add(&v.Size.V)
		}
		c.spent = append(c.spent, b.spent)
		return true
	})
}

// PreemptionLeft returns, for a waiting application, the rest of its queue's preemption budget on the nodes where it
// waits. Of several budgets in force it takes the one with the least left; false without one.
func (s *Scheduler) PreemptionLeft(a *App) (of PreemptionBudget, left creel.Resource, has bool) {
	q := a.waitsIn()
	s = q.s
	s.budgetsOf(q, func(b *preemptionBudget) bool {
		rest := above(s, &b.amount, &b.spent.sum)
		if s.now >= b.ends {
			rest = amounts.Vec{}
		}
		if is := s.sizes.Resource(&rest); !has || is.MemoryMB < left.MemoryMB {
			of, left, has = b.PreemptionBudget, is, true
		}
		return true
	})
	return of, left, has
}

// within reports whether a rule takes between users and applications of one leaf.
func (r Rule) within() bool { return r == RuleUserLimit || r == RuleAppPriority }
