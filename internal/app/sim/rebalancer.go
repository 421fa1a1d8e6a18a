// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// planEvery is the time between two plans, and planLease how long one is followed:
// the daemon's defaults.
const planEvery, planLease = 10 * time.Second, 30 * time.Second

// planner publishes plans: the decisions of a rebalancer that leads alone. Its lease is not
// simulated, nor that it writes its shares into records of escrow: parts of maxima are even.
type planner struct {
	w       *World
	at      *host
	planner rebalancer.Planner
	view    *subcluster.View
	before  *subcluster.Plan
	plans   int
	reports invariants.Reports
}

func newPlanner(w *World) *planner {
	shaping := rebalancer.Shaping{}
	p := &planner{w: w, at: w.host("the rebalancer", outside), reports: invariants.Reports{
		Within: 5 * time.Minute, Step: shaping.MostStep(), Band: shaping.Band(), Linger: escrow.DefaultTerms().Linger,
	}}
	p.reports.Tally.Tell = func(i invariants.Invariant, of string, breach error) {
		w.say("reported: %s of %s: %v", i, of, breach)
	}
	return p
}

func (p *planner) start() {
	p.w.on(p.at, planEvery, p.start)
	w := p.w
	call(w, p.at, w.storeAt, readTime,
		func(reply func(subcluster.Records, error)) {
			reply(atStore(w, false, func() (subcluster.Records, error) { return w.store.Records(w.storeClock()), nil }))
		},
		func(r subcluster.Records, err error) {
			if err != nil {
				return
			}
			p.view = subcluster.Build(p.view, r, r.Now)
			if w.cfg.LoadWeights {
				p.followLoad(p.view)
				return
			}
			p.look(r.Now)
			p.publish(p.view)
		})
}

// look holds the invariants against what members report, as a leader that audits does. What
// lasts for longer than it may while a member is away or the store is new is counted, and is
// no breach of the run: those are held by auditor.holds, at every event.
func (p *planner) look(now time.Time) {
	l := &invariants.Look{View: p.view, Tree: p.w.cfg.Tree, Plan: p.before, At: now}
	if l.Tree == nil {
		l.Tree = &rebalancer.Tree{}
	}
	l.InForce = p.before != nil && now.Before(p.before.Ends())
	read := func(class string, into func(data []byte) error) {
		set, err := p.w.store.Documents(p.w.storeClock(), class)
		for i := range set.Documents {
			err = errors.Join(err, into(set.Documents[i].Data))
		}
		if err != nil {
			p.w.audit.breach("%s: %v", class, err)
		}
	}
	read(rebalancer.EscrowClass, func(data []byte) error {
		l.Caps = append(l.Caps, &escrow.Record{})
		return json.Unmarshal(data, l.Caps[len(l.Caps)-1])
	})
	read(rebalancer.UsersClass, func(data []byte) error {
		l.Users = append(l.Users, &escrow.UsersRecord{})
		return json.Unmarshal(data, l.Users[len(l.Users)-1])
	})
	p.reports.Look(l)
}

func (p *planner) publish(view *subcluster.View) {
	w := p.w
	tree := w.cfg.Tree
	if tree == nil {
		tree = &rebalancer.Tree{}
	}
	r := rebalancer.Read(view, tree)
	if len(r.Members) == 0 {
		return
	}
	r.SlowStart(view, p.before, max(0, w.cfg.SlowStart))
	out := rebalancer.Publish(r, p.planner.Plan(&r.Input, nil), p.before, rebalancer.Shaping{})
	out.LeaseMS = planLease.Milliseconds()
	data, err := json.Marshal(out)
	if err != nil {
		w.audit.breach("a plan cannot be written: %v", err)
		return
	}
	call(w, p.at, w.storeAt, readTime, func(reply func(statestore.Document, error)) {
		reply(atStore(w, true, func() (statestore.Document, error) {
			set, err := w.store.Documents(w.storeClock(), subcluster.PlanClass)
			if err != nil {
				return statestore.Document{}, err
			}
			is, _ := set.Find(subcluster.PlanName)
			return w.store.PutDocument(w.storeClock(), statestore.DocumentWrite{
				Class: subcluster.PlanClass, Name: subcluster.PlanName, Expect: is.Version, Data: data,
			})
		}))
	}, func(written statestore.Document, err error) {
		if err == nil {
			out.At = written.Time
			p.reports.Planned(p.before, out)
			p.before = out
			p.plans++
		}
	})
}

// plan reads the plan beside the records, parsed once for each version, as the
// processes of a daemon each do.
func (w *World) plan() *subcluster.Plan {
	set, err := w.store.Documents(w.storeClock(), subcluster.PlanClass)
	if err != nil {
		return nil
	}
	d, ok := set.Find(subcluster.PlanName)
	if !ok {
		return nil
	}
	if w.parsed == nil || w.parsed.Version != d.Version {
		if w.parsed, err = subcluster.ParsePlan(d.Data, d.Version, d.Time); err != nil {
			w.audit.breach("%v", err)
		}
	}
	return w.parsed
}
