// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"maps"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// PreemptionBudget is this subcluster's share of the preemption for a queue and its descendants. It applies to the
// nodes of a label in one interval, in addition to the settings of preemption. After its lease only the settings apply.
// It does not limit preemption between users and applications of one leaf.
type PreemptionBudget struct {
	Queue creel.QueuePath
	Label string         // "" for nodes without a label
	Share creel.Resource // limits memory and vcores, and the other types in Most
	Most  creel.Resource // in the federation, for Why
	// Begins identifies the interval. Budgets with the same Begins share one interval, and its preemption counts
	// against all of them.
	Begins time.Time
	Ends   time.Time // of the interval, by the scheduler's time; the rest is 0 after it
	Until  time.Time // of the lease, by the scheduler's time
}

// preemptionBudget is a budget in force.
type preemptionBudget struct {
	PreemptionBudget
	amount      amounts.Vec
	spent       *spending
	ends, until int64
}

// spending is the sum of the victims notified in one interval, minus the pardoned ones.
type spending struct{ sum amounts.Vec }

// SetBudgets replaces all budgets. A budget may be for a label that does not exist yet.
func (p *Preemption) SetBudgets(list []PreemptionBudget) {
	s := p.s
	was := maps.Clone(p.budgets)
	clear(p.budgets)
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
		p.budgets[of] = k
	}
}

// budgetsOf calls yield for the budgets in force of a queue and its ancestors, in this partition.
func (p *Preemption) budgetsOf(q *Queue, yield func(*preemptionBudget) bool) {
	s := p.s
	if len(p.budgets) == 0 {
		return
	}
	for ; q != nil; q = q.parent {
		if b := p.budgets[capKey{q.path, s.label}]; b != nil && s.now < b.until && !yield(b) {
			return
		}
	}
}

// withinBudgets reports whether the budgets permit this much more preemption for a queue.
func (r *round) withinBudgets(q *Queue, v *amounts.Vec) bool {
	ok := true
	r.p.budgetsOf(q, func(b *preemptionBudget) bool {
		have := b.spent.sum
		if x := r.planned[b.spent]; x != nil {
			have.Add(x)
		}
		ok = r.s.now < b.ends && r.s.sizes.FitsPlus(&have, v, &b.amount)
		return ok
	})
	return ok
}

// spend counts a claim against the budgets of its queue. Before its victims are notified it counts in this round only.
// A claim within a leaf costs other queues nothing.
func (r *round) spend(c *claim) {
	if c.rule.within() {
		return
	}
	r.p.budgetsOf(c.queue, func(b *preemptionBudget) bool {
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

// BudgetLeft returns, for a waiting application, the rest of its queue's preemption budget on the nodes where it
// waits. Of several budgets in force it takes the one with the least memory left. It returns false without a budget.
func (p *Preemption) BudgetLeft(a *App) (of PreemptionBudget, left creel.Resource, has bool) {
	q := a.waitsIn()
	s := q.s
	s.preempt.budgetsOf(q, func(b *preemptionBudget) bool {
		rest := s.sizes.Above(&b.amount, &b.spent.sum)
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
