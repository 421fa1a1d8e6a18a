// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

// store is a store that can stop answering.
type store struct {
	*memory.Store
	gone  atomic.Bool
	reads atomic.Int32
}

func (s *store) AppendEvent(ctx context.Context, e statestore.Event) error {
	if s.gone.Load() {
		return statestore.Unavailable("it is away", 0)
	}
	return s.Store.AppendEvent(ctx, e)
}

func (s *store) Events(ctx context.Context, after string, limit int) ([]statestore.Event, error) {
	s.reads.Add(1)
	if s.gone.Load() {
		return nil, statestore.Unavailable("it is away", 0)
	}
	return s.Store.Events(ctx, after, limit)
}

func newStore() *store {
	return &store{Store: memory.New(memory.NewState("test", nil), time.Now)}
}

// Events that a store does not record are recorded in order when it is back.
func TestEventsWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		r := NewRecorder(s, slog.New(slog.DiscardHandler))
		r.Named("router a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.Run(ctx) }()
		s.gone.Store(true)
		for i := range 3 {
			r.Record(WithOrigin(ctx, "10.0.0.7:1"), statestore.Event{Kind: statestore.EventKill, Subject: fmt.Sprint("app", i)})
		}
		time.Sleep(10 * time.Second)
		s.gone.Store(false)
		time.Sleep(3 * time.Second)
		list, err := s.Events(ctx, "", 10)
		if err != nil || len(list) != 3 || list[0].Subject != "app0" || list[2].Subject != "app2" {
			t.Fatalf("%+v: %v", list, err)
		}
		if e := list[0]; e.By != "router a" || e.From != "10.0.0.7:1" || e.Result != statestore.EventDone {
			t.Errorf("%+v", e)
		}
		r.Record(ctx, statestore.Event{Kind: statestore.EventKill, Subject: "last"})
		cancel()
		synctest.Wait()
		if list, err = s.Events(t.Context(), list[2].ID, 10); err != nil || len(list) != 1 {
			t.Errorf("recorded at the end: %+v: %v", list, err)
		}
	})
}

func TestLogPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		l := NewLog(s, time.Now)
		add := func(kind statestore.EventKind, subject string) {
			t.Helper()
			e := statestore.Event{Key: subject, Kind: kind, Subject: subject, Result: statestore.EventDone}
			if err := s.AppendEvent(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for i := range 2500 {
			add(statestore.EventKill, fmt.Sprint("app", i))
		}
		read := func(q Query, want ...string) (next string) {
			t.Helper()
			page, next, age, err := l.Read(t.Context(), q)
			var got []string
			for _, e := range page {
				got = append(got, e.Subject)
			}
			if err != nil || age != 0 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v: %v, want %v: %v", q, got, want, err)
			}
			return next
		}
		next := read(Query{Limit: 2}, "app2498", "app2499")
		read(Query{Limit: 2, After: next})
		add(statestore.EventDrain, "east")
		read(Query{Limit: 2, After: next}, "east")
		read(Query{Limit: 2, Kind: statestore.EventKill}, "app2498", "app2499")
		read(Query{Limit: 9, Subject: "app7"}, "app7")
		read(Query{Limit: 2, Before: next}, "app2497", "app2498")
		read(Query{Limit: 9, Before: next, Since: time.Now().Add(-4 * time.Second)}, "app2497", "app2498")
		read(Query{Limit: 9, Before: next, Since: time.Now()})
		read(Query{Limit: 9, User: "alice"})
		since := time.Now().Add(-3 * time.Second)
		next = read(Query{Limit: 2, Since: since}, "app2498", "app2499")
		read(Query{Limit: 2, Since: since, After: next}, "east")
		read(Query{Limit: 9, Visible: func(e *statestore.Event) bool { return e.Kind == statestore.EventDrain }}, "east")
		s.reads.Store(0)
		for range 9 {
			read(Query{Limit: 1}, "east")
		}
		if n := s.reads.Load(); n > 1 {
			t.Errorf("%d reads of the store for nine viewers", n)
		}
		time.Sleep(time.Minute)
		s.gone.Store(true)
		page, _, age, err := l.Read(t.Context(), Query{Limit: 1})
		if len(page) != 1 || age < time.Minute || !errors.Is(err, creel.ErrUnavailable) {
			t.Errorf("without the store: %+v, %v old: %v", page, age, err)
		}
		if _, _, _, err := l.Read(t.Context(), Query{After: "soon"}); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("an invalid cursor: %v", err)
		}
	})
}
