// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	rebalance "github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
)

// RebalancerConfig is the configuration of a rebalancer, apart from its store.
type RebalancerConfig struct {
	Name      string // unique name of this rebalancer
	Every     time.Duration
	Lease     time.Duration
	MaxChange float64       // largest change of a weight in one plan
	SlowStart time.Duration // time for a member's counted size to grow from zero to all
	// Capacities: queues' capacities in members follow the plan.
	Capacities bool
	DryRun     bool
	Audit      rebalance.Audit
	Escrow     escrow.Terms
	Signer     *subcluster.Signer // members not signed with its secret are ignored; nil accepts all
	Secrets    []string           // files that others should not read
	Web        string             // address to listen on
	WebServer  webserver.Config
	Log        *slog.Logger
}

// RebalancerSettings reads a rebalancer's configuration.
func RebalancerSettings(s *settings.Settings) (RebalancerConfig, error) {
	if err := mayStart(s, settings.Rebalancer); err != nil {
		return RebalancerConfig{}, err
	}
	host, err := hostOf("")
	if err != nil {
		return RebalancerConfig{}, err
	}
	signer, err := signerOf(s.String(clusterSecretFile))
	if err != nil {
		return RebalancerConfig{}, err
	}
	web, err := webSettings(s, settings.Rebalancer)
	if err != nil {
		return RebalancerConfig{}, err
	}
	return RebalancerConfig{
		Signer:     signer,
		Secrets:    secretFiles(s),
		Name:       "rebalancer-" + host,
		Every:      s.Duration("creel.rebalancer.interval"),
		Lease:      s.Duration("creel.rebalancer.lease"),
		MaxChange:  s.Float("creel.rebalancer.max-change") / 100,
		SlowStart:  s.Duration("creel.rebalancer.slow-start"),
		Capacities: s.Bool("creel.rebalancer.capacities"),
		DryRun:     s.Bool("creel.rebalancer.dry-run"),
		Audit: rebalance.Audit{
			Every:  s.Duration("creel.rebalancer.audit.interval"),
			Within: s.Duration("creel.rebalancer.audit.within"),
		},
		Escrow:    EscrowSettings(s).Terms,
		Web:       s.Address("creel.health.address"),
		WebServer: web,
		Log:       slog.Default(),
	}, nil
}

// Rebalancer is an assembled rebalancer.
type Rebalancer struct {
	daemon.Service
	Leader *rebalance.Leader
}

// verifiedStore is a store whose members are restricted to those of a watch.Source.
type verifiedStore struct {
	statestore.Store
	members watch.Source
}

func (b verifiedStore) Records(ctx context.Context) (subcluster.Records, error) {
	return b.members.Records(ctx)
}

// NewRebalancer assembles a rebalancer over a store.
func NewRebalancer(c RebalancerConfig, store statestore.Store) (*Rebalancer, error) {
	r := &Rebalancer{Service: daemon.Service{Health: health.New()}}
	watchSecrets(&r.Service, c.Secrets, nil, c.Log)
	known := verifiedStore{store, members(&r.Service, store, c.Signer, c.Log)}
	recorder := events.NewRecorder(store, c.Log)
	recorder.Named("rebalancer " + c.Name)
	addEvents(&r.Service, recorder)
	r.Leader = &rebalance.Leader{
		Record: recorder.Record,
		Name:   c.Name, Store: known, Every: c.Every, Lease: c.Lease, DryRun: c.DryRun, Log: c.Log,
		Shaping: rebalancer.PlanBounds{Step: c.MaxChange, SlowStart: c.SlowStart},
		Audit:   c.Audit, Terms: c.Escrow,
		Capacities: c.Capacities,
	}
	n := &r.Leader.Counts
	r.Health.Counter("creel_rebalancer_plans_total", "Plans published.", n.Plans.Load)
	r.Health.Counter("creel_rebalancer_failures_total", "Plans that failed.", n.Failed.Load)
	r.Health.Counter("creel_rebalancer_escrow_shares_total", "Escrow records given new shares.", n.Shares.Load)
	r.Health.Gauge("creel_rebalancer_leads", "1 while this rebalancer leads.",
		func() float64 { return float64(n.Leads.Load()) })
	part := func(v *atomic.Uint64) func() float64 { return func() float64 { return math.Float64frombits(v.Load()) } }
	r.Health.Gauge("creel_rebalancer_entitlement_error_mean_ratio",
		"Average shortfall of queues below their entitlement in the federation.", part(&n.ErrorMean))
	r.Health.Gauge(
		"creel_rebalancer_entitlement_error_worst_ratio",
		"Largest shortfall of a queue below its entitlement in the federation.",
		part(&n.ErrorWorst),
	)
	r.Health.Register(queueShares{r.Leader})
	r.Health.Register(invariantFigures{r.Leader})
	web, err := addHealthWeb(&r.Service, "web", c.Web, c.WebServer)
	if err != nil {
		return nil, err
	}
	r.Entries = []daemon.Entry{daemon.NewEntry("rebalancer", map[string]string{"web": web})}
	r.Add("rebalancer", r.Leader.Run)
	return r, keepRecord(&r.Service, store, c.Name, c.WebServer.TLS != nil, c.Log)
}

