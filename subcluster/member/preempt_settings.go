// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// PreemptionSettings has the preemption settings of a ResourceManager without budgets: remote.HadoopPreemption.
type PreemptionSettings interface {
	Read(ctx context.Context) (remote.PreemptionNow, error)
	// Bind limits the amount that one round may take back; Restore sets the earlier value again.
	Bind(ctx context.Context, most creel.Resource) error
	Restore(ctx context.Context) error
}

// paceState is a Follower's state of one such ResourceManager.
type paceState struct {
	rebalancer.Pace
	looked  bool // the settings were read since the start
	bound   bool // set by this process
	unbound bool // calls do not change the settings
	spent   atomic.Pointer[[]subcluster.PreemptionSpent]
}

// Spent returns the amounts taken back in intervals of budgets, if Settings is set. Any goroutine may call it.
func (k *Follower) Spent() []subcluster.PreemptionSpent {
	if s := k.pace.spent.Load(); s != nil {
		return *s
	}
	return nil
}

// steerTime limits one read and one change. It is long, since a busy ResourceManager answers late, and after an
// abandoned call it would continue with its old limit.
const steerTime = 10 * time.Second

// steer reads the amount taken back, and sets the limit of one round. Without budgets it runs once, to undo settings
// of an earlier agent process.
func (k *Follower) steer(ctx context.Context) error {
	p := &k.pace
	if len(k.list) == 0 && p.looked && !p.bound {
		p.spent.Store(nil)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, steerTime)
	defer cancel()
	now, err := k.Settings.Read(ctx)
	if err != nil {
		return fmt.Errorf("the preempted amount cannot be read: %w", err)
	}
	p.looked, p.bound = true, now.Bound
	list := make([]rebalancer.PacedBudget, len(k.list))
	for i, b := range k.list {
		list[i] = rebalancer.PacedBudget{
			QueueOn: subcluster.QueueOn{Queue: b.Queue, Label: b.Label}, Share: b.Share, Begins: b.Begins, Ends: b.Ends,
			Until: b.Until,
		}
	}
	most, bound := p.Look(k.Clock.Now(), list, now.Queues, now.Taken)
	spent := p.Spent(list, !now.Change)
	p.spent.Store(&spent)
	switch {
	case !now.Change:
		if !p.unbound {
			p.unbound = true
			k.Log.Warn("preemption budgets do not limit this ResourceManager: its settings come from a file; amounts it takes "+
				"back count, and others take less: set yarn.scheduler.configuration.store.class there", "subcluster", k.ID)
		}
	case bound:
		if err := k.Settings.Bind(ctx, most); err != nil {
			free := p.Spent(list, true) // it may not be bound by the budget
			p.spent.Store(&free)
			return err
		}
		if !p.bound {
			k.Log.Info("preemption limited by a budget", "subcluster", k.ID, "round", most.String())
		}
		p.unbound, p.bound = false, true
	case p.bound:
		if err := k.Settings.Restore(ctx); err != nil {
			return err
		}
		p.bound = false
		k.Log.Info("preemption no longer limited by a budget", "subcluster", k.ID)
	}
	return nil
}

// release restores the ResourceManager's own settings when the agent ends.
func (k *Follower) release(ctx context.Context) {
	if !k.pace.bound {
		return
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := k.Settings.Read(limit)
	if err == nil {
		err = k.Settings.Restore(limit)
	}
	if err != nil {
		k.Log.Warn("failed to restore preemption settings; a budget applies until an agent starts",
			"subcluster", k.ID, "error", err)
	}
}
