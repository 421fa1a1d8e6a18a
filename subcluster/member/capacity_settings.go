// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/subcluster"
)

// CapacitySettings is the configuration of a ResourceManager that does not read plans: remote.HadoopConf.
type CapacitySettings interface {
	// Read returns the configuration of the ResourceManager's queues, nil if calls cannot change it.
	Read(ctx context.Context) (map[string]string, error)
	// Change sets properties all at once, or none of them.
	Change(ctx context.Context, to map[string]string) error
}

// Hadoop's ResourceManager rebuilds its queues at each change. So changes are at least settingEvery apart, and
// differences below settingBand of the subcluster cause no change.
const (
	settingEvery = 10 * time.Second
	settingBand  = 0.02
)

// capacityState is a Follower's state of one such ResourceManager.
type capacityState struct {
	plan   *subcluster.Plan
	until  time.Time // by this process's clock
	looked time.Time
	bound  bool // settings follow a plan
	told   string
	shares atomic.Pointer[map[subcluster.QueueOn]float64]
}

// Configured returns the queues' configured parts of the subcluster's nodes, for each label, while the plan's
// capacities are in force. It returns nil while the configured capacities are in force. Any goroutine may call it.
func (k *Follower) Configured() map[subcluster.QueueOn]float64 {
	if s := k.capacity.shares.Load(); s != nil {
		return *s
	}
	return nil
}

// conform changes settings so that the capacities of queues follow the plan. It restores the configured capacities
// when the plan's lease is over, also if an earlier agent process changed them.
func (k *Follower) conform(ctx context.Context) error {
	c, now := &k.capacity, k.Clock.Now()
	follows := c.plan != nil && c.plan.GivesCapacities() && now.Before(c.until)
	first := c.looked.IsZero()
	if !follows && !first && !c.bound || follows && !first && now.Sub(c.looked) < settingEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, steerTime)
	defer cancel()
	conf, err := k.Capacities.Read(ctx)
	if err != nil {
		return fmt.Errorf("the configuration of its queues cannot be read: %w", err)
	}
	c.looked = now
	c.noted(conf)
	set, ok := rebalancer.Restored(conf), true
	if follows && conf != nil {
		set, ok = rebalancer.FollowPlan(conf, c.plan, k.ID, settingBand)
	}
	switch {
	case conf == nil && follows:
		k.tellCapacities("capacities do not follow the plan here: the settings come from a file: set " +
			"yarn.scheduler.configuration.store.class there")
		return nil
	case !ok:
		k.tellCapacities("capacities do not follow the plan here: they are amounts, or in several units")
		set = rebalancer.Restored(conf)
	}
	if len(set) == 0 {
		return nil
	}
	if err := k.Capacities.Change(ctx, set); err != nil {
		return err
	}
	for name, value := range set {
		conf[name] = value
	}
	c.noted(conf)
	if ok && follows {
		k.tellCapacities("capacities of queues follow the plan")
	} else if ok {
		k.tellCapacities("configured capacities of queues restored")
	}
	return nil
}

// noted records the present configuration.
func (c *capacityState) noted(conf map[string]string) {
	if c.bound = conf[subcluster.SavedSettingsName] != ""; !c.bound {
		c.shares.Store(nil)
		return
	}
	shares := rebalancer.QueueConf(conf).ConfiguredShares()
	c.shares.Store(&shares)
}

func (k *Follower) tellCapacities(text string) {
	if k.capacity.told != text {
		k.capacity.told = text
		k.Log.Info(text, "subcluster", k.ID)
	}
}

// putBack restores the configured capacities when the agent ends.
func (k *Follower) putBack(ctx context.Context) {
	if k.Capacities == nil || !k.capacity.bound {
		return
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	k.capacity.plan = nil
	if err := k.conform(limit); err != nil {
		k.Log.Warn("failed to restore capacities; they follow the plan until an agent starts",
			"subcluster", k.ID, "error", err)
	}
}
