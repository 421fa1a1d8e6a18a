// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/creelrm/creel/statestore"
)

// Writer is the part of the store that a Recorder needs.
type Writer interface {
	AppendEvent(ctx context.Context, e statestore.Event) error
}

// Recorder records events later, in order. Callers never wait.
type Recorder struct {
	store Writer
	log   *slog.Logger
	wake  chan struct{}

	mu      sync.Mutex
	by      string
	waiting []statestore.Event
	dropped int
}

// maxWaiting bounds the events that wait for the store. Later ones are dropped.
const maxWaiting = 1000

// NewRecorder makes a recorder; Run records.
func NewRecorder(store Writer, log *slog.Logger) *Recorder {
	return &Recorder{store: store, log: log, wake: make(chan struct{}, 1)}
}

// Named sets the name of this daemon (Event.By).
func (r *Recorder) Named(by string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by = by
}

// Complete sets the fields of an event that its reporter left out: a new key, this daemon's name, success, and the
// address of the context.
func (r *Recorder) Complete(ctx context.Context, e statestore.Event) statestore.Event {
	if e.Key == "" {
		e.Key = rand.Text()
	}
	if e.Result == "" {
		e.Result = statestore.EventDone
	}
	if e.From == "" {
		e.From, _ = ctx.Value(originKey{}).(string)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.By == "" {
		e.By = r.by
	}
	return e
}

// Recording is statestore.Recording of the completed event.
func (r *Recorder) Recording(ctx context.Context, e statestore.Event) context.Context {
	if r == nil {
		return ctx
	}
	return statestore.Recording(ctx, r.Complete(ctx, e))
}

// Record records the completed event as soon as the store answers.
func (r *Recorder) Record(ctx context.Context, e statestore.Event) {
	if r == nil {
		return
	}
	e = r.Complete(ctx, e)
	r.mu.Lock()
	if len(r.waiting) < maxWaiting {
		r.waiting = append(r.waiting, e)
	} else {
		r.dropped++
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

type originKey struct{}

// WithOrigin attaches the address of a user's client to the context of its request.
func WithOrigin(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, originKey{}, address)
}

// again is the pause after an event that the store did not record.
const again = 2 * time.Second

// Run records events until the context ends. It then tries for a second to record the waiting ones.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			r.flush(last)
			return nil
		case <-r.wake:
		}
		for !r.flush(ctx) {
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
		}
	}
}

// flush records the waiting events and reports whether none is left.
func (r *Recorder) flush(ctx context.Context) bool {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			if r.dropped > 0 {
				r.log.Warn("dropped events: the state store did not answer", "events", r.dropped)
				r.dropped = 0
			}
			r.mu.Unlock()
			return true
		}
		e := r.waiting[0]
		r.mu.Unlock()
		if _, err := statestore.EncodeEvent(e); err != nil {
			r.log.Warn("failed to record an event", "kind", string(e.Kind), "error", err)
		} else if err := r.store.AppendEvent(ctx, e); err != nil {
			return false
		}
		r.mu.Lock()
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
	}
}
