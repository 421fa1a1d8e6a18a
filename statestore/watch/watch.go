// SPDX-License-Identifier: Apache-2.0

// Package watch keeps a subcluster.View fresh: at once by the store's subscription, by polling if the subscription is
// lost. Readers load the View from an atomic pointer and never wait for the store.
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Source is the part of a store that a Watcher needs.
type Source interface {
	Records(ctx context.Context) (subcluster.Records, error)
	RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error)
	Watch(ctx context.Context, notify func(statestore.Change)) error
}

// Documents is the store of the rebalancer's plan.
type Documents interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
	DocumentOf(ctx context.Context, class, name string, queues []string) (statestore.Document, error)
}

// Config of a Watcher.
type Config struct {
	// Queues, if set, returns the leaf names of the queues to read: loads, and the plan, contain only these. Call Kick
	// after adding a queue.
	Queues func() []string
	// Plan, if set, is the store of the rebalancer's plan. It is read when a new plan is announced or another queue is
	// wanted, and otherwise once per Unheard.
	Plan Documents
	// Poll is the time between reads without announcements; each pause varies by up to a fifth. Default: 1s.
	// Heartbeats and loads are seen with this delay.
	Poll time.Duration
	// Timeout of one read; default: 2s.
	Timeout time.Duration
	// Validate, if set, checks each policy that is new to the view: a rejected document does not
	// replace the known one.
	Validate statestore.Validate
	// OnChange, if set, receives each change of the subscription, before the view is refreshed. It must not block.
	OnChange func(statestore.Change)
	// OnView, if set, is called with each new view. It must not block.
	OnView func(*subcluster.View)
	// Clock distinguishes this process's pauses from the store's silence. Its owner runs it.
	Clock *pauseclock.Clock
	Log   *slog.Logger // nil: silent
}

// Watcher is the loop. Make one with New, run it with Run.
type Watcher struct {
	cfg    Config
	source Source
	view   atomic.Pointer[subcluster.View]
	kick   chan struct{}
	whole  atomic.Bool // the read requested by Kick includes loads
	reads  atomic.Int64
	failed atomic.Int64
	good   atomic.Pointer[time.Time] // time of the last successful read, by cfg.Clock

	news atomic.Bool // an announced plan is unread
	plan PlanReader  // by cfg.Clock
}

// Unheard is the time between reads of the plan without an announcement, in case the subscription is lost. It is well
// below the default lease of a plan.
const Unheard = 10 * time.Second

// Hears returns the effects of an announced change: whether to read the store at once, and whether to read the plan
// too.
func Hears(c statestore.Change) (read, plan bool) {
	plan = c.Kind == statestore.ChangeResync ||
		c.Kind == statestore.ChangeDocuments && c.Class == subcluster.PlanClass
	return plan || c.Kind != statestore.ChangeHome && c.Kind != statestore.ChangeDocuments, plan
}

// New makes a Watcher. Its View is nil until the first read.
func New(source Source, cfg Config) *Watcher {
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{cfg: cfg, source: source, kick: make(chan struct{}, 1)}
}

// View is the latest view, nil before the first read. It is immutable.
func (w *Watcher) View() *subcluster.View { return w.view.Load() }

// Age is the time since the last successful read, without this process's pauses; ok is false before the first one.
func (w *Watcher) Age() (age time.Duration, ok bool) {
	at := w.good.Load()
	if at == nil {
		return 0, false
	}
	return w.cfg.Clock.Now().Sub(*at), true
}

// Reads returns the number of reads of the store so far, and how many failed.
func (w *Watcher) Reads() (all, failed int64) { return w.reads.Load(), w.failed.Load() }

// Kick requests a full read now, e.g. after the caller's own write.
func (w *Watcher) Kick() {
	w.whole.Store(true)
	w.wake()
}

// wake requests a read now. Unless Kick was called, it reads only changes, with partial loads.
func (w *Watcher) wake() {
	select {
	case w.kick <- struct{}{}:
	default: // a read is requested already
	}
}

// Run reads and waits for changes until ctx ends, then returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { w.listen(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		whole := true
		select {
		case <-ctx.Done():
			return nil
		case <-w.kick:
			whole = w.whole.Swap(false) || w.cfg.Queues == nil
		case <-timer.C:
		}
		w.refresh(ctx, whole)
		if whole { // else loads are read when due: thousands of processes got the announcement at once
			timer.Reset(jitter(w.cfg.Poll))
		}
	}
}

// longest is the longest time between two successful reads while both this process and the store run.
func (w *Watcher) longest() time.Duration {
	return w.cfg.Poll + w.cfg.Poll/5 + w.cfg.Timeout + pauseclock.Tolerance
}

