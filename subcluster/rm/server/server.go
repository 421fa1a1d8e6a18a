// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/renewal"
)

// Version is the Hadoop release of the protocols; nodes and reports get it as this ResourceManager's version.
const Version = "3.4.2"

// Server is a ResourceManager without its protocols: New opens its journal, Run
// serves.
type Server struct {
	cfg   Config
	log   *slog.Logger
	start time.Time // identifies this process to nodes, in ms

	// The owner's state: see owner.go.
	owner      ownership
	box        mailbox
	durability durability
	reads      int                            // events of this batch that only queried
	awake      pauseclock.Watch               // detects pauses of this process
	wall       func(read time.Time) time.Time // maps a reading to the wall clock's time; nil: unchanged. Tests set it
	ahead      time.Duration                  // of the wall clock, as last seen
	meta       meta                           // as in the journal

	answers chan []func() // to the responders
	stopped chan struct{} // closed when the machine has no owner any more
	ready   chan struct{}

	changes atomic.Uint64 // see Stamp
	moves   atomic.Uint64 // see Moves
	nextApp atomic.Int32
	metrics Metrics

	conf schedConf

	// Drains are the hosts that administrators took out by calls.
	Drains *Drains
	// Renewer keeps the tokens of applications valid until they end.
	Renewer *renewal.Renewer
	// Also the owner's.
	processors processors
	access     *access
	secrets    *secrets
	tokens     *delegation
	launcher   *launcher
	nodes      *nodes
	documents  documents
	reports    reports
	ended      endedReports
	traces     traces
	addresses  atomic.Pointer[Addresses]
	drained    atomic.Pointer[func() string]
}

// Addresses are the host:port pairs at which the protocols are served.
type Addresses struct{ Client, Scheduler, Tracker, Admin, Web string }

// Metrics are counts since the start, read without the owner.
type Metrics struct {
	Heartbeats, Allocates, Submissions, Launches, LaunchFailures, Kills, Preempted atomic.Int64
	// Paused is the time in which the process did not run, in ns.
	Paused atomic.Int64
	// Times that the machine took for a sample of the calls.
	AllocateTimes, HeartbeatTimes Sample
}

// Sample is the sum of some durations. Measuring each call would slow the machine's owner.
type Sample struct{ count, nanos atomic.Uint64 }

// sampled is the number of calls of which one is measured. The first call is.
const sampled = 16

// Load returns the number of measured durations, and their sum.
func (s *Sample) Load() (n uint64, sum time.Duration) {
	return s.count.Load(), time.Duration(s.nanos.Load())
}

// begin returns the end of a measurement of the n-th call, nil if that call is not measured.
func (s *Sample) begin(n int64) func() {
	if n%sampled != 1 {
		return nil
	}
	began := time.Now()
	return func() {
		s.nanos.Add(uint64(time.Since(began)))
		s.count.Add(1)
	}
}

