// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
)

// Config describes the nodes of a Farm. Zero values mean the defaults in brackets.
type Config struct {
	Total    creel.Resource // of each node [8192 MB, 8 cores]
	HTTPPort int32          // reported as the node's web port [8042]

	RunTime      time.Duration // of containers without one [1 s]
	LocalizeTime time.Duration // before a container runs [0]
	OnStart      Hook
	// Eager is the time between a container's end and the heartbeat that reports it. 0 waits for the next regular
	// heartbeat, like Hadoop's nodes.
	Eager       time.Duration
	MaxInFlight int           // concurrent calls to the tracker [512]
	KillDelay   time.Duration // SIGTERM to SIGKILL [250 ms]
	Seed        uint64        // spreads the first heartbeats
	Queue       queue.Config  // for opportunistic containers [none]
	// Measures makes nodes report the drawn use of their containers; otherwise they report the sizes as use.
	Measures       bool
	Overallocation overallocate.Config // of what containers do not use [none]
	Logger         *slog.Logger
}

// Tracker calls the ResourceManager, like ResourceTracker's client. Calls end with their context.
type Tracker interface {
	RegisterNodeManager(
		context.Context,
		*pb.RegisterNodeManagerRequestProto,
	) (*pb.RegisterNodeManagerResponseProto, error)
	NodeHeartbeat(context.Context, *pb.NodeHeartbeatRequestProto) (*pb.NodeHeartbeatResponseProto, error)
}

// Metrics are counts since the start.
type Metrics struct {
	Heartbeats, HeartbeatErrors, Resyncs, Registered, Started, Finished atomic.Int64
}

// Farm simulates nodes: Run registers them and sends their heartbeats.
type Farm struct {
	cfg     Config
	log     *slog.Logger
	timers  *timers
	metrics Metrics

	nodes      []*Node
	byID       map[creel.NodeID]*Node
	heartbeats chan *Node // due for a call
	ready      chan struct{}
	waiting    atomic.Int64 // nodes that have not registered yet
}

// New makes nodes with these names. It starts no goroutine.
func New(cfg Config, ids []creel.NodeID) (*Farm, error) {
	if cfg.Total.IsZero() {
		cfg.Total = creel.NewResource(8192, 8)
	}
	cfg.HTTPPort = cmp.Or(cfg.HTTPPort, 8042)
	cfg.RunTime = cmp.Or(cfg.RunTime, time.Second)
	cfg.MaxInFlight = cmp.Or(cfg.MaxInFlight, 512)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Farm{
		cfg: cfg, log: cfg.Logger, timers: newTimers(), byID: make(map[creel.NodeID]*Node, len(ids)),
		heartbeats: make(chan *Node, len(ids)), ready: make(chan struct{}),
	}
	f.waiting.Store(int64(len(ids)))
	for _, id := range ids {
		c := nm.Config{
			ID: id, HTTPPort: cfg.HTTPPort, Total: cfg.Total, Version: "3.4.2", KillDelay: cfg.KillDelay,
			Queue: cfg.Queue, Overallocation: cfg.Overallocation,
		}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		n := &Node{farm: f, m: nm.New(c), pace: nm.Pace{Eager: cfg.Eager}, jobs: map[creel.ContainerID]*job{}}
		f.nodes = append(f.nodes, n)
		f.byID[id] = n
	}
	return f, nil
}

// IDs are the nodes' names.
func (f *Farm) IDs() []creel.NodeID {
	ids := make([]creel.NodeID, len(f.nodes))
	for i, n := range f.nodes {
		ids[i] = n.m.ID()
	}
	return ids
}

// Node returns the node with a name, nil if the farm has none.
func (f *Farm) Node(id creel.NodeID) *Node { return f.byID[id] }

// Ready is closed when every node has registered once.
func (f *Farm) Ready() <-chan struct{} { return f.ready }

// Metrics are counts since the start.
func (f *Farm) Metrics() *Metrics { return &f.metrics }

// Run registers the nodes and simulates them until the context ends; they share the trackers. Then the nodes vanish
// like machines in a power failure: none unregisters.
func (f *Farm) Run(ctx context.Context, trackers []Tracker) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { f.timers.run(ctx) })
	for i := range f.cfg.MaxInFlight {
		work.Go(func() { f.sender(ctx, trackers[i%len(trackers)]) })
	}
	// Registrations are spread over a second, and so are all later heartbeats.
	rnd := rand.New(rand.NewPCG(f.cfg.Seed, 1))
	start := time.Now()
	for _, n := range f.nodes {
		delay := time.Duration(rnd.Int64N(int64(min(time.Second, time.Duration(len(f.nodes))*time.Millisecond))))
		n.mu.Lock()
		n.wake(start.Add(delay))
		n.mu.Unlock()
	}
	<-ctx.Done()
}

// sender makes the due calls of nodes, one at a time.
func (f *Farm) sender(ctx context.Context, t Tracker) {
	for {
		select {
		case n := <-f.heartbeats:
			n.heartbeat(ctx, t)
		case <-ctx.Done():
			return
		}
	}
}

// wake makes the node call at a time, if that is earlier than the set time. The caller holds the lock.
func (n *Node) wake(at time.Time) {
	if n.pace.Wake(at) {
		n.set(at)
	}
}

// set sets a timer for the pace.
func (n *Node) set(at time.Time) {
	n.farm.timers.at(at, func(time.Time) {
		n.mu.Lock()
		fire := n.pace.Fire(at)
		n.mu.Unlock()
		if fire {
			n.farm.heartbeats <- n // it has space for every node, and each node is in it at most once
		}
	})
}

// soon makes the next heartbeat earlier, because a container has ended.
func (n *Node) soon(now time.Time) {
	if at, set := n.pace.Hurry(now, n.m.Active()); set {
		n.set(at)
	}
}

// heartbeat makes one call: a registration or a heartbeat.
func (n *Node) heartbeat(ctx context.Context, t Tracker) {
	now := time.Now()
	n.mu.Lock()
	active := n.m.Active()
	var event nm.Event
	var err error
	var calls []func()
	if active {
		if n.farm.cfg.Measures {
			calls, _ = n.locked(now, n.measure(now), nil)
		}
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
	if err != nil {
		if ctx.Err() == nil {
			n.farm.metrics.HeartbeatErrors.Add(1)
			n.farm.log.Debug("heartbeat failed", "node", n.m.ID().String(), "error", err)
		}
	} else {
		calls, _ = n.locked(time.Now(), event, calls)
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
