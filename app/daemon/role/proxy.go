// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"go.opentelemetry.io/otel/trace"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/amrmproxy/remote"
	proxyrpc "github.com/creelrm/creel/amrmproxy/rpc"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/amrmproxy/stored"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster/login"
	resolver "github.com/creelrm/creel/subcluster/resolver/server"
)

// ProxyConfig is the configuration of an AM-RM proxy, apart from its store.
type ProxyConfig struct {
	Name         string      // in the store; of two proxies with the same name, one is rejected
	Address, Web string      // to listen on
	Login        login.Login // submits and kills UAMs for their owners
	Session      amrmproxy.Config
	Policy       policies.Policy // for queues without a document
	CallTime     time.Duration
	Mailbox      int  // limit of events that wait for one attempt
	Sessions     int  // limit of concurrent attempts
	Places       bool // opportunistic containers, in members with distributed scheduling
	Poll         time.Duration
	SecretFile   string
	Secrets      []string          // files that others should not read
	HadoopKeys   *keys.HadoopFiles // of AMs' tokens; nil: none
	RPC          hrpc.Config
	WebServer    webserver.Config
	Machines     *resolver.MachineList    // overrides the node lists that members publish
	Interceptors []hrpc.ClientInterceptor // for calls to members
	Traces       trace.TracerProvider     // of applications; nil: none
	Log          *slog.Logger
}

