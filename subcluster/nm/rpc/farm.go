// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm"
)

// Config says what a Farm plays. Zero values take the defaults in brackets.
type Config struct {
	Tracker string         // host:port of the ResourceManager's resource tracker
	Nodes   int            // how many
	First   int            // number of the first node, so that farms beside each other differ [0]
	Total   creel.Resource // of each node [8192 MB, 8 cores]
	User    string         // as which the nodes speak to the ResourceManager [yarn]
	Port    int            // of ContainerManagementProtocol; 0 = any
	// PortEach gives each node a port on 127.0.0.1 instead of an address of
	// its own. It is what other systems than Linux always do.
	PortEach bool
	HTTPPort int32 // reported as the node's web port [8042]

	RunTime      time.Duration // of containers that do not say [1 s]
	LocalizeTime time.Duration // before a container runs [0]
	OnStart      Hook
	// Eager sends a heartbeat this soon after a container has ended instead of waiting for
	// the next heartbeat's time. 0 waits, as Hadoop's nodes do.
	Eager       time.Duration
	Connections int           // to the tracker [4]
	MaxInFlight int           // heartbeats on their way at once [512]
	KillDelay   time.Duration // SIGTERM to SIGKILL [250 ms]
	Seed        uint64        // spreads the first heartbeats
	Logger      *slog.Logger
}

// Metrics are counts since the start.
type Metrics struct {
	Heartbeats, HeartbeatErrors, Resyncs, Registered, Started, Finished atomic.Int64
}

// Farm plays simulated nodes: New listens, Run registers them and sends their heartbeats.
type Farm struct {
	cfg     Config
	log     *slog.Logger
	timers  *timers
	metrics Metrics

	clients    []*hrpc.Client
	trackers   []yarnrpc.ResourceTrackerClient
	nodes      []*node
	byID       map[creel.NodeID]*node
	listeners  []net.Listener
	heartbeats chan *node // due for a call
	work       sync.WaitGroup
	ctx        context.Context // of the calls on their way
	ready      chan struct{}
	waiting    atomic.Int64 // nodes that have not registered yet
}

// New checks a Config and listens. It starts no goroutine: call Run, or Close.
func New(cfg Config) (*Farm, error) {
	if cfg.Nodes <= 0 || cfg.First < 0 || cfg.First+cfg.Nodes > maxNodes {
		return nil, fmt.Errorf(
			"nodes: %d beginning with number %d; give 1 to %d in all",
			cfg.Nodes,
			cfg.First,
			maxNodes,
		)
	}
	if cfg.Tracker == "" {
		return nil, errors.New("nodes: the address of the ResourceManager's tracker is not set")
	}
	if cfg.Total.IsZero() {
		cfg.Total = creel.NewResource(8192, 8)
	}
	cfg.User = cmp.Or(cfg.User, "yarn")
	cfg.HTTPPort = cmp.Or(cfg.HTTPPort, 8042)
	cfg.RunTime = cmp.Or(cfg.RunTime, time.Second)
	cfg.Connections = cmp.Or(cfg.Connections, 4)
	cfg.MaxInFlight = cmp.Or(cfg.MaxInFlight, 512)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Farm{
		cfg: cfg, log: cfg.Logger, timers: newTimers(), byID: make(map[creel.NodeID]*node, cfg.Nodes),
		heartbeats: make(chan *node, cfg.Nodes), ready: make(chan struct{}),
	}
	f.waiting.Store(int64(cfg.Nodes))
	ids, listeners, err := listen(cfg)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	f.listeners = listeners
	for _, id := range ids {
		c := nm.Config{ID: id, HTTPPort: cfg.HTTPPort, Total: cfg.Total, Version: "3.4.2", KillDelay: cfg.KillDelay}
		if err := c.Validate(); err != nil {
			f.Close()
			return nil, err
		}
		n := &node{farm: f, m: nm.New(c), pace: nm.Pace{Eager: cfg.Eager}, jobs: map[creel.ContainerID]*job{}}
		f.nodes = append(f.nodes, n)
		f.byID[id] = n
	}
	return f, nil
}

