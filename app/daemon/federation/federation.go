// SPDX-License-Identifier: Apache-2.0

// Package federation runs a whole federation in one process, on loopback. It runs real ResourceManagers, simulated
// nodes, proxies and routers, which use the real protocols over real sockets. `creel up`, the demo and the tests use
// it.
package federation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
)

// Config of a federation. Store, Settings, Subclusters and Log are required; other zero values mean the defaults in
// brackets.
type Config struct {
	Subclusters, Routers int
	Nodes                int                            // simulated nodes in each subcluster; 0: none
	Name                 func(i int) creel.SubclusterID // [sc-1, sc-2, …]
	NodeSize             creel.Resource
	NodeHeartbeat        time.Duration // interval sent to nodes [1 s]
	Eager                time.Duration // time between a container's completion and the heartbeat that reports it
	RunTime              time.Duration // of containers without one [10 ms]
	OnStart              nmserver.Hook
	Dir                  string // journals, one directory for each subcluster; "" stores none
	Store                statestore.Store
	Settings             *settings.Settings
	DefaultPorts         bool // YARN's ports for the first router; other routers use any free port
	WithoutProxies       bool
	Rebalancers          int           // 0: none
	PlanEvery            time.Duration // between a rebalancer's plans [from settings]
	Lease                time.Duration // of members
	Heartbeat            time.Duration // of members [a fifth of the lease]
	Poll                 time.Duration // between reads of the store [250 ms]
	Log                  *slog.Logger

	// ChangeRM and the functions below change a daemon's configuration before its first assembly; nil changes
	// nothing.
	ChangeRM     func(i int, c *role.RMConfig)
	ChangeNodes  func(i int, c *nmrpc.Config)
	ChangeRouter func(i int, c *role.RouterConfig)
}

// user is the user as which routers call members for their clients. Members accept it, because the federation is only
// on loopback.
const user = "creel"

func (c Config) withDefaults() Config {
	if c.Name == nil {
		c.Name = func(i int) creel.SubclusterID { return creel.SubclusterID(fmt.Sprintf("sc-%d", i+1)) }
	}
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.NodeHeartbeat, time.Second)
	def(&c.RunTime, 10*time.Millisecond)
	def(&c.Heartbeat, c.Lease/5)
	def(&c.Poll, 250*time.Millisecond)
	return c
}

// Federation is a running federation. Each daemon can be stopped and restarted on the same ports, to simulate faults.
type Federation struct {
	RMs     []*Daemon[*role.RM]
	Proxies []*Daemon[*role.Proxy]
	Routers []*Daemon[*role.Router]
	// Rebalancers; one of them leads.
	Rebalancers []*Daemon[*role.Rebalancer]

	conf   Config
	nodes  []*Daemon[*role.Nodes]
	failed chan error
}

