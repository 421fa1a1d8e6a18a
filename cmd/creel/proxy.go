// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/amrmproxy/remote"
	proxyrpc "github.com/creelrm/creel/amrmproxy/rpc"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/amrmproxy/stored"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	rmremote "github.com/creelrm/creel/subcluster/remote"
	"github.com/go-chi/chi/v5"
	"github.com/spf13/cobra"
)

// proxyConfig is what a proxy takes from settings.
type proxyConfig struct {
	name, address, web string
	user               string // that submits and kills twins for their owners; "" says to be the owner
	session            amrmproxy.Config
	policy             policies.Policy // of queues without a document
	callTime           time.Duration
	mailbox, sessions  int
	poll               time.Duration
	secretFile         string
	rpc                hrpc.Config
	interceptors       []hrpc.ClientInterceptor // of calls to members
	log                *slog.Logger
}

func proxySettings(s *settings.Settings) (proxyConfig, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "proxy"
	}
	policy, err := basePolicy(s)
	if err != nil {
		return proxyConfig{}, err
	}
	return proxyConfig{
		name:     fmt.Sprintf("%s/%d", host, os.Getpid()),
		address:  s.Listen("yarn.nodemanager.amrmproxy.address", "yarn.nodemanager.bind-host"),
		web:      "127.0.0.1:0",
		policy:   policy,
		callTime: s.Duration("creel.proxy.call-timeout"),
		mailbox:  s.Int("creel.proxy.inbox"),
		sessions: s.Int("creel.proxy.max-sessions"),
		session: amrmproxy.Config{
			UAMHeartbeat: s.Duration("creel.proxy.beat-interval"),
			SlowAfter:    s.Duration("creel.proxy.member-timeout"),
			StuckAfter: s.Duration(
				"creel.proxy.move-asks-after",
			),
			AMExpiry: s.Duration("yarn.am.liveness-monitor.expiry-interval-ms"),
		},
		poll: s.Duration(
			"creel.store.poll-interval",
		),
		secretFile:   s.String("creel.cluster.secret-file"),
		rpc:          rpcLimits(s, "yarn.nodemanager.amrmproxy.client.thread-count"),
		interceptors: clientInterceptors(s),
		log:          slog.Default(),
	}, nil
}

// proxyParts is an AM-RM proxy assembled.
type proxyParts struct {
	entry  readyEntry
	proxy  *server.Server
	health *health
	parts  []part
	view   func() *subcluster.View
	close  func() error
}

// ready reports whether the proxy has seen the federation.
func (p *proxyParts) ready() bool { return p.view() != nil }

// newProxy assembles an AM-RM proxy over a store; its port is bound when it
// returns.
func newProxy(c proxyConfig, store statestore.Store) (*proxyParts, error) {
	secret, err := clusterSecret(store, c.secretFile)
	if err != nil {
		return nil, usage(err)
	}
	watcher := watch.New(store, watch.Config{Poll: c.poll, Validate: validPolicy, Log: c.log})
	calls := remote.New(watcher.View, c.user, hrpc.ClientConfig{Logger: c.log, Interceptors: c.interceptors})
	records := &stored.Records{Spreads: store, Secrets: secret, Random: rand.Reader}
	proxy, err := server.New(
		server.Config{
			Name:        c.name,
			Driver:      amrmproxy.DriverConfig{Session: c.session},
			Policy:      c.policy,
			Members:     calls,
			Clients:     calls,
			Store:       records,
			Sealer:      records,
			View:        watcher.View,
			CallTime:    c.callTime,
			Mailbox:     c.mailbox,
			MaxSessions: c.sessions,
			Logger:      c.log,
		},
	)
	if err != nil {
		return nil, err
	}
	amrmKeys := keys.NewCache(store, secret, watcher.View)
	c.rpc.Interceptors = append(slices.Clone(c.rpc.Interceptors), telemetry.Audit(c.log, yarnrpc.Audited))
	handler, err := proxyrpc.NewServer(proxy, amrmKeys, c.rpc)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		return nil, err
	}
	h := newHealth()
	h.checks = append(h.checks, check{"view of the federation", func() error {
		if watcher.View() == nil {
			return watch.ErrNoView
		}
		return nil
	}})
	h.gauge("creel_proxy_sessions", "Attempts served now.", func() float64 { return float64(proxy.Stats().Sessions) })
	h.counter(
		"creel_proxy_allocates_total",
		"Allocate calls of masters.",
		func() float64 { return float64(proxy.Stats().Allocates) },
	)
	h.counter(
		"creel_proxy_launches_total",
		"Unmanaged masters started.",
		func() float64 { return float64(proxy.Stats().Launches) },
	)
	mux := chi.NewRouter()
	h.mount(mux)
	web, runWeb, err := webServer(c.web, mux)
	if err != nil {
		listener.Close()
		return nil, err
	}
	return &proxyParts{
		entry:  readyEntry{Role: "proxy", Addresses: map[string]string{"proxy": listener.Addr().String(), "web": web}},
		proxy:  proxy,
		health: h,
		view:   watcher.View,
		close:  calls.Close,
		parts: []part{
			{"proxy view", watcher.Run},
			{"proxy keys", func(ctx context.Context) error { return amrmKeys.Run(ctx, time.Second) }},
			{"proxy sessions", proxy.Run},
			{
				"proxy door",
				func(ctx context.Context) error { return handler.Run(ctx, listener) },
			},
			{"proxy web door", runWeb},
		},
	}, nil
}

func proxyCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand(
		"proxy",
		"an AM-RM proxy: spreads a master's asks over subclusters",
		&f,
		func(ctx context.Context, s *settings.Settings, f *daemonFlags) (*daemon, error) {
			store, closeStore, err := openStore(ctx, f.store, s)
			if err != nil {
				return nil, err
			}
			conf, err := proxySettings(s)
			if err != nil {
				return nil, err
			}
			p, err := newProxy(conf, store)
			if err != nil {
				return nil, err
			}
			return &daemon{
				entries: []readyEntry{own(p.entry)},
				parts:   p.parts,
				health:  p.health,
				close:   []func() error{closeStore, p.close},
			}, nil
		},
	)
	c.Flags().StringVar(&f.store, "store", "", "state store `URL`")
	return c
}

// agentCommand speaks for a Hadoop ResourceManager that does not know us.
func agentCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand(
		"agent",
		"bring a Hadoop ResourceManager into the federation",
		&f,
		func(ctx context.Context, s *settings.Settings, f *daemonFlags) (*daemon, error) {
			id := creel.SubclusterID(f.subcluster)
			if err := subcluster.ValidID(id); err != nil {
				return nil, usage(fmt.Errorf("--subcluster: %w", err))
			}
			store, closeStore, err := openStore(ctx, f.store, s)
			if err != nil {
				return nil, err
			}
			web := s.Address("yarn.resourcemanager.webapp.address")
			agent := &rmremote.Agent{
				Store:  store,
				Probe:  rmremote.WebProbe(web),
				Every:  s.Duration("creel.membership.beat-interval"),
				Logger: slog.Default(),
				Member: subcluster.Member{
					ID:      id,
					Epoch:   time.Now().UnixMilli(),
					Lease:   s.Duration("creel.membership.lease"),
					Version: "hadoop",
					Addresses: subcluster.Addresses{
						Client:    s.Address("yarn.resourcemanager.address"),
						Scheduler: s.Address("yarn.resourcemanager.scheduler.address"),
						Admin: s.Address(
							"yarn.resourcemanager.admin.address",
						),
						Tracker: s.Address("yarn.resourcemanager.resource-tracker.address"),
						Web:     web,
					},
				},
			}
			return &daemon{
				entries: []readyEntry{own(readyEntry{Role: "agent", Addresses: map[string]string{}})},
				parts:   []part{{"membership", agent.Run}},
				close:   []func() error{closeStore},
			}, nil
		},
	)
	c.Flags().StringVar(&f.store, "store", "", "state store `URL`")
	c.Flags().StringVar(&f.subcluster, "subcluster", "", "the member's `ID`")
	return c
}
