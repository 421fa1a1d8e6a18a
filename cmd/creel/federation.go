// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/creelrm/creel/subcluster/rm/rest"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
)

// federationConfig is a federation in one process, as demo and up make it.
type federationConfig struct {
	subclusters, nodes, routers int
	nodeSize                    creel.Resource
	nodeBeat                    time.Duration // between heartbeats of a node
	eager                       time.Duration // a node beats this soon after a container ended
	onStart                     nmrpc.Hook
	dir                         string // journals; empty keeps nothing
	store                       statestore.Store
	settings                    *settings.Settings
	ports                       bool // YARN's default ports for the first router, else any
	lease                       time.Duration
	log                         *slog.Logger
}

// federation is one, running. Each of its services can be stopped and started
// again by itself, on the same ports, which is what faults do.
type federation struct {
	conf    federationConfig
	rms     []*service[*rmParts]
	farms   []*nmrpc.Farm
	proxies []*service[*proxyParts]
	routers []*service[*routerParts]
	ctx     context.Context
	cancel  context.CancelFunc
	farmsWG sync.WaitGroup
	failed  chan error
}

// service is one daemon of the federation with the way to make it again.
type service[T any] struct {
	name  string
	parts T
	make  func() (T, []part, func() error, error)
	stop  func()
}

// run starts a service's parts; its stop ends them and waits.
func (f *federation) run(name string, parts []part, closing func() error) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			if err := p.run(ctx); err != nil && ctx.Err() == nil {
				select {
				case f.failed <- fmt.Errorf("%s: %s: %w", name, p.name, err):
				default: // one failure is enough to end the federation
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if closing != nil {
			if err := closing(); err != nil {
				f.conf.log.Warn("close", "service", name, "error", err)
			}
		}
	})
}

// start makes a service and runs it.
func start[T any](f *federation, s *service[T]) error {
	made, parts, closing, err := s.make()
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.parts = made
	s.stop = f.run(s.name, parts, closing)
	return nil
}

