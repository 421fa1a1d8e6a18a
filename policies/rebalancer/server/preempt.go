// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/awake"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// BudgetStore is what Budgets needs of the state store.
type BudgetStore interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Budgets tells a ResourceManager what it may take back for queues that have a
// preemption budget in the federation, as long as the plan's lease lasts. While the
// store is away what was told holds until that lease is over; then the local settings
// hold alone.
type Budgets struct {
	ID    creel.SubclusterID
	Store BudgetStore
	Turn  Turn
	Every time.Duration // between looks, or a sixth of a plan's lease if that is shorter
	Log   *slog.Logger

	Clock awake.Held // in which leases run out; the zero value will do

	Counts BudgetCounts

	plan *subcluster.Plan // last told
	// first is the store's clock when the plan was first looked at. What this
	// subcluster took in the interval before is not known to a machine that recovered.
	first    time.Time
	recovers bool
}

// BudgetCounts are for metrics.
type BudgetCounts struct {
	Failed         atomic.Int64
	ShareMB, Count atomic.Int64 // of the budgets told last
}

// Run keeps budgets in force until ctx ends.
func (k *Budgets) Run(ctx context.Context) error {
	if err := k.Turn(ctx, func(m *rm.Machine, _ time.Time) {
		for a := range m.Apps {
			k.recovers = k.recovers || !a.State.Ended()
		}
	}); err != nil {
		return nil // it is stopping
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		now := ""
		if err := k.round(ctx); err != nil && ctx.Err() == nil {
			k.Counts.Failed.Add(1)
			now = err.Error()
		}
		if now != told && now != "" {
			k.Log.Warn("preemption budgets are not read", "subcluster", k.ID, "error", now)
		}
		told = now
		timer.Reset(k.wait())
	}
}

// wait is until the next look: a plan of a short lease is to be followed by the next one
// before it is over, as without a plan nothing bounds what is taken.
func (k *Budgets) wait() time.Duration {
	if k.plan == nil || k.plan.LeaseMS <= 0 {
		return k.Every
	}
	return min(k.Every, max(time.Duration(k.plan.LeaseMS)*time.Millisecond/6, 100*time.Millisecond))
}

// round reads the plan, if the queue tree has budgets, and tells the machine.
func (k *Budgets) round(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, max(k.Every, time.Second))
	defer cancel()
	sent := k.Clock.Now() // leases count from before the read
	has, err := k.bounded(limit)
	if err != nil || !has && k.plan == nil {
		return err
	}
	plan := &subcluster.Plan{}
	var now time.Time
	if has {
		set, err := k.Store.Documents(limit, rebalancer.PlanClass)
		if err != nil {
			return err
		}
		now = set.Now
		if k.first.IsZero() {
			k.first = now
		}
		d, ok := set.Find(rebalancer.PlanName)
		if !ok || k.plan != nil && k.plan.Version == d.Version {
			return nil // told already
		}
		if plan, err = subcluster.ParsePlan(d.Data, d.Version, d.Time); err != nil {
			return err
		}
	}
	k.plan = plan
	if !has {
		k.plan = nil
	}
	return k.Turn(ctx, func(m *rm.Machine, machine time.Time) {
		m.SetPreemptionBudgets(machine, k.budgets(plan, now, machine.Add(sent.Sub(k.Clock.Now()))))
	})
}

// bounded reports whether the queue tree has a budget.
func (k *Budgets) bounded(ctx context.Context) (bool, error) {
	set, err := k.Store.Documents(ctx, rebalancer.TreeClass)
	if err != nil {
		return false, err
	}
	d, ok := set.Find(rebalancer.TreeName)
	if !ok {
		return false, nil
	}
	tree, err := rebalancer.ParseTree(d.Data, d.Version)
	if err != nil {
		return false, err
	}
	for i := range tree.Queues {
		if tree.Queues[i].PreemptionBounded() && !tree.Queues[i].Optout {
			return true, nil
		}
	}
	return false, nil
}

// budgets are those of a plan for this subcluster. now is the store's clock when the
// plan was read, and at the machine's of a moment not after that.
func (k *Budgets) budgets(plan *subcluster.Plan, now, at time.Time) []rm.PreemptionBudget {
	var out []rm.PreemptionBudget
	share := int64(0)
	for i := range plan.Preemption {
		b := &plan.Preemption[i]
		x := rm.PreemptionBudget{
			Queue: b.Queue, Share: b.Share(k.ID), Most: b.Most, Begins: b.Begins,
			Ends: at.Add(b.Ends.Sub(now)), Until: at.Add(plan.Ends().Sub(now)),
		}
		if k.recovers && b.Begins.Before(k.first) {
			x.Share = creel.Resource{}
		}
		share += x.Share.MemoryMB
		out = append(out, x)
	}
	k.Counts.ShareMB.Store(share)
	k.Counts.Count.Store(int64(len(out)))
	return out
}
