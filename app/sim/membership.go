// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// claims reports whether members claim their epochs by messages.
func (w *World) claims() bool { return w.cfg.Faults != nil && w.cfg.Faults.Claims }

// joins starts the membership of a starting process. If the seed draws it, the process claims its epoch by messages,
// like the agent beside a ResourceManager; otherwise it has one at once.
func (c *cluster) joins() error {
	w := c.w
	c.joining = subcluster.Enrollment{
		Member: subcluster.Member{ID: c.id, Lease: w.cfg.Lease, Version: "sim", Addresses: subcluster.Addresses{
			Client: string(c.id) + ":8032", Scheduler: string(c.id) + ":8030"}},
		Previous: c.kept.member(), TakeOver: c.takesOver, Keeps: w.claims(),
	}
	if c.signs {
		c.joining.Signer = w.signer
	}
	if w.claims() {
		return nil
	}
	epoch, err := w.store.NextEpoch(w.storeClock(), c.id, 0, true)
	c.joining.Done(subcluster.Step{Take: true}, epoch, err)
	return err
}

// heartbeats keep the membership alive, like the agent beside a ResourceManager.
func (c *cluster) heartbeats() {
	w := c.w
	if c.gone && c.joining.Epoch() != 0 && !c.joining.Registered() {
		return // it has left the federation
	}
	w.on(c.host, w.cfg.MemberHeartbeat, c.heartbeats)
	if w.claims() && c.reporting {
		return // the agent sends them one after the other
	}
	c.tellLoad()
}

// looks makes it report large changes before the next heartbeat is due, like the agent.
func (c *cluster) looks() {
	c.w.on(c.host, c.w.cfg.MemberHeartbeat/subcluster.LooksBetween, c.looks)
	early := c.w.now.Sub(c.reported) >= c.w.cfg.MemberHeartbeat/subcluster.ReportsBetween
	if c.joining.Registered() && !c.gone && !c.reporting && early && c.loads.Changed(c.m) {
		c.tellLoad()
	}
}

// tellLoad sends its load to the store.
func (c *cluster) tellLoad() {
	report := c.loads.Next(c.m, c.now())
	if report.Nodes = c.places.Digest(); c.hadoop {
		report.BeginsAgain, report.Labels = false, subcluster.Labels{}
	}
	load, err := report.JSON()
	if err != nil {
		c.w.audit.breach("%s cannot tell its load: %v", c.id, err)
		return
	}
	c.reporting, c.reported = true, c.w.now
	c.carryOut(load)
}

// carryOut makes the next step of the enrollment, and the following ones until the load is sent. If epochs are not
// claimed, a registration is the last step of its turn.
func (c *cluster) carryOut(load []byte) {
	w, s := c.w, c.joining.Next(load)
	done := func(epoch int64, err error) {
		c.joining.Done(s, epoch, err)
		switch {
		case errors.Is(err, creel.ErrNotRegistered), errors.Is(err, creel.ErrStale) && c.gone:
			c.joining.Forgotten()
		case errors.Is(err, creel.ErrStale):
			w.audit.breach("%s received that a later epoch of it exists: %v", c.id, err)
		}
		if c.reporting = err == nil && s.Heartbeat == nil && w.claims(); c.reporting {
			c.carryOut(load)
		}
	}
	if s.Keep != 0 {
		c.keepEpoch(s.Keep, func(err error) { done(0, err) })
		return
	}
	if s.Heartbeat != nil && c.hadoop {
		s.Heartbeat.Parts, s.Heartbeat.AllParts = nil, false // it does not cut its loads
	}
	process, from := c.process, c.joining // of the sender, at any later time
	call(w, c.host, w.storeAt, max(w.cfg.MemberHeartbeat, time.Second), func(reply func(int64, error)) {
		reply(atStore(w, true, func() (epoch int64, err error) {
			switch {
			case s.Take:
				epoch, err = w.store.NextEpoch(w.storeClock(), c.id, from.Previous, from.TakeOver)
				if err == nil {
					w.audit.gave(c, from.Previous, epoch)
				}
			case s.Register != nil:
				w.audit.uses(c, process, s.Register.Epoch)
				if err = w.store.Register(w.storeClock(), *s.Register); err == nil {
					w.tell(statestore.Change{Kind: statestore.ChangeMembers})
				}
				w.audit.fenced(c, process, err)
			default:
				err = w.store.Heartbeat(w.storeClock(), *s.Heartbeat)
				w.audit.fenced(c, process, err)
			}
			return epoch, err
		}))
	}, done)
}

