// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// PreemptionBudget is this subcluster's share of the preemption for a queue.
type PreemptionBudget = leases.PreemptionBudget

// SetPreemptionBudgets replaces all budgets. They apply from the next round of preemption on; containers under notice
// stay under notice.
func (m *Machine) SetPreemptionBudgets(now time.Time, list []PreemptionBudget) {
	m.at(now)
	m.sched.Preemption().SetBudgets(list)
}

// whyBudget returns, for a waiting application, a text about the federation's preemption budget for its queue here.
// The text begins with a space; it is "" without a budget.
func (r Reader) whyBudget(a *app) string {
	m := r.m
	if _, on := m.sched.Preemption().Settings(); !on || !a.wants() {
		return ""
	}
	b, left, has := m.sched.Preemption().BudgetLeft(&a.App)
	if !has {
		return ""
	}
	on := ""
	if b.Label != "" {
		on = " on nodes of label " + b.Label
	}
	return fmt.Sprintf(" The federation's preemption budget here%s for queue %s is %s until %s; %s of it is left.",
		on, b.Queue, b.Share, b.Ends.UTC().Format(time.TimeOnly), left)
}
