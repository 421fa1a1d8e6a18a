// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// These are the interval between checks of a store's health, the timeout of one check, and the shorter interval after
// a call without an answer and while the store is unreachable. An outage that clients notice must be visible to
// operators too.
const (
	storeLookEvery = 10 * time.Second
	storeLookTime  = 5 * time.Second
	storeLookSoon  = 500 * time.Millisecond
)

// staleAfter is the age from which a view, or data read from the store, is too old for the daemon to be ready. Pauses
// of this process do not count.
const staleAfter = 3 * storeLookEvery

// healthChecker is a store with a health check; the in-memory store has none.
type healthChecker interface {
	Health(ctx context.Context) ([]statestore.Finding, error)
	// Unanswered is the number of calls without an answer so far.
	Unanswered() int64
}

// storeCheck is the result of a check of the store.
type storeCheck struct {
	at    time.Time
	found []statestore.Finding
	err   error

	unanswered int64 // healthChecker.Unanswered when it began
}

// storeHealth checks the store's health, logs changes, and reports the latest result.
type storeHealth struct {
	store healthChecker
	log   *slog.Logger
	last  atomic.Pointer[storeCheck]
}

// dependOnStore adds the task that checks the store's health, its metrics, and its line of readiness.
func dependOnStore(s *daemon.Service, store statestore.Store, log *slog.Logger) {
	c, ok := store.(healthChecker)
	if !ok {
		s.Health.Depend("store", func() health.State { return health.State{Text: "in the memory of this process"} })
		return
	}
	if counted, ok := store.(countedStore); ok {
		s.Health.Register(counted.figures.took)
	}
	h := &storeHealth{store: c, log: log}
	s.Add("store health", h.run)
	s.Health.Depend("store", h.state)
	s.Health.Gauge("creel_store_reachable", "1 if the state store answered the last health check.",
		func() float64 {
			if l := h.last.Load(); l == nil || l.err != nil {
				return 0
			}
			return 1
		})
	for _, name := range statestore.Findings {
		s.Health.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "creel_store_problem",
			Help:        "1 while the state store has the problem.",
			ConstLabels: prometheus.Labels{"problem": name},
		}, func() float64 { return h.has(name) }))
	}
}

func (h *storeHealth) has(name string) float64 {
	if l := h.last.Load(); l != nil {
		for _, f := range l.found {
			if f.Name == name {
				return 1
			}
		}
	}
	return 0
}

func (h *storeHealth) run(ctx context.Context) error {
	tick := time.NewTicker(storeLookSoon)
	defer tick.Stop()
	for {
		before := h.store.Unanswered()
		h.look(ctx, before)
		for looked := time.Now(); ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			ill := h.last.Load() == nil || h.last.Load().err != nil
			if ill || h.store.Unanswered() > before || time.Since(looked) >= storeLookEvery {
				break
			}
		}
	}
}

// look checks once. A finding is logged when it appears and when it ends. unanswered is healthChecker.Unanswered now.
func (h *storeHealth) look(ctx context.Context, unanswered int64) {
	limited, cancel := context.WithTimeout(ctx, storeLookTime)
	defer cancel()
	now := &storeCheck{unanswered: unanswered}
	now.found, now.err = h.store.Health(limited)
	if ctx.Err() != nil {
		return
	}
	now.at = time.Now()
	before := h.last.Load()
	if now.err != nil {
		if before == nil || before.err == nil {
			h.log.Warn(
				"state store: it does not answer",
				"error",
				now.err,
				"try",
				"check that it runs and is reachable",
			)
		}
		if before != nil {
			now.found = before.found // there is no evidence of an improvement
		}
		h.last.Store(now)
		return
	}
	for _, f := range now.found {
		if before == nil || !has(before.found, f.Name) {
			h.log.Warn("state store: "+f.What, "problem", f.Name, "try", f.Try)
		}
	}
	if before != nil {
		for _, f := range before.found {
			if !has(now.found, f.Name) {
				h.log.Info("state store: the problem is over", "problem", f.Name)
			}
		}
	}
	h.last.Store(now)
}

func has(found []statestore.Finding, name string) bool {
	for _, f := range found {
		if f.Name == name {
			return true
		}
	}
	return false
}

