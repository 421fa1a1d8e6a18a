// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// planEvery is the time between two plans without changes, leadFor the life of a lease without renewal: the daemon's
// defaults. auditWithin is the longest permitted temporary violation, auditEvery the time between two audits of the
// invariants.
const (
	planEvery   = 10 * time.Second
	leadFor     = 15 * time.Second
	auditEvery  = planEvery
	auditWithin = 5 * time.Minute
)

// planner is the only rebalancer: the daemon's driver, one round at a time. With Config.LoadWeights it is Hadoop's
// global policy generator instead.
type planner struct {
	leaderStore
	w      *World
	at     *host
	leader *server.Leader   // of the present process
	before invariants.Tally // of earlier processes
	view   *subcluster.View // with Config.LoadWeights
}

func newPlanner(w *World) *planner {
	p := &planner{w: w, at: w.host("the rebalancer", outside)}
	w.on(p.at, planEvery, p.start)
	return p
}

// start starts a process.
func (p *planner) start() {
	w := p.w
	if w.cfg.LoadWeights {
		p.weigh()
		return
	}
	p.before = p.reported()
	p.leader = &server.Leader{
		Name: "sim", Store: p, Every: planEvery, Lease: leadFor, Terms: escrow.DefaultTerms(),
		Shaping: rebalancer.PlanBounds{SlowStart: max(0, w.cfg.SlowStart)}, Capacities: true,
		Audit: server.Audit{
			Every: auditEvery, Within: auditWithin,
			Tell: func(i invariants.Invariant, of string, breach error) {
				w.say("reported: %s of %s: %v", i, of, breach)
			},
		},
		Now: func() time.Time { return w.now },
	}
	p.leader.Begin()
	p.round()
}

func (p *planner) round() {
	w, began := p.w, p.w.now
	w.start(p.at, planEvery, func(f *flow) {
		p.f = f
		if err := p.leader.Round(f); err != nil {
			w.say("no plan: %v", err)
		}
	}, func() {
		w.on(p.at, max(0, p.leader.Between()-w.now.Sub(began)), p.round)
	})
}

// reported is the result that all epochs found from members' reports. A violation that lasts too long while a member
// is away or the store is new is counted, and does not fail the run. auditor.holds checks those after every event.
func (p *planner) reported() invariants.Tally {
	sum := invariants.Tally{Checked: map[invariants.Invariant]int64{}, Broken: map[invariants.Invariant]int64{}}
	for i, n := range p.before.Checked {
		sum.Checked[i], sum.Broken[i] = n, p.before.Broken[i]
	}
	if p.leader == nil {
		return sum
	}
	if found := p.leader.Audited(); found != nil {
		for _, i := range found.Invariants {
			sum.Checked[invariants.Invariant(i.Name)] += i.Checked
			sum.Broken[invariants.Invariant(i.Name)] += i.Broken
		}
	}
	return sum
}

// leaderStore is the store for a leader's flow.
type leaderStore struct{ escrowStore }

func (d leaderStore) Acquire(_ context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error) {
	return d.lease(func(w *World) (statestore.Lease, error) {
		return w.store.Acquire(w.storeClock(), name, holder, ttl)
	})
}

func (d leaderStore) Renew(_ context.Context, l statestore.Lease, ttl time.Duration) (statestore.Lease, error) {
	return d.lease(func(w *World) (statestore.Lease, error) { return w.store.Renew(w.storeClock(), l, ttl) })
}

func (d leaderStore) Release(_ context.Context, l statestore.Lease) error {
	_, err := d.lease(func(w *World) (statestore.Lease, error) { return l, w.store.Release(w.storeClock(), l) })
	return err
}

func (d leaderStore) lease(do func(w *World) (statestore.Lease, error)) (statestore.Lease, error) {
	w := d.f.w
	return ask(d.f, w.storeAt, readTime, func(reply func(statestore.Lease, error)) {
		reply(atStore(w, true, func() (statestore.Lease, error) { return do(w) }))
	})
}

// plan reads the plan from the store, in part only for these queues.
func (w *World) plan(inPart bool, queues []string) (statestore.Document, error) {
	if inPart {
		return w.store.DocumentOf(subcluster.PlanClass, subcluster.PlanName, queues)
	}
	set, err := w.store.Documents(w.storeClock(), subcluster.PlanClass)
	d, _ := set.Find(subcluster.PlanName)
	return d, err
}