// queueShares are the metrics of each queue in the last published plan. On labelled nodes, subcluster.QueueOn names
// the queue, and shares are of these nodes.
type queueShares struct{ leader *rebalance.Leader }

var (
	queueEntitled = prometheus.NewDesc("creel_rebalancer_queue_entitled_ratio",
		"The queue's entitlement, as a part of the federation.", []string{"queue"}, nil)
	queueUsed = prometheus.NewDesc("creel_rebalancer_queue_used_ratio",
		"The queue's use, as a part of the federation.", []string{"queue"}, nil)
	queueWanted = prometheus.NewDesc("creel_rebalancer_queue_wanted_ratio",
		"The queue's use and pending demand, as a part of the federation.", []string{"queue"}, nil)
	queueHeld = prometheus.NewDesc("creel_rebalancer_escrow_held_bytes",
		"Memory that members hold under the queue's maximum.", []string{"queue"}, nil)
	memberCounts = prometheus.NewDesc("creel_rebalancer_member_counts_ratio",
		"The part of its size that homes and splits count with; below 1 it starts slowly, or is away.",
		[]string{"subcluster"}, nil)
	queueAsked = prometheus.NewDesc("creel_rebalancer_escrow_asked_bytes",
		"Memory that members need under the queue's maximum.", []string{"queue"}, nil)
)

func (q queueShares) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueEntitled, queueUsed, queueWanted, queueHeld, queueAsked, memberCounts} {
		out <- d
	}
}

func (q queueShares) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, of string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, of)
	}
	if plan := q.leader.Published(); plan != nil {
		for p, label := range plan.EachQueue {
			name := subcluster.QueueOn{Queue: p.Queue, Label: label}.Name()
			gauge(queueEntitled, p.Entitled, name)
			gauge(queueUsed, p.Uses, name)
			gauge(queueWanted, p.Wants, name)
		}
		for _, s := range plan.Starts {
			gauge(memberCounts, s.Counts, string(s.Member))
		}
	}
	for _, e := range q.leader.Escrow() {
		gauge(queueHeld, float64(e.Held.MemoryMB)*(1<<20), e.Name())
		gauge(queueAsked, float64(e.Needs.MemoryMB)*(1<<20), e.Name())
	}
}

// invariantFigures are the metrics of invariants checked against members' reports.
type invariantFigures struct{ leader *rebalance.Leader }

var (
	invariantChecked = prometheus.NewDesc("creel_invariant_checked_total",
		"Checks of an invariant against the members' reports, by this process as leader.",
		[]string{"invariant"}, nil)
	invariantBroken = prometheus.NewDesc("creel_invariant_broken_total",
		"Checks that found the invariant violated.", []string{"invariant"}, nil)
)

func (a invariantFigures) Describe(out chan<- *prometheus.Desc) {
	out <- invariantChecked
	out <- invariantBroken
}

func (a invariantFigures) Collect(out chan<- prometheus.Metric) {
	// If no audit has run, report zero checks, so that an alert finds the metrics.
	checked, broken := map[string]int64{}, map[string]int64{}
	if x := a.leader.Audited(); x != nil {
		for _, i := range x.Invariants {
			checked[i.Name], broken[i.Name] = i.Checked, i.Broken
		}
	}
	for _, i := range invariants.Reported {
		name := string(i)
		out <- prometheus.MustNewConstMetric(invariantChecked, prometheus.CounterValue, float64(checked[name]), name)
		out <- prometheus.MustNewConstMetric(invariantBroken, prometheus.CounterValue, float64(broken[name]), name)
	}
}
