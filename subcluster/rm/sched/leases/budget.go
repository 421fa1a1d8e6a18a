// SPDX-License-Identifier: Apache-2.0

package leases

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

// Budget is a budget for a queue on nodes of a label.
type Budget struct {
	PreemptionBudget
	Spent *Spending
	lease Lease
	ends  int64
}

// Spending is the sum of the victims notified in one interval, minus the pardoned ones.
type Spending struct{ Sum amounts.Vec }

// SetBudgets replaces all budgets.
func (b *Book) SetBudgets(list []PreemptionBudget) {
	was := maps.Clone(b.budgets)
	clear(b.budgets)
	for _, x := range list {
		k := &Budget{
			PreemptionBudget: x, Spent: &Spending{}, ends: x.Ends.UnixNano(),
			lease: b.lease(&x.Share, &x.Most, x.Until),
		}
		of := key{x.Queue, x.Label}
		if old := was[of]; old != nil && old.Begins.Equal(x.Begins) {
			k.Spent = old.Spent
		}
		b.budgets[of] = k
	}
}

// NoBudgets reports whether there is no budget.
func (b *Book) NoBudgets() bool { return len(b.budgets) == 0 }

// Budget returns the budget in force of a queue on nodes of a label, nil for none.
func (b *Book) Budget(q creel.QueuePath, label string, now int64) *Budget {
	if k := b.budgets[key{q, label}]; k != nil && !k.lease.Expired(now) {
		return k
	}
	return nil
}

// Admits reports whether the budget permits need beside its spending, of which planned is not notified yet: nil for
// none.
func (k *Budget) Admits(sizes *amounts.Sizes, now int64, planned, need *amounts.Vec) bool {
	have := k.Spent.Sum
	if planned != nil {
		have.Add(planned)
	}
	return now < k.ends && sizes.FitsPlus(&have, need, &k.lease.Amount)
}

// Left returns the rest of the budget.
func (k *Budget) Left(sizes *amounts.Sizes, now int64) amounts.Vec {
	if now >= k.ends {
		return amounts.Vec{}
	}
	return sizes.Above(&k.lease.Amount, &k.Spent.Sum)
}
