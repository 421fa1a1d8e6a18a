// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/workers"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// To says to whom a call goes and as whom.
type To struct {
	Member     creel.SubclusterID
	Attempt    creel.AttemptID
	Credential *hrpc.Credential
}

// Masters makes the calls of ApplicationMasterProtocol to a member. *Remote is one.
type Masters interface {
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
	// Forget lets go of what is kept for an attempt that is over.
	Forget(creel.AttemptID)
}

// Launcher starts and kills unmanaged twins. *Remote is one.
type Launcher interface {
	Launch(context.Context, amrmproxy.Launch) (amrmproxy.Launched, error)
	// Drop kills; an application that is not there or has ended is success.
	Drop(context.Context, amrmproxy.Drop) error
	// Over tells whether the application has ended at its home.
	Over(ctx context.Context, home creel.SubclusterID, app creel.ApplicationID) (bool, error)
}

// Spreads is what a proxy needs of the store.
type Spreads interface {
	SaveSpread(ctx context.Context, s statestore.Spread) (revision int64, err error)
	SpreadsOf(ctx context.Context, app creel.ApplicationID) ([]statestore.Spread, error)
	DropSpread(ctx context.Context, a creel.AttemptID) error
}

// Config of a Proxy.
type Config struct {
	Name     string // of this proxy, for the spread records
	Session  amrmproxy.Config
	Policy   policies.Policy // of queues that no document holds for
	Masters  Masters
	Launcher Launcher
	Spreads  Spreads
	// Secrets are the keys that seal spread records, newest first.
	Secrets func(context.Context) ([]statestore.Key, error)
	// View is the federation as it is now; it is read before each step.
	View func() *subcluster.View
	// Where finds the members that have a host or rack; may be nil.
	Where policies.Where

	CallTime    time.Duration // bounds a call to a member, 10 s
	LaunchTime  time.Duration // bounds a launch, 15 s
	StoreTime   time.Duration // bounds a call to the store, 5 s
	SilentAfter time.Duration // a master silent for so long has its home asked whether it is over, 15 s
	Mailbox     int           // events waiting for one session before its master is told "busy", 64
	MaxSessions int           // 100,000
	Linger      time.Duration // how long an ended session repeats its last answer, 1 min
	Logger      *slog.Logger  // nil: silent
}

func (c Config) withDefaults() Config {
	def := func(v *time.Duration, d time.Duration) { *v = cmp.Or(*v, d) }
	def(&c.CallTime, 10*time.Second)
	def(&c.LaunchTime, 15*time.Second)
	def(&c.StoreTime, 5*time.Second)
	def(&c.SilentAfter, 15*time.Second)
	def(&c.Linger, time.Minute)
	c.Mailbox = cmp.Or(c.Mailbox, 64)
	c.MaxSessions = cmp.Or(c.MaxSessions, 100_000)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate says what in a Config cannot work.
func (c Config) Validate() error {
	switch {
	case c.Masters == nil || c.Launcher == nil || c.Spreads == nil || c.Secrets == nil || c.View == nil:
		return errors.New("proxy: Masters, Launcher, Spreads, Secrets and View are needed")
	case c.Mailbox < 0 || c.MaxSessions < 0:
		return errors.New("proxy: Mailbox and MaxSessions must not be negative")
	}
	return c.Session.Validate()
}

// Stats are counts since the start.
type Stats struct {
	Sessions                         int // now
	Allocates, Errors                uint64
	Launches, LaunchFailures, Drops  uint64
	Calls, CallErrors, Saves, Busies uint64
}

type counters struct {
	allocates, errors, launches, launchFailures, drops, calls, callErrors, saves, busies atomic.Uint64
}

// Proxy drives a session for each attempt.
type Proxy struct {
	cfg   Config
	count counters
	hands *workers.Pool[func()] // they make the sessions' calls
	seen  atomic.Pointer[picture]
	see   sync.Mutex // guards the making of a new picture

	mu       sync.Mutex // guards what follows; held for look-ups only
	sessions map[creel.AttemptID]*driver
	base     context.Context // of Run; nil when it is not running
	wg       sync.WaitGroup
}

// picture is a view with its policies read.
type picture struct {
	view *subcluster.View
	book *policies.Table
}

// New makes a Proxy. It starts nothing: call Run.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Proxy{
		cfg:      cfg.withDefaults(),
		sessions: map[creel.AttemptID]*driver{},
		hands:    workers.New(func(call func()) { call() }),
	}, nil
}

// Run lets sessions live until ctx ends, then stops them where they are: their
// records are in the store, and the next proxy carries on. A Proxy runs once.
func (p *Proxy) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	p.base = ctx
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.base = nil
	p.mu.Unlock()
	cancel()
	p.wg.Wait() // and with the sessions their calls
	p.hands.Close()
	return nil
}

