// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// heartbeats keep the membership alive, as the agent beside a ResourceManager does.
func (c *cluster) heartbeats() {
	w := c.w
	if c.gone && !c.registered {
		return // it has left the federation
	}
	w.on(c.host, w.cfg.MemberHeartbeat, c.heartbeats)
	c.tellLoad()
}

// looks has it report what has changed by much before the next heartbeat is due, as the
// agent does.
func (c *cluster) looks() {
	c.w.on(c.host, c.w.cfg.MemberHeartbeat/subcluster.LooksBetween, c.looks)
	early := c.w.now.Sub(c.reported) >= c.w.cfg.MemberHeartbeat/subcluster.ReportsBetween
	if c.registered && !c.gone && !c.reporting && early && c.loads.Changed(c.m) {
		c.tellLoad()
	}
}

// tellLoad tells the store how it is.
func (c *cluster) tellLoad() {
	w := c.w
	report := c.loads.Next(c.m, c.now())
	if report.Nodes = c.places.Digest(); c.old {
		report.BeginsAgain, report.Labels = false, subcluster.Labels{}
	}
	load, err := report.JSON()
	if err != nil {
		w.audit.breach("%s cannot tell its load: %v", c.id, err)
		return
	}
	member := subcluster.Member{ID: c.id, Epoch: c.epoch, Lease: w.cfg.Lease, Capability: string(load), Version: "sim",
		Addresses: subcluster.Addresses{Client: string(c.id) + ":8032", Scheduler: string(c.id) + ":8030"}}
	if c.reports == nil {
		c.reports = &subcluster.Reporter{ID: c.id, Epoch: c.epoch}
		if c.signs {
			c.reports.Signer = w.signer
		}
	}
	if c.reports.Signer != nil {
		member = w.signer.Member(member)
	}
	first := !c.registered
	c.reporting, c.reported = true, w.now
	var said subcluster.Heartbeat
	if !first {
		if said = c.reports.Next(load); c.old {
			said.Parts, said.AllParts = nil, false // it does not cut its loads
		}
	}
	call(w, c.host, w.storeAt, max(w.cfg.MemberHeartbeat, time.Second), func(reply func(bool, error)) {
		reply(atStore(w, true, func() (bool, error) {
			if !first {
				err := w.store.Heartbeat(w.storeClock(), said)
				w.audit.fenced(c, err)
				return true, err
			}
			err := w.store.Register(w.storeClock(), member)
			w.audit.fenced(c, err)
			if err == nil {
				w.tell(statestore.Change{Kind: statestore.ChangeMembers})
			}
			return true, err
		}))
	}, func(_ bool, err error) {
		c.reporting = false
		if c.reports != nil && (first || err != nil) {
			c.reports.Lost()
		}
		switch {
		case err == nil && first:
			c.registered = true
		case errors.Is(err, creel.ErrNotRegistered):
			c.registered = false
		case errors.Is(err, creel.ErrStale) && c.gone:
			c.registered = false
		case errors.Is(err, creel.ErrStale):
			w.audit.breach("%s was told that a later epoch of it exists: %v", c.id, err)
		}
	})
}