// Close releases what New took, for a Farm on which Run was not called.
func (f *Farm) Close() error {
	var errs []error
	for _, l := range f.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// IDs are the nodes' names.
func (f *Farm) IDs() []creel.NodeID {
	ids := make([]creel.NodeID, len(f.nodes))
	for i, n := range f.nodes {
		ids[i] = n.m.ID()
	}
	return ids
}

// Ready is closed when every node has registered once.
func (f *Farm) Ready() <-chan struct{} { return f.ready }

// Metrics are counts since the start.
func (f *Farm) Metrics() *Metrics { return &f.metrics }

// Run registers the nodes and plays them until the context ends. The nodes then
// vanish, as machines do whose power fails: nothing is unregistered.
func (f *Farm) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f.ctx = ctx
	for range f.cfg.Connections {
		c := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf, Logger: f.log})
		f.clients = append(f.clients, c)
		f.trackers = append(
			f.trackers,
			yarnrpc.NewResourceTrackerClient(c, f.cfg.Tracker, hrpc.Login{User: f.cfg.User}),
		)
	}
	server := hrpc.Config{
		Services: []hrpc.Service{yarnrpc.ContainerManagementProtocolService(&handler{farm: f})},
		Tokens:   f.checkNMToken, ErrorOf: yarnrpc.ErrorOf, Logger: f.log, MaxConnections: 100_000,
	}
	for _, l := range f.listeners {
		s, err := hrpc.NewServer(server)
		if err != nil {
			return err
		}
		f.work.Go(func() {
			if err := s.Run(ctx, l); err != nil {
				stop(fmt.Errorf("nodes: %w", err))
			}
		})
	}
	f.work.Go(func() { f.timers.run(ctx) })
	for i := range f.cfg.MaxInFlight {
		f.work.Go(func() { f.sender(ctx, f.trackers[i%len(f.trackers)]) })
	}
	// Registrations are spread over a second, and with them all later heartbeats.
	rnd := rand.New(rand.NewPCG(f.cfg.Seed, 1))
	start := time.Now()
	for _, n := range f.nodes {
		delay := time.Duration(rnd.Int64N(int64(min(time.Second, time.Duration(len(f.nodes))*time.Millisecond))))
		n.mu.Lock()
		n.wake(start.Add(delay))
		n.mu.Unlock()
	}
	<-ctx.Done()
	for _, c := range f.clients {
		_ = c.Close()
	}
	f.work.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// sender makes the calls of nodes whose time has come, one at a time.
func (f *Farm) sender(ctx context.Context, t yarnrpc.ResourceTrackerClient) {
	for {
		select {
		case n := <-f.heartbeats:
			n.heartbeat(ctx, t)
		case <-ctx.Done():
			return
		}
	}
}

// wake has the node call at a time, if that is earlier than what is set. The
// caller holds the lock.
func (n *node) wake(at time.Time) {
	if n.pace.Wake(at) {
		n.set(at)
	}
}

// set sets a timer that the pace asked for.
func (n *node) set(at time.Time) {
	n.farm.timers.at(at, func(time.Time) {
		n.mu.Lock()
		fire := n.pace.Fire(at)
		n.mu.Unlock()
		if fire {
			n.farm.heartbeats <- n // room for every node, and a node is in it once
		}
	})
}

// soon brings the next heartbeat forward, for a container has ended.
func (n *node) soon(now time.Time) {
	if at, set := n.pace.Hurry(now, n.m.Active()); set {
		n.set(at)
	}
}

// heartbeat makes one call: a registration or a heartbeat.
func (n *node) heartbeat(ctx context.Context, t yarnrpc.ResourceTrackerClient) {
	now := time.Now()
	n.mu.Lock()
	active := n.m.Active()
	var event nm.Event
	var err error
	if active {
		request := n.m.Heartbeat(now)
		n.mu.Unlock()
		var answer *pb.NodeHeartbeatResponseProto
		answer, err = t.NodeHeartbeat(ctx, request)
		n.farm.metrics.Heartbeats.Add(1)
		event = nm.Answered{Answer: answer}
	} else {
		request := n.m.Registration(now)
		n.mu.Unlock()
		var answer *pb.RegisterNodeManagerResponseProto
		answer, err = t.RegisterNodeManager(ctx, request)
		event = nm.Registered{Answer: answer}
	}
	n.mu.Lock()
	n.pace.Ended()
	interval := n.m.Interval()
	var calls []func()
	if err != nil {
		if ctx.Err() == nil {
			n.farm.metrics.HeartbeatErrors.Add(1)
			n.farm.log.Debug("heartbeat failed", "node", n.m.ID().String(), "error", err)
		}
	} else {
		calls, _ = n.locked(time.Now(), event, nil)
		if !active && n.m.Active() {
			n.farm.registered()
		}
	}
	if at, set := n.pace.Next(now, time.Now(), interval, err == nil); set {
		n.set(at)
	}
	n.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

func (f *Farm) registered() {
	f.metrics.Registered.Add(1)
	if f.waiting.Add(-1) == 0 {
		close(f.ready)
	}
}
