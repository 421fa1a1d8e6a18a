// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/internal/workerpool"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// To is the destination of a call and its credentials.
type To struct {
	Member     creel.SubclusterID
	Attempt    creel.AttemptID
	Credential *hrpc.Credential
	Login      *hrpc.RelayedLogin // the AM's login, used instead of a credential
}

// Members makes the calls of ApplicationMasterProtocol to a member. *remote.Remote of amrmproxy/remote implements it.
type Members interface {
	Register(
		context.Context,
		To,
		*yarnpb.RegisterApplicationMasterRequestProto,
	) (*yarnpb.RegisterApplicationMasterResponseProto, error)
	Allocate(context.Context, To, *yarnpb.AllocateRequestProto) (*yarnpb.AllocateResponseProto, error)
	Finish(
		context.Context,
		To,
		*yarnpb.FinishApplicationMasterRequestProto,
	) (*yarnpb.FinishApplicationMasterResponseProto, error)
	// RegisterDistributed and AllocateDistributed make the calls of DistributedSchedulingAMProtocol. From a member that
	// does not serve it, the answer to Register or Allocate is returned.
	RegisterDistributed(
		context.Context,
		To,
		*yarnpb.RegisterApplicationMasterRequestProto,
	) (*yarnpb.RegisterDistributedSchedulingAMResponseProto, error)
	AllocateDistributed(
		context.Context,
		To,
		*yarnpb.DistributedSchedulingAllocateRequestProto,
	) (*yarnpb.DistributedSchedulingAllocateResponseProto, error)
	// Forget drops the state of an attempt that is over.
	Forget(creel.AttemptID)
}

// Config configures a Server.
type Config struct {
	Name    string // of this proxy, for the UAM records
	Driver  amrmproxy.DriverConfig
	Policy  policies.Policy // for queues without a document
	Members Members
	Clients amrmproxy.Clients
	Store   amrmproxy.Store
	Sealer  amrmproxy.Sealer
	// Wanted, if set, is called when Queues has a new queue. It must not block.
	Wanted func()
	// View returns the current view of the federation; it is called before each step.
	View func() *subcluster.View
	// Places returns the current map from hosts to members; it is called before each step. nil: unknown.
	Places func() amrmproxy.Places
	// Issuer makes the tokens of containers that sessions place. nil: members place opportunistic containers.
	Issuer amrmproxy.Issuer

	CallTime    time.Duration // bounds a call to a member, 10 s
	LaunchTime  time.Duration // bounds a launch, 15 s
	StoreTime   time.Duration // bounds reading a record, and saving one, 5 s
	Mailbox     int           // events waiting for one session before its AM is answered "busy", 64
	MaxSessions int           // 100,000
	// Clock is the time for waits and expiry of sessions. Its owner runs it. With nil, pauses of this process count
	// as silence of AMs and members.
	Clock  *pauseclock.Clock
	Logger *slog.Logger // nil: silent
	// Traces receives the spans of applications whose submission was sampled; nil: no spans.
	Traces trace.TracerProvider
}

