// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// LeaseName is the name of the lease whose holder publishes plans.
const LeaseName = "rebalancer"

// planRounds is the length of a plan's lease, in intervals.
const planRounds = 3

// LeaderStore is the part of the state store that a Leader needs.
type LeaderStore interface {
	Records(ctx context.Context) (subcluster.Records, error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error)
	Renew(ctx context.Context, l statestore.Lease, ttl time.Duration) (statestore.Lease, error)
	Release(ctx context.Context, l statestore.Lease) error
}

// Leader computes plans and publishes them while it has the lease. Any number of processes may run one; the others
// wait for the lease.
type Leader struct {
	Name    string // identifies a holder of the lease
	Store   LeaderStore
	Every   time.Duration // between plans
	Lease   time.Duration
	Terms   escrow.Terms
	Shaping rebalancer.PlanBounds
	Audit   Audit
	// Capacities: the capacities of queues in creel's ResourceManagers follow the plan, if the queue tree sets
	// guarantees or weights.
	Capacities bool
	DryRun     bool         // plans are published for display only
	Log        *slog.Logger // nil: silent
	// Record records an event; nil: events are not recorded.
	Record func(ctx context.Context, e statestore.Event)
	Now    func() time.Time // this process's clock; nil: time.Now

	Counts LeaderCounts

	last    atomic.Pointer[subcluster.Plan] // last published
	escrow  atomic.Pointer[[]QueueEscrow]
	lease   statestore.Lease
	renewed time.Time // by this process's clock, before the request to the store
	planned time.Time // by this process's clock, at the last attempt
	view    *subcluster.View
	planner rebalancer.Planner
	before  *subcluster.Plan
	known   *rebalancer.Tree // the federation's queue tree, last read
	noted   time.Time        // of the last event about a plan, by the store's clock
	lapsed  bool             // no plan was in force when this process became the leader, and no check has run since

	auditor auditor
	audited atomic.Pointer[rebalancer.AuditReport]
}

// LeaderCounts are for metrics.
type LeaderCounts struct {
	Leads, Plans, Failed, Shares atomic.Int64
	ErrorMean, ErrorWorst        atomic.Uint64 // bits of float64
}

// Published returns the plan that this leader published last, for metrics; nil while another process leads. Callers
// must not change it.
func (l *Leader) Published() *subcluster.Plan {
	if p := l.last.Load(); p != nil && l.Counts.Leads.Load() == 1 {
		return p
	}
	return nil
}

// QueueEscrow is the sum of the members' parts of a queue's maximum, and the sum of their needs.
type QueueEscrow struct {
	subcluster.QueueOn
	Held, Needs creel.Resource
}

// Escrow returns the escrow of each queue with a maximum at the last plan; nil while another process leads.
func (l *Leader) Escrow() []QueueEscrow {
	if q := l.escrow.Load(); q != nil && l.Counts.Leads.Load() == 1 {
		return *q
	}
	return nil
}

// lookEvery is the time between a leader's checks for changes; the store sends only what changed. Plans are at least
// planEvery apart. After a quiet time a change gets a plan at the next check.
const (
	lookEvery = 50 * time.Millisecond
	planEvery = 200 * time.Millisecond
)

// Between returns the time from the start of one round to the start of the next. A process that does not lead
// requests the lease as often as a leader may plan.
func (l *Leader) Between() time.Duration {
	if l.lease.Holder == "" {
		return min(l.Every, l.Lease/3, planEvery)
	}
	return min(l.Every, l.Lease/3, lookEvery)
}

// Run leads while it has the lease, until ctx ends; then it releases the lease.
func (l *Leader) Run(ctx context.Context) error {
	l.Begin()
	next := time.NewTimer(0)
	defer next.Stop()
	told := ""
	for {
		began, now := time.Now(), ""
		if err := l.Round(ctx); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != told && now != "" {
			l.Log.Warn("failed to plan the federation's queues", "error", now)
		}
		told = now
		next.Reset(max(0, l.Between()-time.Since(began)))
		select {
		case <-ctx.Done():
			l.resign(ctx)
			return nil
		case <-next.C:
		}
	}
}

// Begin prepares for rounds.
func (l *Leader) Begin() {
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	l.beginAudit()
}

// Round leads if no other process does. It publishes a plan at each interval, and sooner after a change, and checks
// the invariants.
func (l *Leader) Round(ctx context.Context) error {
	if err := l.lead(ctx); errors.Is(err, creel.ErrConflict) {
		return nil // another process leads
	} else if err != nil {
		return err
	}
	var err error
	if since := l.Now().Sub(l.planned); since >= min(l.Every, planEvery) {
		var made bool
		if made, err = l.plan(ctx, since >= l.Every); made || err != nil {
			l.planned = l.Now()
		}
	}
	if err == nil && l.Audit.Every > 0 && l.Now().Sub(l.auditor.looked) >= l.Audit.Every {
		l.auditor.looked = l.Now()
		if err = l.audit(ctx); err != nil {
			err = fmt.Errorf("failed to check the federation's invariants: %w", err)
		}
	}
	if err != nil && ctx.Err() == nil {
		l.Counts.Failed.Add(1)
	}
	return err
}