// New starts everything and returns when all nodes are registered and every
// router sees all members. Close ends it.
func New(ctx context.Context, c Config) (*Federation, error) {
	f := &Federation{conf: c.withDefaults(), failed: make(chan error, 1)}
	if err := f.start(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Failed receives the first failure of any daemon.
func (f *Federation) Failed() <-chan error { return f.failed }

// Entries are the ready-file lines of all daemons.
func (f *Federation) Entries() (out []daemon.Entry) {
	for _, r := range f.Routers {
		out = append(out, r.Service.Entries...)
	}
	for _, rm := range f.RMs {
		out = append(out, rm.Service.Entries...)
	}
	for _, p := range f.Proxies {
		out = append(out, p.Service.Entries...)
	}
	for _, r := range f.Rebalancers {
		out = append(out, r.Service.Entries...)
	}
	return out
}

// Close stops all daemons: routers first, ResourceManagers last, so that none waits for an ended one.
func (f *Federation) Close() error {
	var errs []error
	for _, stop := range []func() []error{
		func() []error { return stopAll(f.Routers) },
		func() []error { return stopAll(f.Rebalancers) },
		func() []error { return stopAll(f.nodes) },
		func() []error { return stopAll(f.Proxies) },
		func() []error { return stopAll(f.RMs) },
	} {
		errs = append(errs, stop()...)
	}
	return errors.Join(errs...)
}

// stopAll stops daemons of one role in parallel.
func stopAll[S service](list []*Daemon[S]) []error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, d := range list {
		all.Go(func() { errs[i] = d.Stop() })
	}
	all.Wait()
	return errs
}

func (f *Federation) start(ctx context.Context) error {
	for i := range f.conf.Subclusters {
		if err := f.addSubcluster(ctx, i); err != nil {
			return err
		}
	}
	for i := range f.conf.Rebalancers {
		if err := f.addRebalancer(i); err != nil {
			return err
		}
	}
	for i := range f.conf.Routers {
		if err := f.addRouter(i); err != nil {
			return err
		}
	}
	return f.await(ctx)
}

// addSubcluster starts a proxy, a ResourceManager that publishes the proxy's address, and its nodes.
func (f *Federation) addSubcluster(ctx context.Context, i int) error {
	c := f.conf
	id := c.Name(i)
	proxyAt := ""
	if !c.WithoutProxies {
		p, err := f.proxy(id)
		if err != nil {
			return err
		}
		f.Proxies = append(f.Proxies, p)
		proxyAt = p.Address("proxy")
	}
	conf, err := f.rmConfig(i, proxyAt)
	if err != nil {
		return err
	}
	rm := newDaemon(string(id), f.failed, func() (*role.RM, error) {
		made, err := role.NewRM(conf)
		if err != nil {
			return nil, err
		}
		p := &conf.Ports // the same after a restart
		p.Client, p.Scheduler = made.Address("client"), made.Address("scheduler")
		p.Tracker, p.Admin, conf.Web = made.Address("tracker"), made.Address("admin"), made.Address("web")
		return made, nil
	})
	if err := rm.Start(); err != nil {
		return err
	}
	f.RMs = append(f.RMs, rm)
	if c.Nodes == 0 {
		return nil
	}
	farm := role.NodesConfig{Web: anyPort, Scheduler: cmp.Or(proxyAt, rm.Address("scheduler")), Farm: nmrpc.Config{
		Tracker: rm.Address("tracker"),
		Nodes:   c.Nodes,
		First:   i * c.Nodes,
		Config: nmserver.Config{
			Queue:   role.QueueSettings(f.conf.Settings),
			Total:   c.NodeSize,
			RunTime: c.RunTime,
			OnStart: c.OnStart,
			Eager:   c.Eager,
			Seed:    uint64(i + 1),
			Logger:  c.Log,
		},
	}}
	if c.ChangeNodes != nil {
		c.ChangeNodes(i, &farm.Farm)
	}
	nodes := newDaemon("nodes of "+string(id), f.failed, func() (*role.Nodes, error) { return role.NewNodes(farm) })
	f.nodes = append(f.nodes, nodes)
	return nodes.Start()
}

const anyPort = "127.0.0.1:0"

// proxy starts the AM-RM proxy of a subcluster.
func (f *Federation) proxy(id creel.SubclusterID) (*Daemon[*role.Proxy], error) {
	p, err := role.ProxySettings(f.conf.Settings)
	if err != nil {
		return nil, err
	}
	p.Name, p.Address, p.Web = "proxy-"+string(id), anyPort, anyPort
	p.Poll, p.Log, p.RPC.DrainTime = f.conf.Poll, f.conf.Log, time.Second
	d := newDaemon("proxy of "+string(id), f.failed, func() (*role.Proxy, error) {
		made, err := role.NewProxy(p, f.conf.Store)
		if err == nil {
			p.Address, p.Web = made.Address("proxy"), made.Address("web") // the same ports after a restart
		}
		return made, err
	})
	return d, d.Start()
}

// rmConfig is the configuration of a subcluster's ResourceManager.
func (f *Federation) rmConfig(i int, proxyAt string) (role.RMConfig, error) {
	c := f.conf
	out, err := role.RMSettings(c.Settings, nil)
	if err != nil {
		return out, err
	}
	id := c.Name(i)
	r := &out.RM
	r.ClusterID = string(id)
	r.Epoch = int64(i+1) * 1000 // so that container ids of the subclusters differ
	p := &out.Ports
	p.Client, p.Scheduler, p.Tracker, p.Admin, out.Web = anyPort, anyPort, anyPort, anyPort, anyPort
	p.RPC.DrainTime = time.Second
	r.HeartbeatInterval = c.NodeHeartbeat
	r.Proxies = impersonation.Rules{
		user: {Hosts: []string{"*"}, Users: []string{"*"}, Groups: []string{"*"}},
	}
	r.Logger, out.Log = c.Log, c.Log
	if r.Dir = ""; c.Dir != "" {
		r.Dir = filepath.Join(c.Dir, string(id))
		if err := os.MkdirAll(r.Dir, 0o700); err != nil {
			return out, err
		}
	}
	out.Membership, err = role.NewMembership(id, c.Store)
	if err != nil {
		return out, err
	}
	out.Membership.Escrow = role.EscrowSettings(c.Settings)
	out.Membership.Lease, out.Membership.Heartbeat, out.Membership.Proxy = c.Lease, c.Heartbeat, proxyAt
	out.Membership.TakeOver = true // this process owns the names; without a journal, a restart cannot prove it
	if c.ChangeRM != nil {
		c.ChangeRM(i, &out)
		out.REST.MaxContainer = out.RM.Machine.MaxAllocation
	}
	return out, nil
}

// addRebalancer starts a rebalancer, which leads or waits to lead.
func (f *Federation) addRebalancer(i int) error {
	c, err := role.RebalancerSettings(f.conf.Settings)
	if err != nil {
		return err
	}
	c.Name, c.Web, c.Log = fmt.Sprintf("rebalancer-%d", i+1), anyPort, f.conf.Log
	if f.conf.PlanEvery > 0 {
		c.SlowStart = time.Duration(float64(c.SlowStart) * float64(f.conf.PlanEvery) / float64(c.Every))
		c.Every = f.conf.PlanEvery
	}
	d := newDaemon(fmt.Sprintf("rebalancer %d", i+1), f.failed, func() (*role.Rebalancer, error) {
		made, err := role.NewRebalancer(c, f.conf.Store)
		if err == nil {
			c.Web = made.Address("web") // the same port after a restart
		}
		return made, err
	})
	f.Rebalancers = append(f.Rebalancers, d)
	return d.Start()
}

func (f *Federation) addRouter(i int) error {
	r, err := role.RouterSettings(f.conf.Settings)
	if err != nil {
		return err
	}
	r.Log, r.Poll, r.Remote.User = f.conf.Log, f.conf.Poll, user
	r.RPC.DrainTime = time.Second
	if !f.conf.DefaultPorts || i > 0 {
		r.Client, r.Admin, r.Web = anyPort, anyPort, anyPort
	}
	if f.conf.ChangeRouter != nil {
		f.conf.ChangeRouter(i, &r)
	}
	d := newDaemon(fmt.Sprintf("router %d", i+1), f.failed, func() (*role.Router, error) {
		made, err := role.NewRouter(r, f.conf.Store)
		if err == nil {
			r.Client, r.Admin, r.Web = made.Address("client"), made.Address("admin"), made.Address("web")
		}
		return made, err
	})
	f.Routers = append(f.Routers, d)
	return d.Start()
}

// await waits until all nodes are registered and every router and proxy sees
// all members.
func (f *Federation) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := f.missing()
		if missing == "" {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-f.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("the federation is not complete: %s: %w", missing, ctx.Err())
		}
	}
}

// missing describes the condition that the federation still waits for, "" for none.
func (f *Federation) missing() string {
	for _, n := range f.nodes {
		select {
		case <-n.Service.Farm.Ready():
		default:
			return n.Name + " are not all registered"
		}
	}
	for _, r := range f.Routers {
		if len(r.Service.Watcher.View().Active()) != f.conf.Subclusters {
			return r.Name + " does not see every member"
		}
	}
	for _, p := range f.Proxies {
		if p.Service.Watcher.View() == nil {
			return p.Name + " has not read the store"
		}
	}
	return ""
}
