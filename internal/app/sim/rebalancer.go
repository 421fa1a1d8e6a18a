// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
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
			p.publish(p.view)
		})
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
			p.before, out.At = out, written.Time
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
