// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// FollowerStore is the part of the state store that a Follower needs.
type FollowerStore interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Follower makes a ResourceManager follow the federation's plan while the plan's lease lasts. It applies the plan's
// capacities of queues, and the amounts that may be taken back for queues with a preemption budget. While the store
// is unavailable the last plan applies until its lease is over. After that only the local settings apply.
type Follower struct {
	ID    creel.SubclusterID
	Store FollowerStore
	Turn  Turn
	// Settings, if set, is the Hadoop ResourceManager on whose behalf this process acts; Turn is not used then.
	Settings PreemptionSettings
	// Capacities, if set together with Settings, has the capacities of the ResourceManager's queues.
	Capacities CapacitySettings
	Every      time.Duration // between rounds, or a sixth of a plan's lease if that is shorter
	Log        *slog.Logger  // nil: silent

	Clock pauseclock.LeaseClock // for leases; the zero value works

	Counts FollowerCounts

	plan       *subcluster.Plan // last one applied
	list       []rm.PreemptionBudget
	pace       paceState                             // with Settings
	capacity   capacityState                         // with Capacities
	capacities map[string][]rebalancer.QueueCapacity // last in force, by label
	// first is the store's clock when the plan was first read. A machine that recovered does not know the amounts
	// that this subcluster took in the interval before first.
	first    time.Time
	recovers bool
}

// FollowerCounts are for metrics.
type FollowerCounts struct {
	Failed         atomic.Int64
	ShareMB, Count atomic.Int64 // of the budgets last applied
	Planned        atomic.Int64 // queues whose capacity follows the plan
}

// Run makes rounds until ctx ends.
func (k *Follower) Run(ctx context.Context) error {
	if err := k.Begin(ctx); err != nil {
		return nil // the process is stopping
	}
	if k.Settings != nil {
		defer k.release(ctx)
		defer k.putBack(ctx)
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
		if err := k.Round(ctx); err != nil && ctx.Err() == nil {
			k.Counts.Failed.Add(1)
			now = err.Error()
		}
		if now != told && now != "" {
			k.Log.Warn("failed to follow the federation's plan", "subcluster", k.ID, "error", now)
		}
		told = now
		timer.Reset(k.Between())
	}
}

// Begin prepares for rounds.
func (k *Follower) Begin(ctx context.Context) error {
	if k.Log == nil {
		k.Log = slog.New(slog.DiscardHandler)
	}
	if k.Settings != nil {
		k.recovers = true
		return nil
	}
	return k.Turn(ctx, func(m *rm.Machine, _ time.Time) {
		for a := range m.Apps {
			k.recovers = k.recovers || !a.State.Ended()
		}
	})
}

// Between returns the time from the end of one round to the next. It is short enough to replace a plan with a short
// lease before the lease ends, since without a plan no budget limits preemption.
func (k *Follower) Between() time.Duration {
	if k.plan == nil || k.plan.LeaseMS <= 0 {
		return k.Every
	}
	return min(k.Every, max(time.Duration(k.plan.LeaseMS)*time.Millisecond/6, 100*time.Millisecond))
}

// capacityBand is the part of a subcluster by which the plan's capacities of its queues may differ from the
// capacities in force. Capacities may change by any amount at once: a change costs nothing, it ends with the lease,
// and preemption waits before it takes containers.
const capacityBand, capacityStep = 0.01, 1

// Round reads the plan, if the queue tree sets anything that members follow, and applies it to the ResourceManager.
func (k *Follower) Round(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, max(k.Every, time.Second))
	defer cancel()
	sent := k.Clock.Now() // leases count from a time before the read
	plan, now, err := k.read(limit)
	switch {
	case k.Settings != nil:
		if plan != nil {
			k.list = k.budgets(plan, now, sent)
			k.capacity.plan, k.capacity.until = plan, sent.Add(plan.Ends().Sub(now))
		}
		err = errors.Join(err, k.steer(ctx))
		if k.Capacities != nil {
			err = errors.Join(err, k.conform(ctx))
		}
		return err // leases still end
	case err != nil || plan == nil:
		return err
	}
	var refused error
	err = k.Turn(ctx, func(m *rm.Machine, machine time.Time) {
		at := machine.Add(sent.Sub(k.Clock.Now()))
		m.SetPreemptionBudgets(machine, k.budgets(plan, now, at))
		k.Counts.Planned.Store(0)
		for _, label := range k.pools(plan) {
			of := plan.In(label)
			if of == nil { // no node has the label, or the plan no longer covers it
				of = &subcluster.Plan{}
			}
			c := k.planned(of, label, m.ConfiguredQueues(label), now, at)
			refused = errors.Join(refused, m.SetCapacities(machine, c))
		}
	})
	return errors.Join(err, refused)
}

