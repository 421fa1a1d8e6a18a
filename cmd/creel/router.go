// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/dash"
	"github.com/creelrm/creel/router/gateway"
	"github.com/creelrm/creel/router/rest"
	routerrpc "github.com/creelrm/creel/router/rpc"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/cache"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
	"github.com/spf13/cobra"
)

// routerConfig is what a router takes from settings.
type routerConfig struct {
	client, admin, web string // addresses to listen on
	poll               time.Duration
	homeTTL            time.Duration   // for which an ended application's home is remembered
	policy             policies.Policy // of queues without a document
	remote             remote.Config
	submitTime         time.Duration // of one submission, over all members it tries
	maxTries           int           // subclusters that one submission is offered to at most
	homes, kept        int           // homes and decisions remembered
	dashboard          bool
	rpc                hrpc.Config
	log                *slog.Logger
}

func routerSettings(s *settings.Settings) (routerConfig, error) {
	policy, err := basePolicy(s)
	if err != nil {
		return routerConfig{}, err
	}
	forward := s.Duration("creel.router.forward-timeout")
	c := routerConfig{
		policy: policy,
		client: s.Listen(
			"yarn.router.clientrm.address",
			"yarn.router.bind-host",
		),
		admin:   s.Listen("yarn.router.rmadmin.address", "yarn.router.bind-host"),
		web:     s.Listen("yarn.router.webapp.address", "yarn.router.bind-host"),
		poll:    s.Duration("creel.store.poll-interval"),
		homeTTL: s.Duration("creel.store.home-ttl"),
		submitTime: s.Duration(
			"creel.router.submit-timeout",
		),
		maxTries: 1 + max(s.Int("yarn.router.submit.retry"), 0),
		homes:    s.Int("creel.router.home-cache"),
		kept:     s.Int("creel.router.decisions-kept"),
		dashboard: s.Bool(
			"creel.router.dashboard",
		),
		rpc: rpcLimits(s, "yarn.resourcemanager.client.thread-count"),
		log: slog.Default(),
	}
	c.remote = remote.Config{
		User:         s.String("creel.router.proxy-user"), // who the router is towards members
		Interceptors: clientInterceptors(s),
		OpenFor:      s.Duration("creel.router.breaker.open-time"),
		Trips:        uint32(s.Int("creel.router.breaker.failures")),
	}
	c.remote.Deadlines[remote.Write], c.remote.Deadlines[remote.Read], c.remote.Deadlines[remote.List] = forward, forward, s.Duration(
		"creel.router.list-timeout",
	)
	return c, nil
}

// routerParts is a router assembled: what runs, and where.
type routerParts struct {
	entry   readyEntry
	gate    *gateway.Gateway
	watcher *watch.Watcher
	health  *health
	parts   []part
	close   func() error
}

