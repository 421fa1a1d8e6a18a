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
)

// Server renews and cancels tokens of a kind. An error of kind ErrRejected is final.
type Server interface {
	Renew(ctx context.Context, t token.Token) (expires time.Time, err error)
	Cancel(ctx context.Context, t token.Token) error
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

// Renewer keeps tokens valid. Its methods are safe for concurrent use.
type Renewer struct {
	servers map[string]Server // by kind of token
	log     *slog.Logger

	// Failures counts failed renewals.
	Failures atomic.Int64
	renewed  atomic.Int64

	mu     sync.Mutex // never held during a call
	book   *Book
	cancel []token.Token
	wake   chan struct{}
}

// New makes a Renewer by the servers of each kind. The caller must run it.
func New(servers map[string]Server, log *slog.Logger) *Renewer {
	return &Renewer{servers: servers, log: log, book: NewBook(), wake: make(chan struct{}, 1)}
}

// Renewed returns the number of renewals so far.
func (r *Renewer) Renewed() int64 { return r.renewed.Load() }

// Held returns the number of tokens.
func (r *Renewer) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.Len()
}

// Hold adds an application with its encoded credentials. Tokens of other kinds, and those that name no renewer, are
// left out, and so is everything that cannot be read.
func (r *Renewer) Hold(app creel.ApplicationID, credentials []byte, cancel bool) {
	if len(r.servers) == 0 || len(credentials) == 0 {
		return
	}
	c, err := token.ParseCredentials(credentials)
	if err != nil { // such a submission is rejected
		return
	}
	var mine []token.Token
	for _, t := range c.Tokens {
		if r.servers[t.Token.Kind] != nil && namesRenewer(t.Token) {
			mine = append(mine, t.Token)
		}
	}
	if len(mine) == 0 {
		return
	}
	r.mu.Lock()
	r.book.Hold(time.Now(), app, mine, cancel)
	r.mu.Unlock()
	r.kick()
}

// Release removes an application that has ended.
func (r *Renewer) Release(app creel.ApplicationID) {
	r.mu.Lock()
	cancel := r.book.Release(app)
	r.cancel = append(r.cancel, cancel...)
	r.mu.Unlock()
	if len(cancel) > 0 {
		r.kick()
	}
}

// Forget removes an application that goes on elsewhere: its tokens are not cancelled.
func (r *Renewer) Forget(app creel.ApplicationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.book.Release(app)
}

func (r *Renewer) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run renews and cancels until ctx ends.
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
func (r *Renewer) take() (job func(context.Context), wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.cancel); n > 0 {
		t := r.cancel[n-1]
		r.cancel = r.cancel[:n-1]
		return func(ctx context.Context) { r.end(ctx, t) }, 0
	}
	now := time.Now()
	if t, ok := r.book.Due(now); ok {
		return func(ctx context.Context) { r.renew(ctx, t) }, 0
	}
	if at, ok := r.book.Next(); ok {
		return nil, at.Sub(now)
	}
	return nil, longWait
}

func (r *Renewer) renew(ctx context.Context, t token.Token) {
	expires, err := r.servers[t.Kind].Renew(ctx, t)
	if err == nil {
		r.renewed.Add(1)
		r.mu.Lock()
		last := r.book.Renewed(time.Now(), t, expires)
		r.mu.Unlock()
		if last {
			r.log.Warn("a token of applications has reached its maximum lifetime", "kind", t.Kind, "service", t.Service,
				"ends", expires)
		}
		r.kick()
		return
	}
	r.Failures.Add(1)
	again := "later"
	if errors.Is(err, ErrRejected) {
		again = "never: its server rejects it"
	} else {
		r.mu.Lock()
		r.book.Failed(time.Now(), t)
		r.mu.Unlock()
		r.kick()
	}
	r.log.Warn("failed to renew a token of applications", "kind", t.Kind, "service", t.Service, "again", again,
		"error", err)
}

func (r *Renewer) end(ctx context.Context, t token.Token) {
	if err := r.servers[t.Kind].Cancel(ctx, t); err != nil {
		r.log.Warn("failed to cancel a token of an ended application",
			"kind", t.Kind, "service", t.Service, "error", err)
	}
}

// namesRenewer reports whether a token names one. Clients leave it out where they exclude a server from renewal.
func namesRenewer(t token.Token) bool {
	id := token.NewReader(t.Identifier)
	id.Next(1) // version
	id.Text()  // owner
	renewer := id.Text()
	return id.Err() == nil && renewer != ""
}
