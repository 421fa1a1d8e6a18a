// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// heartbeats keep the membership alive, as the agent beside a ResourceManager does.
func (c *cluster) heartbeats() {
	w := c.w
	w.on(c.host, w.cfg.MemberHeartbeat, c.heartbeats)
	report := c.loads.Next(c.m, c.now())
	load, err := report.JSON()
	if err != nil {
		w.audit.breach("%s cannot tell its load: %v", c.id, err)
		return
	}
	start := c.start.UnixMilli()
	first := !c.registered
	call(w, c.host, w.storeAt, max(w.cfg.MemberHeartbeat, time.Second), func(reply func(bool, error)) {
		reply(atStore(w, true, func() (bool, error) {
			if !first {
				return true, w.store.Heartbeat(w.storeClock(), subcluster.Heartbeat{ID: c.id, Epoch: start, Load: load})
			}
			return true, w.store.Register(
				w.now,
				subcluster.Member{ID: c.id, Epoch: start, Lease: w.cfg.Lease, Capability: string(load), Version: "sim",
					Addresses: subcluster.Addresses{Client: string(c.id) + ":8032", Scheduler: string(c.id) + ":8030"}},
			)
		}))
	}, func(_ bool, err error) {
		switch {
		case err == nil && first:
			c.registered = true
		case errors.Is(err, creel.ErrNotRegistered):
			c.registered = false
		case errors.Is(err, creel.ErrStale):
			w.audit.breach("%s was told that a later epoch of it exists: %v", c.id, err)
		}
	})
}