// ProxySettings reads a proxy's configuration.
func ProxySettings(s *settings.Settings) (ProxyConfig, error) {
	if err := mayStart(s, settings.Proxy); err != nil {
		return ProxyConfig{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "proxy"
	}
	policy, err := basePolicy(s)
	if err != nil {
		return ProxyConfig{}, err
	}
	machines, err := machineList(s)
	if err != nil {
		return ProxyConfig{}, err
	}
	hadoopKeys, err := hadoopKeyFiles(s)
	if err != nil {
		return ProxyConfig{}, err
	}
	known, err := groupsOf(s)
	if err != nil {
		return ProxyConfig{}, err
	}
	acls, err := newServiceACLs(s, proxyProtocols, known)
	if err != nil {
		return ProxyConfig{}, err
	}
	limits := RPCLimits(s, "yarn.nodemanager.amrmproxy.client.thread-count")
	if acls != nil {
		limits.Authorize = acls.authorize
	}
	as, err := proxyLogin(s)
	if err != nil {
		return ProxyConfig{}, err
	}
	limits.Protections = as.Accepts()
	web, err := webSettings(s, settings.Proxy)
	if err != nil {
		return ProxyConfig{}, err
	}
	return ProxyConfig{
		Login:      as.Login,
		Machines:   machines,
		HadoopKeys: hadoopKeys,
		Name:       fmt.Sprintf("%s/%d", host, os.Getpid()),
		Address:    s.Listen("yarn.nodemanager.amrmproxy.address", "yarn.nodemanager.bind-host"),
		Web:        s.Address("creel.health.address"),
		Policy:     policy,
		CallTime:   s.Duration("creel.proxy.call-timeout"),
		Mailbox:    s.Int("creel.proxy.inbox"),
		Sessions:   s.Int("creel.proxy.max-sessions"),
		Places:     s.Bool(distributedScheduling),
		Session: amrmproxy.Config{
			UAMHeartbeat: s.Duration("creel.proxy.heartbeat-interval"),
			SlowAfter:    s.Duration("creel.proxy.member-timeout"),
			StuckAfter:   s.Duration("creel.proxy.move-asks-after"),
			IdleAfter:    s.Duration("creel.proxy.idle-uam-after"),
			LongQueue:    int32(min(s.Int("creel.proxy.long-queue"), math.MaxInt32)),
			Shuffling:    s.List("creel.proxy.shuffling-types"),
			OneID:        s.List("creel.proxy.one-id-types"),
			AMExpiry:     s.Duration("yarn.am.liveness-monitor.expiry-interval-ms"),
		},
		Poll:         s.Duration("creel.store.poll-interval"),
		SecretFile:   s.String(clusterSecretFile),
		Secrets:      secretFiles(s),
		RPC:          limits,
		WebServer:    web,
		Interceptors: tracing.ClientInterceptors(s),
		Traces:       tracing.Provider(s),
		Log:          slog.Default(),
	}, nil
}

// Proxy is an assembled AM-RM proxy.
type Proxy struct {
	daemon.Service
	Proxy   *server.Server
	Watcher *watch.Watcher
}

// NewProxy assembles an AM-RM proxy over a store, which it does not close.
func NewProxy(c ProxyConfig, store statestore.Store) (_ *Proxy, err error) {
	p := &Proxy{Service: daemon.Service{Health: health.New()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	secret, err := clusterSecret(store, c.SecretFile)
	if err != nil {
		return nil, err
	}
	clock := newClock(&p.Service, c.Log)
	signer, err := signerOf(c.SecretFile)
	if err != nil {
		return nil, err
	}
	p.Watcher = watch.New(members(&p.Service, store, signer, c.Log), watch.Config{
		Poll: c.Poll, Plan: store, Validate: ValidPolicy, Log: c.Log, Clock: clock,
		Queues: func() []string { return p.Proxy.Queues() },
	})
	view := p.Watcher.View
	calls := remote.New(view, c.Login, clock, hrpc.ClientConfig{Logger: c.Log, Interceptors: c.Interceptors})
	p.OnClose(calls.Close)
	records := &stored.Records{Records: store, Secrets: secret, Random: rand.Reader}
	hosts := addResolver(&p.Service, store, view, c.Machines, c.Log)
	amrmKeys := keys.NewCache(store, secret, view, c.HadoopKeys)
	var issuer amrmproxy.Issuer
	if c.Places {
		issuer = amrmKeys.Issuer()
	}
	p.Proxy, err = server.New(server.Config{
		Issuer:      issuer,
		Places:      func() amrmproxy.Places { return hosts.Table() },
		Name:        c.Name,
		Driver:      amrmproxy.DriverConfig{Session: c.Session},
		Policy:      c.Policy,
		Members:     calls,
		Clients:     calls,
		Store:       records,
		Sealer:      records,
		View:        view,
		Wanted:      p.Watcher.Kick,
		CallTime:    c.CallTime,
		Mailbox:     c.Mailbox,
		MaxSessions: c.Sessions,
		Clock:       clock,
		Logger:      c.Log,
		Traces:      c.Traces,
	})
	if err != nil {
		return nil, err
	}
	c.RPC.Interceptors = append(slices.Clone(c.RPC.Interceptors), telemetry.Audit(c.Log, yarnrpc.Audited))
	var relay *proxyrpc.Relay
	if mayRelay(c.RPC.Protections) {
		relay = &proxyrpc.Relay{Homes: store, Foreign: amrmKeys.Foreign, Login: calls.Login}
	}
	handler, err := proxyrpc.NewServer(p.Proxy, amrmKeys, relay, c.RPC)
	if err != nil {
		return nil, err
	}
	p.Health.Check("view of the federation", func() error {
		if view() == nil {
			return watch.ErrNoView
		}
		return nil
	})
	dependOnStore(&p.Service, store, c.Log)
	dependOnView(p.Health, p.Watcher)
	dependOnKeys(p.Health, amrmKeys, c.HadoopKeys)
	p.countSessions()
	p.Health.Counter("creel_proxy_relayed_logins_total",
		"Logins relayed to the AM's home, because the proxy does not have its key.", relay.Begun)

	addWitness(&p.Service, store, view)
	p.Add("view", p.Watcher.Run)
	p.Add("token keys", func(ctx context.Context) error { return amrmKeys.Run(ctx, time.Second) })
	var openKeys func() []string
	if c.HadoopKeys != nil {
		openKeys = c.HadoopKeys.OpenToAll
	}
	watchSecrets(&p.Service, c.Secrets, openKeys, c.Log)
	if c.HadoopKeys != nil {
		warnOfOpenFiles(c.HadoopKeys, c.Log)
		p.Add("Hadoop's key files", func(ctx context.Context) error { return c.HadoopKeys.Run(ctx, time.Second) })
	}
	p.Add("sessions", p.Proxy.Run)
	listener, err := p.Listen("yarn.nodemanager.amrmproxy.address", c.Address)
	if err != nil {
		return nil, err
	}
	p.Add("scheduler server", func(ctx context.Context) error { return handler.Run(ctx, listener) })
	addresses := map[string]string{"proxy": listener.Addr().String()}
	p.Entries = []daemon.Entry{daemon.NewEntry("proxy", addresses)}
	addresses["web"], err = addHealthWeb(&p.Service, "web port of the proxy", c.Web, c.WebServer)
	if err != nil {
		return nil, err
	}
	return p, keepRecord(&p.Service, store, c.Name, c.WebServer.TLS != nil, c.Log)
}

// mayRelay reports whether a proxy that accepts these protections can relay logins of AMs. It does not have the keys
// with which protected packets are wrapped.
func mayRelay(accepts []hrpc.Protection) bool {
	return len(accepts) == 0 || slices.Contains(accepts, hrpc.Authentication)
}

func (p *Proxy) countSessions() {
	stats := p.Proxy.Stats
	p.Health.Gauge("creel_proxy_sessions", "Attempts served now.", func() float64 { return float64(stats().Sessions) })
	p.Health.Counter("creel_proxy_allocates_total", "Allocate calls of AMs.",
		func() int64 { return int64(stats().Allocates) })
	p.Health.Counter("creel_proxy_launches_total", "UAMs started.",
		func() int64 { return int64(stats().Launches) })
	p.Health.Counter("creel_proxy_returns_total", "Idle UAMs given back.",
		func() int64 { return int64(stats().Returns) })
	p.Health.Register(waitFigures{proxyWaits, func() waitstats.Histogram { return stats().Waits }})
}