// newRouter assembles a router over a store. Its ports are bound when it
// returns, so that their numbers are known.
func newRouter(c routerConfig, store statestore.Store, started time.Time) (*routerParts, error) {
	known := cache.New(store, cache.Config{Size: c.homes})
	watcher := watch.New(store, watch.Config{Poll: c.poll, Validate: validPolicy, Log: c.log, OnChange: known.Changed})
	var book atomic.Pointer[policies.Table]
	book.Store(policies.EmptyTable(c.policy))
	c.remote.KindOf = yarnrpc.KindOf
	c.remote.Changed = func(id creel.SubclusterID, k remote.Kind, to string) {
		c.log.Info("breaker", "subcluster", id, "calls", k.String(), "state", to)
	}
	pool := remote.NewPool(c.remote)
	var gate *gateway.Gateway
	gate = gateway.New(gateway.Config{
		View: watcher.View,
		Policy: func(v *subcluster.View, q creel.QueuePath) policies.Policy {
			before := book.Load()
			now := policies.NewTable(before, v.Policies)
			if now != before {
				book.CompareAndSwap(before, now)
			}
			p, _ := now.For(q)
			return p
		},
		Homes: known, Pool: pool, Kept: c.kept, Seed: rand.Uint64(), Log: c.log, SubmitTime: c.submitTime, MaxTries: c.maxTries,
		Known:  routerrpc.Known(func(id creel.SubclusterID) (*remote.Member, error) { return gate.Member(id) }),
		Disown: routerrpc.Disown(func(id creel.SubclusterID) (*remote.Member, error) { return gate.Member(id) }),
	})
	rpcConf := c.rpc
	rpcConf.Services = []hrpc.Service{routerrpc.Service(gate)}
	rpcConf.Simple, rpcConf.ErrorOf, rpcConf.Logger = true, yarnrpc.ErrorOf, c.log
	h := newHealth()
	server, err := watchedServer("client", rpcConf, h)
	if err != nil {
		return nil, err
	}
	adminConf := c.rpc
	adminConf.Services = []hrpc.Service{routerrpc.AdminService(gate)}
	adminConf.Simple, adminConf.ErrorOf, adminConf.Logger = true, yarnrpc.ErrorOf, c.log
	adminServer, err := watchedServer("admin", adminConf, h)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.client)
	if err != nil {
		return nil, err
	}
	adminListener, err := net.Listen("tcp", c.admin)
	if err != nil {
		listener.Close()
		return nil, err
	}
	h.checks = append(h.checks, check{"view of the federation", func() error {
		if watcher.View() == nil {
			return watch.ErrNoView
		}
		return nil
	}})
	counts := gate.Counts()
	h.counter(
		"creel_router_submissions_total",
		"Submissions received.",
		func() float64 { return float64(counts.Submitted.Load()) },
	)
	h.counter(
		"creel_router_submissions_accepted_total",
		"Submissions a subcluster took.",
		func() float64 { return float64(counts.Accepted.Load()) },
	)
	h.counter(
		"creel_router_submissions_failed_total",
		"Submissions answered with an error.",
		func() float64 { return float64(counts.Failed.Load()) },
	)
	h.counter(
		"creel_router_submissions_moved_total",
		"Submissions offered to more than one subcluster.",
		func() float64 { return float64(counts.Moved.Load()) },
	)
	h.counter(
		"creel_router_partial_answers_total",
		"Merged answers that lacked a subcluster.",
		func() float64 { return float64(counts.Partial.Load()) },
	)
	h.counter(
		"creel_router_unlisted_fields_total",
		"Fields of merged answers that no merge rule lists.",
		func() float64 { return float64(counts.Unlisted.Load()) },
	)
	mux := chi.NewRouter()
	h.mount(mux)
	rest.New(gate, started).Mount(mux)
	if c.dashboard {
		if err := dash.Mount(mux); err != nil {
			return nil, err
		}
	}
	web, runWeb, err := webServer(c.web, mux)
	if err != nil {
		listener.Close()
		adminListener.Close()
		return nil, err
	}
	return &routerParts{
		entry: readyEntry{
			Role: "router",
			Addresses: map[string]string{
				"client": listener.Addr().String(),
				"admin":  adminListener.Addr().String(),
				"web":    web,
			},
		},
		gate:    gate,
		watcher: watcher,
		health:  h,
		close:   pool.Close,
		parts: append(
			rebuildPart(store, watcher.View, pool, c.log),
			[]part{
				tidyPart(store, c.homeTTL, watcher.View, pool, c.log),
				{"router view", watcher.Run},
				{"router client door", func(ctx context.Context) error { return server.Run(ctx, listener) }},
				{
					"router admin door",
					func(ctx context.Context) error { return adminServer.Run(ctx, adminListener) },
				},
				{"router web door", runWeb},
			}...),
	}, nil
}

func routerCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("router", "a stateless router: many subclusters in the shape of one ResourceManager", &f,
		func(ctx context.Context, s *settings.Settings, f *daemonFlags) (*daemon, error) {
			store, closeStore, err := openStore(ctx, f.store, s)
			if err != nil {
				return nil, err
			}
			conf, err := routerSettings(s)
			if err != nil {
				return nil, err
			}
			r, err := newRouter(conf, store, time.Now())
			if err != nil {
				return nil, err
			}
			return &daemon{
				entries: []readyEntry{own(r.entry)},
				parts:   r.parts,
				health:  r.health,
				close:   []func() error{closeStore, r.close},
			}, nil
		})
	c.Flags().
		StringVar(&f.store, "store", "", "state store `URL`: memory, redis://, rediss://, redis-sentinel://, redis-cluster://")
	return c
}
