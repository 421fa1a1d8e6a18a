// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/creelrm/creel/subcluster/member"
)

// followEvery is the time between two checks of the plan: the daemon's.
const followEvery = 2 * time.Second

// planFollower runs the daemon's driver that applies the plan to a ResourceManager's queues, to their priority and to
// preemption, one round at a time.
type planFollower struct {
	flowAccess
	follower *member.Follower
	begun    bool
}

// follow starts it, with the ResourceManager.
func (c *cluster) follow() {
	if !c.w.cfg.Rebalancer || c.w.cfg.Tree == nil {
		return
	}
	k := &planFollower{flowAccess: flowAccess{c: c}}
	k.follower = &member.Follower{ID: c.id, Store: k, Turn: k.turn, Every: followEvery}
	k.follower.Clock.Read = func() time.Time { return c.w.now } // as a monotonic clock
	k.round()
}

func (k *planFollower) round() {
	w := k.c.w
	w.start(k.c.host, followEvery, func(f *flow) {
		if k.f = f; !k.begun {
			k.begun = k.follower.Begin(f) == nil
		}
		if k.begun {
			_ = k.follower.Round(f) // the next round repeats it
		}
		if k.follower.Counts.Planned.Load() > 0 {
			w.audit.followed++
		}
	}, func() {
		w.on(k.c.host, k.follower.Between(), k.round)
	})
}