// read returns the plan to apply and the store's clock. The plan is empty if the queue tree no longer sets anything,
// and nil if there is no new plan.
func (k *Follower) read(ctx context.Context) (*subcluster.Plan, time.Time, error) {
	has, err := k.followed(ctx)
	if err != nil || !has && k.plan == nil {
		return nil, time.Time{}, err
	}
	if !has {
		k.plan = nil
		return &subcluster.Plan{}, time.Time{}, nil
	}
	set, err := k.Store.Documents(ctx, rebalancer.PlanClass)
	if err != nil {
		return nil, time.Time{}, err
	}
	if k.first.IsZero() {
		k.first = set.Now
	}
	d, ok := set.Find(rebalancer.PlanName)
	if !ok || k.plan != nil && k.plan.Version == d.Version {
		return nil, set.Now, nil // applied already
	}
	plan, err := subcluster.ParsePlan(d.Data, d.Version, d.Time)
	if err != nil {
		return nil, set.Now, err
	}
	k.plan = plan
	return plan, set.Now, nil
}

// followed reports whether the queue tree has settings that members follow by a plan.
func (k *Follower) followed(ctx context.Context) (bool, error) {
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
	for _, label := range tree.Pools() {
		of := tree.In(label)
		if of.FollowsCapacities() {
			return true, nil
		}
		for i := range of.Queues {
			if of.Queues[i].PreemptionBounded() && !of.Queues[i].Optout {
				return true, nil
			}
		}
	}
	return false, nil
}

// budgets returns a plan's budgets for this subcluster. now is the store's clock when the plan was read. at is the
// machine's clock at that moment or earlier.
func (k *Follower) budgets(plan *subcluster.Plan, now, at time.Time) []rm.PreemptionBudget {
	var out []rm.PreemptionBudget
	share := int64(0)
	for b, label := range plan.EachBudget {
		x := rm.PreemptionBudget{
			Queue: b.Queue, Label: label, Share: b.Share(k.ID), Most: b.Most, Begins: b.Begins,
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

// pools returns the labels that a plan covers or the previous one did.
func (k *Follower) pools(plan *subcluster.Plan) []string {
	labels := append(slices.Collect(maps.Keys(k.capacities)), "")
	for i := range plan.Labels {
		labels = append(labels, plan.Labels[i].Label)
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// planned returns the plan's capacities for this subcluster's queues on the nodes of a label. For now and at see
// budgets.
func (k *Follower) planned(
	plan *subcluster.Plan, label string, own []rm.ConfiguredQueue, now, at time.Time,
) rm.Capacities {
	out := rm.Capacities{Label: label}
	if !plan.Capacities {
		delete(k.capacities, label)
		return out
	}
	queues := make([]rebalancer.MemberQueue, len(own))
	for i, q := range own {
		queues[i] = rebalancer.MemberQueue{Queue: q.Queue, Share: q.Share, Maximum: q.Maximum}
	}
	to := rebalancer.MemberCapacities(plan, k.ID, queues)
	if k.capacities == nil {
		k.capacities = map[string][]rebalancer.QueueCapacity{}
	}
	k.capacities[label] = rebalancer.ShapeCapacities(k.capacities[label], to, capacityBand, capacityStep)
	for _, q := range k.capacities[label] {
		out.Queues = append(out.Queues, rm.Capacity{Queue: q.Queue, Share: q.Share})
	}
	out.Until, out.Version = at.Add(plan.Ends().Sub(now)), plan.Version
	k.Counts.Planned.Add(int64(len(out.Queues)))
	return out
}