// lead takes or renews the lease.
func (l *Leader) lead(ctx context.Context) (err error) {
	limit, cancel := context.WithTimeout(ctx, l.Lease/3)
	defer cancel()
	if l.lease.Holder != "" {
		if l.Now().Sub(l.renewed) < min(l.Lease/6, time.Second) {
			return nil
		}
		asked := l.Now()
		lease, err := l.Store.Renew(limit, l.lease, l.Lease)
		if err == nil {
			l.lease, l.renewed = lease, asked
			return nil
		}
		if !errors.Is(err, creel.ErrStale) {
			return err // this process may still lead; writes are fenced
		}
		l.Log.Info("another rebalancer leads")
		l.lease, l.before = statestore.Lease{}, nil
		l.Counts.Leads.Store(0)
	}
	asked := l.Now()
	lease, err := l.Store.Acquire(limit, LeaseName, l.Name, l.Lease)
	if err != nil {
		return err
	}
	l.Log.Info("this rebalancer leads", "term", lease.Token)
	l.record(ctx, statestore.Event{
		Kind: statestore.EventLeader, Subject: "rebalancer", After: l.Name, Detail: fmt.Sprintf("term %d", lease.Token),
	})
	l.lease, l.renewed = lease, asked
	l.Counts.Leads.Store(1)
	return nil
}

func (l *Leader) resign(ctx context.Context) {
	if l.lease.Holder == "" {
		return
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := l.Store.Release(limit, l.lease); err != nil {
		l.Log.Warn("failed to release the rebalancer's lease; another leads when it expires", "error", err)
	}
	l.Counts.Leads.Store(0)
}

// plan makes a plan and publishes it under the lease. It does so if a plan is due, or if the queues' demand has
// changed by much since the last plan. It reports whether it made one.
func (l *Leader) plan(ctx context.Context, due bool) (made bool, err error) {
	ctx, cancel := context.WithTimeout(statestore.Under(ctx, l.lease), max(l.Every, time.Second))
	defer cancel()
	records, err := l.Store.Records(ctx)
	if err != nil {
		return false, err
	}
	l.view = subcluster.Build(l.view, records, records.Now)
	tree, err := l.tree(ctx)
	if err != nil {
		return false, err
	}
	l.known = tree
	if l.before == nil { // this process has just become the leader
		if l.before, err = l.inherited(ctx); err != nil {
			return false, err
		}
		l.lapsed = l.before == nil || !records.Now.Before(l.before.Ends())
	}
	pools := rebalancer.ReadPools(l.view, tree, l.before, l.Shaping.SlowStart)
	if len(pools[0].Members) == 0 || !due && !rebalancer.PoolsChanged(pools, l.before) {
		return false, nil // no member to plan for, or nothing to publish
	}
	control, err := l.Store.Documents(ctx, rebalancer.ControlClass)
	if err != nil {
		return false, err
	}
	if _, paused := control.Find(rebalancer.PauseName); paused {
		return true, nil
	}
	out := l.planner.PlanPools(pools, l.before, l.Shaping, l.Capacities, records.Now)
	lease := planRounds * l.Every
	if l.DryRun {
		lease = 0
	}
	out.Under(l.lease.Token, lease)
	data, err := json.Marshal(out)
	if err != nil {
		return false, err
	}
	parts, err := out.Cut()
	if err != nil {
		return false, err
	}
	set, err := l.Store.Documents(ctx, rebalancer.PlanClass)
	if err != nil {
		return false, err
	}
	is, _ := set.Find(rebalancer.PlanName)
	written, err := l.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: rebalancer.PlanClass, Name: rebalancer.PlanName, Expect: is.Version, Data: data, Author: l.Name, Keep: 8,
		Parts: parts,
	})
	if err != nil {
		return false, err
	}
	out.Stamp(written.Version, written.Time)
	l.Counts.Plans.Add(1)
	l.Counts.ErrorMean.Store(math.Float64bits(out.Error.Mean))
	l.Counts.ErrorWorst.Store(math.Float64bits(out.Error.Worst))
	l.last.Store(out)
	if l.Audit.Every > 0 {
		l.auditor.reports.Planned(l.before, out)
	}
	err = l.log(ctx, &control, out)
	l.before = out
	if err != nil || l.DryRun {
		return true, err
	}
	return true, l.shares(ctx, tree, out)
}

// inherited returns the plan of the previous leader, nil if there is no readable one.
func (l *Leader) inherited(ctx context.Context) (*subcluster.Plan, error) {
	set, err := l.Store.Documents(ctx, rebalancer.PlanClass)
	if err != nil {
		return nil, err
	}
	d, ok := set.Find(rebalancer.PlanName)
	if !ok {
		return nil, nil
	}
	plan, err := subcluster.ParsePlan(d.Data, d.Version, d.Time)
	if err != nil {
		l.Log.Warn("failed to read the previous plan; planning without it", "error", err)
		return nil, nil
	}
	return plan, nil
}