// keyMember is the journal's key of the epoch.
const keyMember = "member"

// keepTime is a process's wait until its epoch is on disk; after that it takes another epoch.
const keepTime = time.Second

// keepEpoch stores the epoch in the journal, so that the next process with this journal can prove which process it
// succeeds.
func (c *cluster) keepEpoch(epoch int64, done func(error)) {
	over := false
	end := func(err error) {
		if !over {
			over = true
			done(err)
		}
	}
	c.w.on(c.host, keepTime, func() { end(errors.New("the disk does not answer")) })
	c.post(func(*rm.Machine, time.Time) func() {
		c.tx.Put(keyMember, strconv.AppendInt(nil, epoch, 10))
		c.owner.Hold(func() { end(nil) })
		return nil
	})
}

// member returns the previous process's epoch as a member, 0 if there was none.
func (j *journal) member() int64 {
	epoch, _ := strconv.ParseInt(string(j.entries[keyMember]), 10, 64) // 0 for none
	return epoch
}

// gave checks that the store never issues an epoch of a member twice, and that each is above all previous ones.
func (a *auditor) gave(c *cluster, previous, epoch int64) {
	a.check(epoch > a.epochs[c.id] || a.forgetful(), "%s was given epoch %d, and there was %d", c.name, epoch,
		a.epochs[c.id])
	a.check(epoch > previous, "%s was given epoch %d, and the process before it had %d", c.name, epoch, previous)
	a.epochs[c.id] = max(a.epochs[c.id], epoch)
}

// uses checks that an epoch is used only once the journal has it, and only by one process.
func (a *auditor) uses(c *cluster, process, epoch int64) {
	if !a.w.claims() {
		return
	}
	a.check(c.gone || c.kept.member() >= epoch, "%s registers with epoch %d, and its journal has %d", c.name, epoch,
		c.kept.member())
	used := memberEpoch{c.id, epoch}
	a.check(a.used[used] == 0 || a.used[used] == process || a.forgetful(),
		"epoch %d of %s is used by two processes", epoch, c.id)
	a.used[used] = process
}

// memberEpoch is an epoch of a member.
type memberEpoch struct {
	id    creel.SubclusterID
	epoch int64
}

// members checks at the end that each running ResourceManager is a member with its epoch.
func (a *auditor) members() string {
	if !a.w.claims() {
		return ""
	}
	var problems []string
	for _, r := range a.w.store.Records(a.w.storeClock()).Members {
		if c := a.w.cluster(r.ID); c != nil && c.up && !a.w.asleep(c.host) && r.Epoch != c.joining.Epoch() {
			problems = append(problems,
				fmt.Sprintf("%s has epoch %d, and the store has %d", c.name, c.joining.Epoch(), r.Epoch))
		}
	}
	return list(problems)
}

// publishesKeys keeps the keys of its nodes' tokens in the store.
func (c *cluster) publishesKeys() {
	w := c.w
	if !w.opportune.Places() {
		return
	}
	w.on(c.host, w.cfg.MemberHeartbeat, c.publishesKeys)
	own := opportune.NodeKeys{
		NM: c.keys.nm, Container: c.keys.container, RM: c.start.UnixMilli(), Epoch: c.conf.Epoch + c.kept.epochs - 1,
	}
	if c.hadoop || w.opportune.Published[c.id] == own {
		return
	}
	call(w, c.host, w.storeAt, w.cfg.MemberHeartbeat, func(reply func(bool, error)) {
		reply(atStore(w, true, func() (bool, error) {
			w.opportune.Published[c.id] = own
			return true, nil
		}))
	}, func(bool, error) {}) // the next look repeats it
}
