// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/watch"
)

// lookedAt counts the looks at a store's health by the question that begins each.
type lookedAt struct {
	*redis.Store
	began atomic.Int64
}

func (l *lookedAt) Unanswered() int64 {
	l.began.Add(1)
	return l.Store.Unanswered()
}

// A problem of a real Redis is logged once with its remedy, when it appears. It is a line of /readyz?verbose and a
// metric while it lasts.
func TestStoreHealthIsReported(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--maxmemory-policy", "volatile-lru")
	store, err := redis.Open(redis.Config{URL: server.URL(), Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var log bytes.Buffer
	s := &daemon.Service{Health: health.New()}
	s.Health.SetReady(true)
	looks := &lookedAt{Store: store}
	dependOnStore(s, looks, slog.New(slog.NewTextHandler(&log, nil)))
	h := &storeHealth{store: store, log: slog.New(slog.NewTextHandler(&log, nil))}
	s.Health.Depend("looked", h.state)
	look := func() {
		t.Helper()
		h.look(t.Context(), store.Unanswered())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		began := looks.began.Load()
		go func() { done <- s.Tasks[0].Run(ctx) }()
		for looks.began.Load() < began+2 { // the second follows the end of the first
			time.Sleep(time.Millisecond)
		}
		cancel()
		<-done
	}
	mux := chi.NewRouter()
	s.Health.Mount(mux)
	get := func(path string) string {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Body.String()
	}
	want := func(text string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%q is not in\n%s", p, text)
			}
		}
	}
	want(get("/readyz?verbose"), "[-] store: it has not been looked at yet")
	look()
	look()
	want(get("/readyz?verbose"), "[!] store: ", "maxmemory-policy is volatile-lru; set maxmemory-policy to noeviction; looked at ")
	want(get("/metrics"), `creel_store_problem{problem="evicts"} 1`, `creel_store_problem{problem="not_writable"} 0`, "creel_store_reachable 1")
	if n := strings.Count(log.String(), "level=WARN"); n != 2 { // one for each of the two that look
		t.Errorf("%d lines at WARN:\n%s", n, log.String())
	}
	want(log.String(), "problem=evicts", `try="set maxmemory-policy to noeviction"`)
	// Between two looks a call is not answered.
	server.Pause()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	_, err = store.Records(short)
	cancel()
	server.Resume()
	if err == nil {
		t.Error("a paused store answers")
	}
	if is := h.state(); !is.Warn || !strings.Contains(is.Text, "a call since then was not answered in time; looked at ") {
		t.Errorf("after a call without an answer: %+v", is)
	}
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	server.Do("REPLICAOF", "127.0.0.1", "1")
	look()
	want(log.String(), `"state store: the problem is over" problem=evicts`)
	want(get("/readyz?verbose"), "[-] store: the state store rejects writes")
	if out := get("/readyz"); out != "ok\n" {
		t.Errorf("/readyz is %q", out)
	}
	server.Kill()
	look()
	want(get("/metrics"), "creel_store_reachable 0", `creel_store_problem{problem="not_writable"} 1`)
}

// A view that is frozen, or was never read, is not green.
func TestAFrozenViewIsNotReady(t *testing.T) {
	server := redistest.Start(t)
	store, err := redis.Open(redis.Config{URL: server.URL(), Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := watch.New(store, watch.Config{Poll: 50 * time.Millisecond, Timeout: 200 * time.Millisecond})
	if s := viewState(w); s.Err == nil {
		t.Errorf("before the first read it is %+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { cancel(); <-done }()
	until := func(what string, holds func(health.State) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(viewState(w)); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: it is %+v", what, viewState(w))
			}
		}
	}
	until("with a store", func(s health.State) bool { return s.Err == nil && strings.Contains(s.Text, "read ") })
	server.Pause()
	until("while the store stands still", func(s health.State) bool {
		return s.Err != nil && strings.Contains(s.Err.Error(), "frozen: the state store does not answer")
	})
	server.Resume()
	until("afterwards", func(s health.State) bool { return s.Err == nil })
}

var _ healthChecker = (*redis.Store)(nil)
var _ statestore.Store = (*redis.Store)(nil)
