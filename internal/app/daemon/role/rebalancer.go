// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/app/daemon"
	"github.com/creelrm/creel/internal/app/daemon/health"
	"github.com/creelrm/creel/internal/app/daemon/webserver"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies/rebalancer"
	rebalance "github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
)

// RebalancerConfig is all that a rebalancer needs besides its store.
type RebalancerConfig struct {
	Name      string // tells rebalancers apart
	Every     time.Duration
	Lease     time.Duration
	MaxChange float64 // of a weight in one plan
	DryRun    bool
	Web       string // address to listen on
	WebServer webserver.Config
	Log       *slog.Logger
}

// RebalancerSettings reads a rebalancer's configuration.
func RebalancerSettings(s *settings.Settings) (RebalancerConfig, error) {
	host, err := hostOf("")
	if err != nil {
		return RebalancerConfig{}, err
	}
	return RebalancerConfig{
		Name:      "rebalancer-" + host,
		Every:     s.Duration("creel.rebalancer.interval"),
		Lease:     s.Duration("creel.rebalancer.lease"),
		MaxChange: s.Float("creel.rebalancer.max-change") / 100,
		DryRun:    s.Bool("creel.rebalancer.dry-run"),
		Web:       "127.0.0.1:0",
		WebServer: webSettings(s),
		Log:       slog.Default(),
	}, nil
}

// Rebalancer is one, assembled.
type Rebalancer struct {
	daemon.Service
	Leader *rebalance.Leader
}

// NewRebalancer assembles a rebalancer over a store.
func NewRebalancer(c RebalancerConfig, store statestore.Store) (*Rebalancer, error) {
	r := &Rebalancer{Service: daemon.Service{Health: health.New()}}
	r.Leader = &rebalance.Leader{
		Name: c.Name, Store: store, Every: c.Every, Lease: c.Lease, DryRun: c.DryRun, Log: c.Log,
		Shaping: rebalancer.Shaping{Step: c.MaxChange},
	}
	n := &r.Leader.Counts
	r.Health.Counter("creel_rebalancer_plans_total", "Plans published.", n.Plans.Load)
	r.Health.Counter("creel_rebalancer_failures_total", "Plans that failed.", n.Failed.Load)
	r.Health.Counter("creel_rebalancer_escrow_shares_total", "Escrow records given new shares.", n.Shares.Load)
	r.Health.Gauge("creel_rebalancer_leads", "1 while this rebalancer leads.",
		func() float64 { return float64(n.Leads.Load()) })
	part := func(v *atomic.Uint64) func() float64 { return func() float64 { return math.Float64frombits(v.Load()) } }
	r.Health.Gauge("creel_rebalancer_entitlement_error_mean_ratio",
		"What queues lack of their entitlement in the federation, on average.", part(&n.ErrorMean))
	r.Health.Gauge(
		"creel_rebalancer_entitlement_error_worst_ratio",
		"The same, of the queue that lacks most.",
		part(&n.ErrorWorst),
	)
	web, err := addHealthWeb(&r.Service, "web", c.Web, c.WebServer)
	if err != nil {
		return nil, err
	}
	r.Entries = []daemon.Entry{daemon.NewEntry("rebalancer", map[string]string{"web": web})}
	r.Add("rebalancer", r.Leader.Run)
	return r, nil
}