// New checks a Config and opens and replays the journal. It starts no
// goroutine: call Run, or Close.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	now := time.Now()
	s := &Server{
		cfg:     cfg,
		log:     cfg.Logger,
		start:   now,
		answers: make(chan []func(), 256),
		stopped: make(chan struct{}),
		ready:   make(chan struct{}),
		box:     mailbox{limit: cfg.Mailbox, wake: make(chan struct{}, 1)},
		access:  newAccess(cfg),
	}
	s.Drains = &Drains{s: s}
	s.nodes = newNodes(cfg, s.Drains)
	s.traces.provider = cfg.Traces
	s.addresses.Store(&Addresses{Web: "127.0.0.1:8088"})
	s.secrets = newSecrets(now, cfg)
	s.tokens = newDelegation(now, cfg)
	if cfg.Hosts != nil {
		// As in Hadoop, the ResourceManager starts without lists that it cannot read, and a refresh that cannot read
		// them fails.
		hosts, err := cfg.Hosts()
		if err != nil {
			s.log.Warn("failed to read the host lists: every host may register", "error", err)
			hosts = Hosts{}
		}
		s.nodes.setHosts(hosts)
	}
	s.launcher = newLauncher(s)
	tokens := cfg.Renewals
	tokens.Servers, tokens.Log = renewalServers(s, cfg), cfg.Logger
	s.Renewer = renewal.New(tokens)
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open loads the journal and makes the machine.
func (s *Server) open() error {
	mc := s.cfg.Machine
	mc.AdminACL, mc.ACLs = s.cfg.AdminACL, s.cfg.ACLs
	if s.cfg.Outside != nil {
		mc.Rights = s.access.rights.decide
	}
	mc.Volatile = s.cfg.Dir == "" && s.cfg.State == nil
	var k journalContent
	if !mc.Volatile {
		var err error
		if err = s.durability.open(&s.cfg, s.roomChanged); err != nil {
			return err
		}
		if k, err = replay(s.durability.log, &s.owner.Records); err != nil {
			return err
		}
	}
	if s.cfg.FirstEpoch != nil {
		first, err := s.cfg.FirstEpoch(k.meta.First, k.meta.Starts > 0)
		if err != nil {
			return err
		}
		s.cfg.Epoch, k.meta.First = first, first
	}
	mc.Epoch, mc.FirstEpoch = s.cfg.Epoch, s.cfg.Epoch
	s.start = rm.StartOf(s.start, s.cfg.Epoch, k.meta.Started)
	if !mc.Volatile {
		if mc.Epoch += k.meta.Starts; mc.Epoch >= 1<<23 {
			return fmt.Errorf("resource manager: epoch %d does not fit into container ids", mc.Epoch)
		}
		if k.secrets != nil {
			if err := s.secrets.restore(s.cfg, s.start, k.secrets); err != nil {
				return err
			}
		}
		if err := s.tokens.restore(s.cfg, k.tokenKeys, k.tokens); err != nil {
			return err
		}
		k.meta.Starts++
		k.meta.Started = s.start
		s.meta = k.meta
		if err := s.putStart(k.meta); err != nil {
			return err
		}
	}
	s.Drains.byHost = k.drains
	if err := s.openConf(&k.conf, &mc); err != nil {
		return err
	}
	var err error
	mc.ClusterTimestamp, s.secrets.rm = s.start.UnixMilli(), s.start.UnixMilli()
	s.secrets.epoch, s.owner.Volatile = mc.Epoch, mc.Volatile
	if s.owner.Machine, err = rm.New(mc); err != nil {
		return err
	}
	if r := k.recover; r != nil && len(r.Apps)+len(r.Disowned) > 0 {
		if err := s.owner.Machine.Recover(s.now(time.Now()), r); err != nil {
			return fmt.Errorf("resource manager: recovering %d applications: %w", len(r.Apps), err)
		}
		for i := range r.Apps {
			s.secrets.recovered(&r.Apps[i])
			if !r.Apps[i].State.Ended() {
				sub := &r.Apps[i].Submission
				c := codec.ContextOf(sub.Context)
				s.Renewer.Hold(sub.ID, sub.User, c.GetAmContainerSpec().GetTokens(), c.GetCancelTokensWhenComplete())
			}
		}
		s.traces.resume(s.owner.Machine)
	}
	return nil
}

// SetDrained sets the function that returns the reason for rejecting routers' new applications, empty if they are
// accepted.
func (s *Server) SetDrained(why func() string) { s.drained.Store(&why) }