// Stats may be called at any time.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	n := len(p.sessions)
	p.mu.Unlock()
	c := &p.count
	return Stats{
		Sessions:       n,
		Allocates:      c.allocates.Load(),
		Errors:         c.errors.Load(),
		Launches:       c.launches.Load(),
		LaunchFailures: c.launchFailures.Load(),
		Drops:          c.drops.Load(),
		Calls:          c.calls.Load(),
		CallErrors:     c.callErrors.Load(),
		Saves:          c.saves.Load(),
		Busies:         c.busies.Load(),
	}
}

// Caller is a master as its token tells.
type Caller struct {
	Attempt    creel.AttemptID
	Home       creel.SubclusterID
	Credential *hrpc.Credential // the token with its password, to speak to home with
}

// Call hands a master's call to its session. reply is called once, from any
// goroutine. Call never blocks.
func (p *Proxy) Call(who Caller, what amrmproxy.FromAM, reply func(proto.Message, error)) {
	p.count.allocates.Add(1)
	if err := p.deliver(who, letter{event: what, from: &who, reply: reply}); err != nil {
		reply(nil, err)
	}
}

// deliver puts a call into the mailbox of its session. It holds the lock, so
// that a session that ends has either not got the call or answers it.
func (p *Proxy) deliver(who Caller, l letter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, err := p.session(who)
	if err != nil {
		return err
	}
	select {
	case d.box <- l:
		return nil
	default:
		p.count.busies.Add(1)
		return &creel.Error{
			Kind: creel.ErrBusy,
			What: "too many calls of " + who.Attempt.String() + " are waiting",
			Try:  "try again",
		}
	}
}

// session finds the driver of an attempt, or starts it. The lock is held.
func (p *Proxy) session(who Caller) (*driver, error) {
	if d := p.sessions[who.Attempt]; d != nil {
		return d, nil
	}
	if p.base == nil {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "the proxy is not running",
			Try:  "try again, or another proxy",
		}
	}
	if len(p.sessions) >= p.cfg.MaxSessions {
		return nil, &creel.Error{
			Kind: creel.ErrBusy,
			What: "the proxy has no room for another attempt",
			Try:  "try again, or raise its limit",
		}
	}
	d := &driver{
		p:       p,
		attempt: who.Attempt,
		home:    who.Home,
		box:     make(chan letter, p.cfg.Mailbox),
		gone:    make(chan struct{}),
		calls:   map[uint64]func(proto.Message, error){},
		log:     p.cfg.Logger.With("attempt", who.Attempt.String()),
	}
	for a, other := range p.sessions {
		if a.Application == who.Attempt.Application {
			d.before = append(d.before, other)
		}
	}
	p.sessions[who.Attempt] = d
	ctx := p.base
	p.wg.Go(func() { d.run(ctx) })
	return d, nil
}

func (p *Proxy) forget(d *driver) {
	p.mu.Lock()
	if p.sessions[d.attempt] == d {
		delete(p.sessions, d.attempt)
	}
	p.mu.Unlock()
}

// now is the present picture of the federation.
func (p *Proxy) now() *picture {
	view := p.cfg.View()
	old := p.seen.Load()
	if old != nil && old.view == view {
		return old
	}
	p.see.Lock()
	defer p.see.Unlock()
	if old = p.seen.Load(); old != nil && old.view == view {
		return old
	}
	book := policies.EmptyTable(p.cfg.Policy)
	if old != nil {
		book = old.book
	}
	if view != nil {
		before := len(book.Bad())
		if book = policies.NewTable(book, view.Policies); len(book.Bad()) > before {
			p.cfg.Logger.Warn("policies that cannot be read", "bad", book.Bad())
		}
	}
	fresh := &picture{view, book}
	p.seen.Store(fresh)
	return fresh
}

// End tells a session that its application is over at home, so that its twins
// go at once. It is nothing if there is no such session here.
func (p *Proxy) End(app creel.ApplicationID, why string) {
	p.each(app, func(d *driver) { d.post(letter{event: amrmproxy.Ended{Why: why}}) })
}

// Why are the reasons of the last split of each group of asks of an application.
func (p *Proxy) Why(ctx context.Context, app creel.ApplicationID) (out []policies.Reason) {
	p.each(app, func(d *driver) {
		answer := make(chan []policies.Reason, 1)
		d.post(letter{look: func(s *amrmproxy.Session) { answer <- s.Reasons() }})
		select {
		case r := <-answer:
			out = append(out, r...)
		case <-d.gone:
		case <-ctx.Done():
		}
	})
	return out
}

func (p *Proxy) each(app creel.ApplicationID, do func(*driver)) {
	p.mu.Lock()
	var found []*driver
	for a, d := range p.sessions {
		if a.Application == app {
			found = append(found, d)
		}
	}
	p.mu.Unlock()
	for _, d := range found {
		do(d)
	}
}
