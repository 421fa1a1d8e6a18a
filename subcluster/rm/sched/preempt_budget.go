// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// SetBudgets replaces all budgets of preemption. A budget may be for a label that does not exist yet.
func (p *Preemption) SetBudgets(list []leases.PreemptionBudget) { p.part.leases.SetBudgets(list) }

// budgetsOf calls yield for the budgets in force of a queue and its ancestors, in this partition.
func (p *Preemption) budgetsOf(q *Queue, yield func(*leases.Budget) bool) {
	part := p.part
	if part.leases.NoBudgets() {
		return
	}
	for ; q != nil; q = q.parent {
		if b := part.leases.Budget(q.path, part.label, part.now); b != nil && !yield(b) {
			return
		}
	}
}

// withinBudgets reports whether the budgets permit this much more preemption for a queue.
func (r *round) withinBudgets(q *Queue, v *amounts.Vec) bool {
	ok := true
	r.p.budgetsOf(q, func(b *leases.Budget) bool {
		ok = b.Admits(&r.part.sizes, r.part.now, r.planned[b.Spent], v)
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
	r.p.budgetsOf(c.queue, func(b *leases.Budget) bool {
		if r.planned == nil {
			r.planned = map[*leases.Spending]*amounts.Vec{}
		}
		for _, v := range c.victims {
			sumOf(r.planned, b.Spent).Add(&v.Size.V)
		}
		c.spent = append(c.spent, b.Spent)
		return true
	})
}

// BudgetLeft returns, for a waiting application, the rest of its queue's preemption budget on the nodes where it
// waits. Of several budgets in force it takes the one with the least memory left. It returns false without a budget.
func (p *Preemption) BudgetLeft(a *App) (of leases.PreemptionBudget, left creel.Resource, has bool) {
	q := a.waitsIn()
	part := q.part
	part.preempt.budgetsOf(q, func(b *leases.Budget) bool {
		rest := b.Left(&part.sizes, part.now)
		if is := part.sizes.Resource(&rest); !has || is.MemoryMB < left.MemoryMB {
			of, left, has = b.PreemptionBudget, is, true
		}
		return true
	})
	return of, left, has
}
