// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
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