func (c Config) withDefaults() Config {
	def := func(v *time.Duration, d time.Duration) { *v = cmp.Or(*v, d) }
	def(&c.CallTime, 10*time.Second)
	def(&c.LaunchTime, 15*time.Second)
	def(&c.StoreTime, 5*time.Second)
	c.Mailbox = cmp.Or(c.Mailbox, 64)
	c.MaxSessions = cmp.Or(c.MaxSessions, 100_000)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns an error for the first invalid value.
func (c Config) Validate() error {
	switch {
	case c.Members == nil || c.Clients == nil || c.Store == nil || c.Sealer == nil || c.View == nil:
		return errors.New("proxy: Members, Clients, Store, Sealer and View must be set")
	case c.Mailbox < 0 || c.MaxSessions < 0:
		return errors.New("proxy: Mailbox and MaxSessions must not be negative")
	}
	return c.Driver.Session.Validate()
}

// Stats has counts since the start.
type Stats struct {
	Sessions                         int // now
	Allocates, Errors                uint64
	Launches, LaunchFailures, Drops  uint64
	Returns                          uint64 // released idle UAMs
	Calls, CallErrors, Saves, Busies uint64
	Waits                            waitstats.Histogram // of granted containers, from the AM's ask to the grant
}

type counters struct {
	waitsLock sync.Mutex
	waits     waitstats.Histogram

	allocates, errors, launches, launchFailures, drops, returns, calls, callErrors, saves, busies atomic.Uint64
}

func (c *counters) addWaits(h *waitstats.Histogram) {
	c.waitsLock.Lock()
	defer c.waitsLock.Unlock()
	c.waits.Merge(h)
}

func (c *counters) waited() waitstats.Histogram {
	c.waitsLock.Lock()
	defer c.waitsLock.Unlock()
	return c.waits
}

// Server runs a session for each attempt.
type Server struct {
	cfg     Config
	count   counters
	workers *workerpool.Pool[func()] // for the sessions' calls
	latest  atomic.Pointer[policyView]
	renew   sync.Mutex // guards the creation of a policyView

	mu       sync.Mutex // guards the fields below; locked only for look-ups
	sessions map[creel.AttemptID]*session
	base     context.Context // of Run; nil when it is not running
	wg       sync.WaitGroup
}

// policyView is a view with its parsed policies.
type policyView struct {
	view  *subcluster.View
	table *policies.Table
}

// New makes a Server. Sessions start after Run.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Server{
		cfg:      cfg.withDefaults(),
		sessions: map[creel.AttemptID]*session{},
		workers:  workerpool.New(func(call func()) { call() }),
	}, nil
}

// Run runs sessions until ctx ends, then stops them at once. Their records are in the store, and the next proxy
// continues from them. A Server runs only once.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.base = ctx
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.base = nil
	s.mu.Unlock()
	cancel()
	s.wg.Wait() // sessions wait for their calls
	s.workers.Close()
	return nil
}

// Stats may be called at any time.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sessions)
	s.mu.Unlock()
	c := &s.count
	return Stats{
		Sessions:       n,
		Allocates:      c.allocates.Load(),
		Errors:         c.errors.Load(),
		Launches:       c.launches.Load(),
		LaunchFailures: c.launchFailures.Load(),
		Drops:          c.drops.Load(),
		Returns:        c.returns.Load(),
		Calls:          c.calls.Load(),
		CallErrors:     c.callErrors.Load(),
		Saves:          c.saves.Load(),
		Busies:         c.busies.Load(),
		Waits:          c.waited(),
	}
}

// Caller is an AM, identified by its token.
type Caller struct {
	Attempt    creel.AttemptID
	Home       creel.SubclusterID
	Credential *hrpc.Credential // the token with its password, for calls to home
	// Login is the AM's login at its home, for a token whose password only home has. It ends with the AM's
	// connection.
	Login *hrpc.RelayedLogin
}

// Call passes an AM's call to its session. reply is called once, from any goroutine. Call never blocks.
func (s *Server) Call(who Caller, what amrmproxy.FromAM, reply func(proto.Message, error)) {
	if what.Allocate != nil {
		s.count.allocates.Add(1)
	}
	if err := s.deliver(who, message{event: what, from: &who, reply: reply}); err != nil {
		reply(nil, err)
	}
}

// deliver adds a call to the mailbox of its session. It has the lock. So a session that ends either does not get the
// call or answers it.
func (s *Server) deliver(who Caller, m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.session(who)
	if err != nil {
		return err
	}
	select {
	case d.mailbox <- m:
		return nil
	default:
		s.count.busies.Add(1)
		return &creel.Error{
			Kind: creel.ErrBusy,
			What: "too many calls of " + who.Attempt.String() + " are waiting",
			Try:  "try again",
		}
	}
}

