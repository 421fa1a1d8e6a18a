// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Server renews and cancels tokens of a kind. An error of kind ErrRejected is final.
type Server interface {
	Renew(ctx context.Context, t token.Token) (expires time.Time, err error)
	Cancel(ctx context.Context, t token.Token) error
}

// Obtainer obtains tokens.
type Obtainer interface {
	// Obtain returns a token of another one's kind and service for a user, with this ResourceManager as its renewer.
	Obtain(ctx context.Context, like token.Token, user string) (token.Token, error)
}

// ErrRejected is the kind of a server's answer that it will repeat.
var ErrRejected = errors.New("the token is rejected")

// Final marks an error that a server of delegation tokens will repeat as ErrRejected: the token is unknown there, or is
// another user's.
func Final(err error) error {
	if errors.Is(err, creel.ErrInvalidToken) || errors.Is(err, creel.ErrNotPermitted) {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}

// Bounds of the calls.
const (
	parallel = 8                // at a time
	callTime = 20 * time.Second // of each
)

// Config is the configuration of a Renewer.
type Config struct {
	Servers map[string]Server // by kind of token
	// Obtains replaces tokens that cannot be renewed, of kinds whose server is an Obtainer.
	Obtains bool
	// Default has the kind and the service of the token that each application needs; zero: there is none.
	Default token.Token
	// Keep is how long the tokens of an ended application are kept, in which nodes upload its logs.
	Keep time.Duration
	Log  *slog.Logger
}

// Renewer keeps tokens valid. Its methods are safe for concurrent use.
type Renewer struct {
	c Config

	// Failures counts failed calls for a valid token.
	Failures          atomic.Int64
	renewed, obtained atomic.Int64
	system            atomic.Pointer[System]

	mu   sync.Mutex // never held during a call
	book *Book
	wake chan struct{}
}

// System are the tokens for nodes.
type System struct {
	// Number changes with each token. Nodes return the number of the tokens that they have.
	Number int64
	// Apps are the applications with tokens that were obtained here.
	Apps []*yarnpb.SystemCredentialsForAppsProto
}

// New makes a Renewer. The caller must run it.
func New(c Config) *Renewer {
	r := &Renewer{c: c, book: NewBook(), wake: make(chan struct{}, 1)}
	if c.Obtains {
		r.book.Default = c.Default
		r.book.Obtains = func(kind string) bool {
			_, can := c.Servers[kind].(Obtainer)
			return can
		}
	}
	return r
}

// Renewed returns the number of renewals so far.
func (r *Renewer) Renewed() int64 { return r.renewed.Load() }

// Obtained returns the number of tokens obtained so far.
func (r *Renewer) Obtained() int64 { return r.obtained.Load() }

// System returns the tokens for a node that has those of a number, and the number to send to it. A node needs the
// tokens of all applications: a container may start there before its next heartbeat.
func (r *Renewer) System(known int64) (apps []*yarnpb.SystemCredentialsForAppsProto, number int64) {
	s := r.system.Load()
	switch {
	case s == nil:
		return nil, 0
	case s.Number == known:
		return nil, s.Number
	}
	return s.Apps, s.Number
}

// Held returns the number of tokens.
func (r *Renewer) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.Len()
}

// Hold adds an application of a user with its encoded credentials. Tokens of other kinds, and those that name no
// renewer, are not renewed, and neither is anything that cannot be read.
func (r *Renewer) Hold(app creel.ApplicationID, user string, credentials []byte, cancel bool) {
	if len(r.c.Servers) == 0 {
		return
	}
	var c token.Credentials
	if len(credentials) > 0 {
		var err error
		if c, err = token.ParseCredentials(credentials); err != nil { // such a submission is rejected
			return
		}
	}
	r.mu.Lock()
	r.book.Hold(time.Now(), App{ID: app, User: user, Tokens: c.Tokens, Cancel: cancel, Renew: func(t token.Token) bool {
		return r.c.Servers[t.Kind] != nil && namesRenewer(t)
	}})
	r.mu.Unlock()
	r.kick()
}

// Release removes an application that has ended.
func (r *Renewer) Release(app creel.ApplicationID) {
	r.mu.Lock()
	if r.book.End(time.Now(), app, r.c.Keep) {
		r.publish(false)
	}
	r.mu.Unlock()
	r.kick()
}

// KeepAlive keeps the tokens of ended applications whose logs a node still uploads.
func (r *Renewer) KeepAlive(apps []creel.ApplicationID) {
	if len(apps) == 0 || r.c.Keep <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, app := range apps {
		r.book.KeepAlive(time.Now(), app, r.c.Keep)
	}
}

// Forget removes an application that goes on elsewhere: its tokens are not cancelled.
func (r *Renewer) Forget(app creel.ApplicationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.book.Forget(app)
	r.publish(false)
}