// SetAddresses sets the host:port of each protocol. Empty ones keep their value.
func (s *Server) SetAddresses(a Addresses) {
	for {
		old := s.addresses.Load()
		next := *old
		for _, f := range []struct {
			to   *string
			from string
		}{
			{&next.Client, a.Client},
			{&next.Scheduler, a.Scheduler},
			{&next.Tracker, a.Tracker},
			{&next.Admin, a.Admin},
			{&next.Web, a.Web},
		} {
			if f.from != "" {
				*f.to = f.from
			}
		}
		if s.addresses.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Addresses returns the protocols' addresses as set by SetAddresses.
func (s *Server) Addresses() Addresses { return *s.addresses.Load() }

// Cluster returns the part of reports that describes the cluster.
func (s *Server) Cluster() codec.Cluster {
	return codec.Cluster{ID: s.cfg.ClusterID, Web: s.addresses.Load().Web, Proxy: s.cfg.WebProxy, TLS: s.cfg.WebTLS}
}

// Started returns this process's start time by rm.StartOf; its milliseconds identify the process to nodes and are the
// timestamp in new application ids.
func (s *Server) Started() time.Time { return s.start }

// FirstEpoch returns the epoch of the first start, the lowest in this ResourceManager's container ids.
func (s *Server) FirstEpoch() int64 { return s.cfg.Epoch }

// ClusterID returns the configured name of the cluster.
func (s *Server) ClusterID() string { return s.cfg.ClusterID }

// MachineConfig returns the configuration of the machine.
func (s *Server) MachineConfig() rm.Config { return s.cfg.Machine }

// ResourceTypes returns the configured resource types beyond memory and cores.
func (s *Server) ResourceTypes() []creel.ResourceType { return s.cfg.Machine.ResourceTypes }

// Logger returns the server's logger.
func (s *Server) Logger() *slog.Logger { return s.log }

// Metrics returns counts since the start.
func (s *Server) Metrics() *Metrics { return &s.metrics }

// Ready is closed once the protocols are served.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Close releases the resources of New, for a Server on which Run was not called.
func (s *Server) Close() error {
	if s.durability.log == nil {
		return nil
	}
	return s.durability.log.Close()
}

// Run serves until the context ends, then drains and returns nil; or it returns the first failure. The protocols run
// within it: each serves until its context ends.
//
// The order of the end: protocols, launcher and clockwork; then the owner, whose last responses the responders send;
// finally the journal.
func (s *Server) Run(ctx context.Context, protocols ...func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := func(err error) {
		if err != nil {
			stop(err)
		}
	}

	journalCtx, stopJournal := context.WithCancel(context.WithoutCancel(ctx))
	defer stopJournal()
	var last sync.WaitGroup
	if s.durability.log != nil {
		last.Go(func() { ended(s.durability.log.Run(journalCtx)) })
		if err := s.commitStart(ctx); err != nil {
			stopJournal()
			last.Wait()
			return err
		}
	}

	ownerCtx, stopOwner := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOwner()
	var middle, responders sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		responders.Go(s.responder)
	}
	middle.Go(func() { ended(s.own(ownerCtx)) })

	var first sync.WaitGroup
	for _, serve := range protocols {
		first.Go(func() { ended(serve(ctx)) })
	}
	first.Go(func() { s.launcher.run(ctx) })
	first.Go(func() { s.clockwork(ctx) })
	first.Go(func() { s.Renewer.Run(ctx) })
	close(s.ready)
	s.log.Info("resource manager serves", "addresses", s.Addresses(), "identifier", s.start.UnixMilli())

	<-ctx.Done()
	first.Wait()
	stopOwner()
	middle.Wait()
	close(s.answers)
	responders.Wait()
	stopJournal()
	last.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// clockwork does the periodic work that no event causes: master keys, and the heartbeat interval.
func (s *Server) clockwork(ctx context.Context) {
	every := min(s.cfg.KeyRoll/20+time.Millisecond, time.Second)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = s.box.post(func(m *rm.Machine, now time.Time) func() {
				s.rollKeys(m, now)
				n := m.Cluster().Nodes
				s.nodes.pace(s.cfg, n[creel.NodeRunning]+n[creel.NodeUnhealthy]+n[creel.NodeDecommissioning])
				return nil
			})
		case <-ctx.Done():
			return
		}
	}
}

// rollKeys advances the time of keys and tokens, and saves the changes.
func (s *Server) rollKeys(m *rm.Machine, now time.Time) {
	changed, nmActive := s.secrets.step(now)
	if nmActive {
		m.ForgetNMTokens(now)
	}
	if s.tokens.step(now, &s.durability.tx) || changed {
		if err := s.putSecrets(); err != nil {
			s.fail(err)
		}
	}
}