func jitter(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5+1) }

// listen keeps a subscription; polling goes on without it.
func (w *Watcher) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.source.Watch(ctx, func(c statestore.Change) {
			if w.cfg.OnChange != nil {
				w.cfg.OnChange(c)
			}
			read, plan := Hears(c)
			if plan {
				w.news.Store(true)
			}
			if read {
				w.wake()
			}
		})
		if err == nil || ctx.Err() != nil {
			continue
		}
		w.cfg.Log.Warn("state store subscription lost, polling continues", "error", err)
		t := time.NewTimer(jitter(w.cfg.Poll))
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// refresh reads once, and publishes the view that follows. Without whole, loads may be those that
// were read before.
func (w *Watcher) refresh(ctx context.Context, whole bool) {
	limited, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	w.reads.Add(1)
	before, paused := w.view.Load(), w.cfg.Clock.Paused()
	var queues []string
	if w.cfg.Queues != nil {
		queues = w.cfg.Queues()
	}
	records, err := w.records(limited, queues, whole)
	if ctx.Err() != nil {
		return
	}
	if err != nil && w.cfg.Clock.Paused() > paused {
		w.Kick() // it timed out while this process was paused: that proves nothing about the store
		return
	}
	if err != nil {
		w.failed.Add(1)
	} else {
		now := w.cfg.Clock.Now()
		w.good.Store(&now)
		records.Plan = w.readPlan(limited, queues)
	}
	next := subcluster.Observer{Longest: w.longest(), Validate: w.cfg.Validate}.Observe(before, records, err)
	if next == nil {
		w.cfg.Log.Warn("failed to read the state store; no view yet", "error", err)
		return
	}
	w.publish(before, next)
}

func (w *Watcher) records(ctx context.Context, queues []string, loads bool) (subcluster.Records, error) {
	if w.cfg.Queues == nil {
		return w.source.Records(ctx)
	}
	return w.source.RecordsOf(ctx, queues, loads)
}

// readPlan returns the rebalancer's plan as it is known, of these queues if Queues is given.
func (w *Watcher) readPlan(ctx context.Context, queues []string) *subcluster.Plan {
	now := w.cfg.Clock.Now()
	if w.cfg.Plan == nil || !w.plan.Due(w.news.Swap(false), queues, now) {
		return w.plan.Plan()
	}
	d, err := w.planDocument(ctx, queues)
	if err := w.plan.Read(d, err, queues, now); err != nil {
		w.cfg.Log.Warn("failed to read the rebalancer's plan", "version", d.Version, "error", err)
	}
	return w.plan.Plan()
}

func (w *Watcher) planDocument(ctx context.Context, queues []string) (statestore.Document, error) {
	if w.cfg.Queues != nil {
		return w.cfg.Plan.DocumentOf(ctx, subcluster.PlanClass, subcluster.PlanName, queues)
	}
	set, err := w.cfg.Plan.Documents(ctx, subcluster.PlanClass)
	d, _ := set.Find(subcluster.PlanName)
	return d, err
}

func (w *Watcher) publish(before, next *subcluster.View) {
	w.view.Store(next)
	w.tell(before, next)
	if w.cfg.OnView != nil {
		w.cfg.OnView(next)
	}
}

// tell logs an operator's news: states, freezes, problems.
func (w *Watcher) tell(before, next *subcluster.View) {
	for i := range next.Members {
		m := &next.Members[i]
		was, ok := before.Member(m.ID)
		if !ok || was.State != m.State {
			w.cfg.Log.Info("member",
				"subcluster", m.ID, "state", m.State.String(), "reason", m.Reason, "epoch", m.Epoch)
		}
	}
	switch {
	case next.Freeze != nil && (before == nil || before.Freeze == nil):
		w.cfg.Log.Warn("view frozen", "reason", next.Freeze.Reason)
	case next.Freeze == nil && before != nil && before.Freeze != nil:
		w.cfg.Log.Info("view thawed")
	}
	for _, p := range next.Problems {
		if before == nil || !slices.Contains(before.Problems, p) {
			w.cfg.Log.Error("state store", "problem", p)
		}
	}
}

// ErrNoView is for callers that need a view before the first read.
var ErrNoView = errors.New("the state store has not been read yet")

// Await waits until there is a view, for starting up.
func (w *Watcher) Await(ctx context.Context) (*subcluster.View, error) {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for {
		if v := w.View(); v != nil {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNoView, ctx.Err())
		case <-t.C:
		}
	}
}