// session returns the session of an attempt, and starts it if needed. The caller must have the lock.
func (s *Server) session(who Caller) (*session, error) {
	if d := s.sessions[who.Attempt]; d != nil {
		return d, nil
	}
	if s.base == nil {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "the proxy is not running",
			Try:  "try again, or another proxy",
		}
	}
	if len(s.sessions) >= s.cfg.MaxSessions {
		return nil, &creel.Error{
			Kind: creel.ErrBusy,
			What: "the proxy has reached its limit of attempts",
			Try:  "try again, or raise its limit",
		}
	}
	var others []creel.AttemptID
	for a := range s.sessions {
		if a.Application == who.Attempt.Application {
			others = append(others, a)
		}
	}
	earlier, err := amrmproxy.Supersede(who.Attempt, others)
	if err != nil {
		return nil, err
	}
	d := newSession(s, who)
	for _, a := range earlier {
		d.earlier = append(d.earlier, s.sessions[a])
	}
	s.sessions[who.Attempt] = d
	ctx, cancel := context.WithCancel(s.base)
	d.cancel = cancel
	s.wg.Go(func() { d.run(ctx) })
	return d, nil
}

func (s *Server) forget(d *session) {
	s.mu.Lock()
	if s.sessions[d.attempt] == d {
		delete(s.sessions, d.attempt)
	}
	s.mu.Unlock()
}

// Queues returns the leaf names of the queues of all sessions, sorted. Sessions need the metrics of these queues.
func (s *Server) Queues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	leaves := map[string]bool{}
	for _, d := range s.sessions {
		if d.leaf != "" {
			leaves[d.leaf] = true
		}
	}
	return slices.Sorted(maps.Keys(leaves))
}

// wants adds a session's queue to Queues.
func (s *Server) wants(d *session, leaf string) {
	s.mu.Lock()
	known := false
	for _, other := range s.sessions {
		known = known || other.leaf == leaf
	}
	d.leaf = leaf
	s.mu.Unlock()
	if !known && s.cfg.Wanted != nil {
		s.cfg.Wanted()
	}
}

// places returns the current map from hosts to members.
func (s *Server) places() amrmproxy.Places {
	if s.cfg.Places == nil {
		return nil
	}
	return s.cfg.Places()
}

// policyView returns the current view with its parsed policies.
func (s *Server) policyView() *policyView {
	view := s.cfg.View()
	old := s.latest.Load()
	if old != nil && old.view == view {
		return old
	}
	s.renew.Lock()
	defer s.renew.Unlock()
	if old = s.latest.Load(); old != nil && old.view == view {
		return old
	}
	table := policies.EmptyTable(s.cfg.Policy)
	if old != nil {
		table = old.table
	}
	if view != nil {
		before := len(table.Bad())
		if table = policies.NewTable(table, view.Policies); len(table.Bad()) > before {
			s.cfg.Logger.Warn("ignored unreadable policies", "bad", table.Bad())
		}
	}
	fresh := &policyView{view, table}
	s.latest.Store(fresh)
	return fresh
}

// End informs a session that its application is over at home, so that its UAMs end at once. It does nothing if this
// proxy has no such session.
func (s *Server) End(app creel.ApplicationID, why string) {
	s.each(app, func(d *session) { d.post(message{event: amrmproxy.Ended{Why: why}}) })
}

// Why returns the reason of the last split of each group of asks of an application.
func (s *Server) Why(ctx context.Context, app creel.ApplicationID) (out []policies.Reason) {
	s.each(app, func(d *session) {
		answer := make(chan []policies.Reason, 1)
		d.post(message{look: func(s *amrmproxy.Session) {
			var reasons []policies.Reason
			if s != nil { // otherwise its record is still being read
				reasons = s.Reasons()
			}
			answer <- reasons
		}})
		select {
		case r := <-answer:
			out = append(out, r...)
		case <-d.gone:
		case <-ctx.Done():
		}
	})
	return out
}

func (s *Server) each(app creel.ApplicationID, do func(*session)) {
	s.mu.Lock()
	var found []*session
	for a, d := range s.sessions {
		if a.Application == app {
			found = append(found, d)
		}
	}
	s.mu.Unlock()
	for _, d := range found {
		do(d)
	}
}