func (h *storeHealth) state() health.State {
	l := h.last.Load()
	if l == nil {
		return health.State{Err: errors.New("it has not been looked at yet")}
	}
	if l.err != nil {
		return health.State{Err: l.err}
	}
	out := health.State{Text: "looked at " + ago(time.Since(l.at))}
	var stops, warnings []string
	for _, f := range l.found {
		if f.Stop {
			stops = append(stops, f.What+"; "+f.Try)
		} else {
			warnings = append(warnings, f.What+"; "+f.Try)
		}
	}
	if h.store.Unanswered() > l.unanswered {
		warnings = append(warnings, "a call since then was not answered in time")
	}
	switch {
	case len(stops) > 0:
		out.Err = errors.New(strings.Join(stops, " | "))
	case len(warnings) > 0:
		out.Warn, out.Text = true, strings.Join(warnings, " | ")+"; "+out.Text
	}
	return out
}

func ago(d time.Duration) string { return units.Age(d.Seconds()) + " ago" }

// dependOnView adds the lines of the view and of its members.
func dependOnView(h *health.Health, w *watch.Watcher) {
	h.Register(viewFigures{w})
	h.Depend("view", func() health.State { return viewState(w) })
	h.Depend("members", func() health.State {
		v := w.View()
		if v == nil {
			return health.State{Err: watch.ErrNoView}
		}
		var away []string
		for i := range v.Members {
			if m := &v.Members[i]; !m.State.Alive() {
				away = append(away, fmt.Sprintf("%s is %s (%s)", m.ID, m.State, m.Reason))
			}
		}
		all := fmt.Sprintf("%d of %d alive", len(v.Members)-len(away), len(v.Members))
		if len(away) > 0 {
			return health.State{Warn: true, Text: all + ": " + strings.Join(away, ", ")}
		}
		return health.State{Text: all}
	})
}

func viewState(w *watch.Watcher) health.State {
	v := w.View()
	age, ok := w.Age()
	switch {
	case v == nil || !ok:
		return health.State{Err: watch.ErrNoView}
	case v.Freeze != nil:
		return health.State{Err: fmt.Errorf("frozen: %s; last read %s", v.Freeze.Reason, ago(age))}
	case age > staleAfter:
		return health.State{Err: fmt.Errorf("it was last read %s", ago(age))}
	}
	return health.State{Text: fmt.Sprintf("serial %d, read %s", v.Serial, ago(age))}
}

// dependOnKeys adds the line of the keys with which a proxy verifies AMs. files may be nil.
func dependOnKeys(h *health.Health, c *keys.Cache, files *keys.HadoopFiles) {
	h.Depend("token keys", func() health.State {
		began, err := c.Last()
		switch {
		case began.IsZero():
			return health.State{Err: errors.New("they have not been read yet")}
		case err != nil: // AMs with known keys keep working
			return health.State{Warn: true, Text: "not all could be read: " + err.Error()}
		case files != nil && files.Err() != nil: // keys read before remain valid
			return health.State{Warn: true, Text: files.Err().Error()}
		}
		return health.State{Text: "read " + ago(time.Since(began))}
	})
}

// dependOnJournal adds the line of a ResourceManager's journal, and its metrics.
func dependOnJournal(h *health.Health, s *server.Server) {
	if free, kept := s.JournalFree(); kept {
		h.Gauge("creel_rm_journal_full", "1 while the disk of the journal is full and new applications are refused.",
			func() float64 {
				if s.JournalRoom().Full {
					return 1
				}
				return 0
			})
		h.Gauge("creel_rm_journal_free_bytes", "Bytes left on the disk of the journal, beside its reserve.",
			func() float64 {
				if now, ok := s.JournalFree(); ok {
					free = now
				}
				return float64(free)
			})
	}
	h.Depend("journal", func() health.State {
		wait, kept := s.JournalWait()
		room := s.JournalRoom()
		switch {
		case room.Full:
			return health.State{Err: fmt.Errorf("its disk is full since %s, %d bytes of the reserve are left: "+
				"running applications continue, new ones are rejected", ago(time.Since(room.Since)), room.Reserve)}
		case !kept:
			return health.State{Text: "no journal: creel.rm.data is not set"}
		case wait > staleAfter:
			return health.State{Err: fmt.Errorf("nothing was written for %s", units.Age(wait.Seconds()))}
		}
		return health.State{Text: fmt.Sprintf("the last write took %s", wait.Round(time.Millisecond))}
	})
}