// publish makes the tokens for nodes. With changed all nodes get them: the number is a time, so that it differs from
// those before a restart. The end of an application sends nothing.
func (r *Renewer) publish(changed bool) {
	old := r.system.Load()
	if old == nil && !changed {
		return
	}
	next := &System{}
	if old != nil {
		next.Number = old.Number
	}
	if changed {
		next.Number = max(next.Number+1, time.Now().UnixMilli())
	}
	for _, a := range r.book.System() {
		next.Apps = append(next.Apps, &yarnpb.SystemCredentialsForAppsProto{
			AppId: yarnpb.FromApplicationID(a.ID), CredentialsForApp: token.Credentials{Tokens: a.Tokens}.Append(nil),
		})
	}
	r.system.Store(next)
}

func (r *Renewer) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run makes the calls until ctx ends.
func (r *Renewer) Run(ctx context.Context) {
	slots := make(chan struct{}, parallel)
	var calls sync.WaitGroup
	defer calls.Wait()
	for ctx.Err() == nil {
		job, next := r.take()
		if job != nil {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			calls.Go(func() {
				defer func() { <-slots }()
				ctx, end := context.WithTimeout(ctx, callTime)
				defer end()
				job(ctx)
			})
			continue
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// longWait is the wait without any token.
const longWait = time.Hour

// take returns the next call, or the time until there is one.
func (r *Renewer) take() (call func(context.Context), wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if job, ok := r.book.Due(now); ok {
		switch job.Act {
		case Cancel:
			r.publish(false) // its application may have been one of the nodes' tokens
			return func(ctx context.Context) { r.cancel(ctx, job.Token) }, 0
		case Obtain:
			return func(ctx context.Context) { r.obtain(ctx, job) }, 0
		}
		return func(ctx context.Context) { r.renew(ctx, job) }, 0
	}
	if at, ok := r.book.Next(); ok {
		return nil, at.Sub(now)
	}
	return nil, longWait
}

func (r *Renewer) renew(ctx context.Context, job Job) {
	t := job.Token
	expires, err := r.c.Servers[t.Kind].Renew(ctx, t)
	if err == nil {
		r.renewed.Add(1)
		r.mu.Lock()
		last := r.book.Renewed(time.Now(), t, expires)
		r.mu.Unlock()
		if last {
			r.c.Log.Warn("a token of applications has reached its maximum lifetime",
				"kind", t.Kind, "service", t.Service, "ends", expires)
		}
		r.kick()
		return
	}
	r.Failures.Add(1)
	again := "later"
	r.mu.Lock()
	if errors.Is(err, ErrRejected) {
		again = "never: its server rejects it"
		if r.book.Rejected(time.Now(), t) {
			again = "never: another one replaces it"
		}
	} else {
		r.book.Failed(time.Now(), job)
	}
	r.mu.Unlock()
	r.kick()
	r.c.Log.Warn("failed to renew a token of applications", "kind", t.Kind, "service", t.Service, "again", again,
		"error", err)
}

// obtain replaces a token.
func (r *Renewer) obtain(ctx context.Context, job Job) {
	fresh, err := r.c.Servers[job.Token.Kind].(Obtainer).Obtain(ctx, job.Token, job.User)
	r.mu.Lock()
	if err == nil {
		r.obtained.Add(1)
		r.book.Obtained(time.Now(), job, fresh)
		r.publish(true)
	} else {
		r.Failures.Add(1)
		r.book.Failed(time.Now(), job)
	}
	r.mu.Unlock()
	r.kick()
	if err != nil {
		r.c.Log.Warn("failed to obtain a token for applications", "kind", job.Token.Kind, "service", job.Token.Service,
			"user", job.User, "again", "later", "error", err)
		return
	}
	r.c.Log.Info("obtained a token for applications", "kind", fresh.Kind, "service", fresh.Service, "user", job.User)
}

func (r *Renewer) cancel(ctx context.Context, t token.Token) {
	if err := r.c.Servers[t.Kind].Cancel(ctx, t); err != nil {
		r.c.Log.Warn("failed to cancel a token of an ended application",
			"kind", t.Kind, "service", t.Service, "error", err)
	}
}

// namesRenewer reports whether a token names one. Clients leave it out where they exclude a server from renewal.
func namesRenewer(t token.Token) bool {
	if t.Kind == token.KindDelegation {
		id, err := token.ParseDelegation(t.Identifier)
		return err != nil || id.Renewer != "" // its server rejects one that cannot be read
	}
	id := token.NewReader(t.Identifier)
	id.Next(1) // version
	id.Text()  // owner
	renewer := id.Text()
	return id.Err() == nil && renewer != ""
}

// endOf returns the end of a token's maximum lifetime, zero if it is unknown.
func endOf(t token.Token) time.Time {
	if t.Kind == token.KindDelegation {
		id, _ := token.ParseDelegation(t.Identifier)
		return id.Max
	}
	id := token.NewReader(t.Identifier)
	id.Next(1) // version
	for range 3 {
		id.Text() // owner, renewer, real user
	}
	id.VLong() // issued
	ms := id.VLong()
	if id.Err() != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