// log adds the changes by this plan to the record of decisions.
func (l *Leader) log(ctx context.Context, control *statestore.DocumentSet, plan *subcluster.Plan) error {
	var log rebalancer.Decisions
	d, known := control.Find(rebalancer.DecisionsName)
	if known {
		if err := json.Unmarshal(d.Data, &log); err != nil {
			l.Log.Warn("failed to read the record of decisions; starting a new one", "error", err)
		}
	}
	if !log.Add(l.before, plan, control.Now) {
		return nil
	}
	l.recordPlan(ctx, &log, control.Now)
	data, err := json.Marshal(log)
	if err != nil {
		return err
	}
	_, err = l.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: rebalancer.ControlClass, Name: rebalancer.DecisionsName, Expect: d.Version, Data: data, Author: l.Name,
		Quiet: true,
	})
	return err
}

func (l *Leader) record(ctx context.Context, e statestore.Event) {
	if l.Record != nil && !l.DryRun {
		l.Record(ctx, e)
	}
}

// notePlans is the least time between two events about plans. The record of decisions has all changes.
const notePlans = time.Minute

// recordPlan records the queues whose entitlement the plan changed.
func (l *Leader) recordPlan(ctx context.Context, log *rebalancer.Decisions, now time.Time) {
	if now.Sub(l.noted) < notePlans {
		return
	}
	l.noted = now
	var before, after []string
	for _, d := range log.Decisions {
		if d.At.Equal(now) && d.Was != d.Is {
			before = append(before, fmt.Sprintf("%s %.1f%%", d.Queue, 100*d.Was))
			after = append(after, fmt.Sprintf("%s %.1f%%", d.Queue, 100*d.Is))
		}
	}
	if len(after) > 0 {
		l.record(ctx, statestore.Event{
			Kind: statestore.EventPlan, Subject: string(creel.RootQueue), Before: strings.Join(before, ", "),
			After: strings.Join(after, ", "), Detail: "entitlements, as parts of the federation",
		})
	}
}

func (l *Leader) tree(ctx context.Context) (*rebalancer.Tree, error) {
	set, err := l.Store.Documents(ctx, rebalancer.TreeClass)
	if err != nil {
		return nil, err
	}
	d, ok := set.Find(rebalancer.TreeName)
	if !ok {
		return &rebalancer.Tree{}, nil
	}
	tree, err := rebalancer.ParseTree(d.Data, d.Version)
	if err != nil {
		return nil, err
	}
	// Percentages follow the federation's size, by more than a hundredth at a time.
	if l.DryRun || !tree.ResolveIn(l.view, 0.01) {
		return tree, nil
	}
	data, err := tree.Encode()
	if err != nil {
		return nil, err
	}
	made, err := l.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: d.Version, Data: data,
		Author: d.Author, Comment: d.Comment, Text: d.Text, Revises: d.Authored(),
	})
	tree.Version = made.Version
	return tree, err
}

// shares writes the shares by which members yield to each other into the escrow records. It does not change caps:
// members request and release them. If a member wrote a record meanwhile, the next plan updates it.
func (l *Leader) shares(ctx context.Context, tree *rebalancer.Tree, plan *subcluster.Plan) error {
	set, err := l.Store.Documents(ctx, rebalancer.EscrowClass)
	if err != nil {
		return err
	}
	var use []QueueEscrow
	defer func() { l.escrow.Store(&use) }()
	for _, d := range set.Documents {
		record := &escrow.Record{}
		if err := json.Unmarshal(d.Data, record); err != nil {
			return err
		}
		of := plan.In(record.Label)
		q, planned := tree.In(record.Label).Find(record.Queue), of.Queue(record.Queue)
		if q == nil || planned == nil || !q.Bounded() {
			continue
		}
		sum := QueueEscrow{QueueOn: subcluster.QueueOn{Queue: record.Queue, Label: record.Label}}
		for i := range record.Holders {
			sum.Held, sum.Needs = sum.Held.Add(record.Holders[i].Cap), sum.Needs.Add(record.Holders[i].Needs)
		}
		use = append(use, sum)
		if record.Source != set.Source {
			continue // the members' requests must settle the record first
		}
		if !record.Plan(rebalancer.EscrowShares(of, planned, q.Maximum)) {
			continue
		}
		data, err := json.Marshal(record)
		if err != nil {
			return err
		}
		_, err = l.Store.PutDocument(ctx, statestore.DocumentWrite{
			Class: rebalancer.EscrowClass, Name: d.Name, Expect: d.Version, Data: data, Author: l.Name,
			Source: set.Source, Quiet: true,
		})
		if err != nil && !errors.Is(err, creel.ErrConflict) {
			return err
		}
		l.Counts.Shares.Add(1)
	}
	return nil
}