// newFederation starts everything and returns when all nodes are registered
// and a router sees all members.
func newFederation(ctx context.Context, c federationConfig) (*federation, error) {
	f := &federation{conf: c, failed: make(chan error, 1)}
	f.ctx, f.cancel = context.WithCancel(ctx)
	if err := f.startAll(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *federation) startAll() error {
	c := f.conf
	secret, err := clusterSecret(c.store, "")
	if err != nil {
		return err
	}
	for i := range c.subclusters {
		id := creel.SubclusterID(fmt.Sprintf("sc-%d", i+1))
		proxy := &service[*proxyParts]{name: "proxy of " + string(id)}
		proxyAt := "127.0.0.1:0"
		proxy.make = func() (*proxyParts, []part, func() error, error) {
			p, err := proxySettings(c.settings)
			if err != nil {
				return nil, nil, nil, err
			}
			p.name, p.address, p.web, p.poll, p.log = "proxy-"+string(
				id,
			), proxyAt, "127.0.0.1:0", 250*time.Millisecond, c.log
			p.rpc.DrainTime = time.Second
			made, err := newProxy(p, c.store)
			if err != nil {
				return nil, nil, nil, err
			}
			proxyAt = made.entry.Addresses["proxy"] // the same port after a restart
			return made, made.parts, made.close, nil
		}
		if err := start(f, proxy); err != nil {
			return err
		}
		f.proxies = append(f.proxies, proxy)

		conf, err := rmConfig(c.settings)
		if err != nil {
			return err
		}
		conf.ClusterID = string(id)
		conf.Epoch = int64(i+1) * 1000 // keeps container ids of the subclusters apart
		conf.Client, conf.Scheduler, conf.Tracker, conf.Admin = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		conf.HeartbeatInterval = c.nodeBeat
		conf.Proxies = map[string]rmrpc.ProxyRule{
			"creel": {Hosts: []string{"*"}, Users: []string{"*"}, Groups: []string{"*"}},
		}
		conf.Logger = c.log
		conf.RPC.DrainTime = time.Second
		if c.dir != "" {
			conf.Dir = filepath.Join(c.dir, string(id))
			if err := os.MkdirAll(conf.Dir, 0o700); err != nil {
				return err
			}
		}
		web := "127.0.0.1:0"
		rm := &service[*rmParts]{name: string(id)}
		rm.make = func() (*rmParts, []part, func() error, error) {
			startSpread(f.ctx)
			made, err := newRM(conf, web, rest.Config{MaxContainer: conf.Machine.MaxAllocation},
				&membership{id: id, store: c.store, secret: secret, lease: c.lease, beat: c.lease / 5, proxy: proxyAt})
			if err != nil {
				return nil, nil, nil, err
			}
			a := made.entry.Addresses
			conf.Client, conf.Scheduler, conf.Tracker, conf.Admin, web = a["client"], a["scheduler"], a["tracker"], a["admin"], a["web"]
			return made, made.parts, nil, nil
		}
		if err := start(f, rm); err != nil {
			return err
		}
		f.rms = append(f.rms, rm)

		if c.nodes > 0 {
			farm, err := nmrpc.New(
				nmrpc.Config{
					Tracker: conf.Tracker,
					Nodes:   c.nodes,
					First:   i * c.nodes,
					Total:   c.nodeSize,
					RunTime: 10 * time.Millisecond,
					OnStart: c.onStart,
					Eager:   c.eager,
					Seed:    uint64(i + 1),
					Logger:  c.log,
				},
			)
			if err != nil {
				return fmt.Errorf("nodes of %s: %w", id, err)
			}
			f.farms = append(f.farms, farm)
			f.farmsWG.Go(func() {
				if err := farm.Run(f.ctx); err != nil && f.ctx.Err() == nil {
					select {
					case f.failed <- fmt.Errorf("nodes of %s: %w", id, err):
					default:
					}
				}
			})
		}
	}
	for i := range c.routers {
		router := &service[*routerParts]{name: fmt.Sprintf("router %d", i+1)}
		r, err := routerSettings(c.settings)
		if err != nil {
			return err
		}
		r.log, r.remote.User, r.poll = c.log, "creel", 250*time.Millisecond
		r.rpc.DrainTime = time.Second
		if !c.ports || i > 0 {
			r.client, r.admin, r.web = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		}
		router.make = func() (*routerParts, []part, func() error, error) {
			made, err := newRouter(r, c.store, time.Now())
			if err != nil {
				return nil, nil, nil, err
			}
			r.client, r.admin, r.web = made.entry.Addresses["client"], made.entry.Addresses["admin"], made.entry.Addresses["web"]
			made.health.ready.Store(true)
			return made, made.parts, made.close, nil
		}
		if err := start(f, router); err != nil {
			return err
		}
		f.routers = append(f.routers, router)
	}
	return f.await()
}

// await waits until all nodes are registered and every router sees all members.
func (f *federation) await() error {
	deadline := time.After(60 * time.Second)
	for _, farm := range f.farms {
		select {
		case <-farm.Ready():
		case err := <-f.failed:
			return err
		case <-f.ctx.Done():
			return f.ctx.Err()
		case <-deadline:
			return errors.New("the simulated nodes did not register within a minute")
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		seen := true
		for _, r := range f.routers {
			seen = seen && len(r.parts.watcher.View().Active()) == f.conf.subclusters
		}
		for _, p := range f.proxies {
			seen = seen && p.parts.ready()
		}
		if seen {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-f.failed:
			return err
		case <-f.ctx.Done():
			return f.ctx.Err()
		case <-deadline:
			return errors.New("the routers did not see all subclusters within a minute")
		}
	}
}

// Close stops all services: nodes last of all but the ResourceManagers, so
// that none waits for one that is gone.
func (f *federation) Close() {
	for _, r := range f.routers {
		r.stop()
	}
	f.cancel()
	f.farmsWG.Wait()
	for _, p := range f.proxies {
		p.stop()
	}
	for _, rm := range f.rms {
		rm.stop()
	}
}

// entries are the ready-file lines of all daemons.
func (f *federation) entries() (out []readyEntry) {
	for _, r := range f.routers {
		out = append(out, own(r.parts.entry))
	}
	for _, rm := range f.rms {
		out = append(out, own(rm.parts.entry))
	}
	for _, p := range f.proxies {
		out = append(out, own(p.parts.entry))
	}
	return out
}

// queueFile writes the queues of the demo: three teams with guarantees that
// the load is not spread by.
const queueFile = `<?xml version="1.0"?>
<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>default,prod,research</value></property>
  <property><name>yarn.scheduler.capacity.root.default.capacity</name><value>20</value></property>
  <property><name>yarn.scheduler.capacity.root.default.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.default.user-limit-factor</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.capacity</name><value>50</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.user-limit-factor</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.root.research.capacity</name><value>30</value></property>
  <property><name>yarn.scheduler.capacity.root.research.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.research.user-limit-factor</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>0.5</value></property>
  <property><name>yarn.scheduler.capacity.resource-calculator</name><value>org.apache.hadoop.yarn.util.resource.DominantResourceCalculator</value></property>
</configuration>
`

// embeddedSettings are those of a federation that brings its own queues.
func embeddedSettings(dir string, confDir string, defines []string) (*settings.Settings, error) {
	if confDir == "" {
		confDir = filepath.Join(dir, "conf")
		if err := os.MkdirAll(confDir, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(confDir, "capacity-scheduler.xml"), []byte(queueFile), 0o600); err != nil {
			return nil, err
		}
	}
	own := []string{"yarn.scheduler.minimum-allocation-mb=128"}
	s, err := settings.Load(settings.Sources{ConfDir: confDir, Defines: append(own, defines...)})
	if err != nil {
		return nil, usage(err)
	}
	return s, nil
}
