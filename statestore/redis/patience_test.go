// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// Calls of one answer wait together: the first call to a stopped server uses up the time, and no other is sent.
func TestCallsOfOneAnswerShareTheirWait(t *testing.T) {
	server := redistest.Start(t)
	var calls atomic.Int64
	s := open(t, redis.Config{URL: server.URL(), Observe: func(string, time.Duration, error) { calls.Add(1) }})
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	ctx := statestore.WithPatience(t.Context(), time.Minute)
	if _, err := s.Home(ctx, app); !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Fatal(err)
	}
	if left := statestore.PatienceOf(ctx).Left(); left >= time.Minute || left <= 0 {
		t.Errorf("after a call %v of a minute is left", left)
	}
	server.Pause()
	defer server.Resume()
	ctx = statestore.WithPatience(t.Context(), 50*time.Millisecond)
	if _, err := s.Home(ctx, app); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a stopped server: %v", err)
	}
	before := calls.Load()
	for range 5 {
		if _, err := s.Home(statestore.WithPatience(ctx, time.Hour), app); !errors.Is(err, creel.ErrUnavailable) {
			t.Errorf("after the time: %v", err)
		}
	}
	if n := calls.Load() - before; n != 0 {
		t.Errorf("after the time %d calls were sent", n)
	}
}

// Each read ends when the time of its answer is over, however long the server's time-outs are.
func TestEachReadIsPatient(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL() + "?timeout=1h&max_wait=1h"})
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	if _, err := s.Home(t.Context(), app); !errors.Is(err, creel.ErrApplicationNotFound) { // the store is open now
		t.Fatal(err)
	}
	if _, err := s.Records(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	for name, read := range map[string]func(ctx context.Context) error{
		"Home":         func(ctx context.Context) error { _, err := s.Home(ctx, app); return err },
		"Records":      func(ctx context.Context) error { _, err := s.Records(ctx); return err },
		"RecordsOf":    func(ctx context.Context) error { _, err := s.RecordsOf(ctx, []string{"root.a"}, true); return err },
		"Documents":    func(ctx context.Context) error { _, err := s.Documents(ctx, "tree"); return err },
		"Events":       func(ctx context.Context) error { _, err := s.Events(ctx, "", 1); return err },
		"Daemons":      func(ctx context.Context) error { _, _, err := s.Daemons(ctx, "", 1); return err },
		"UAMRecordsOf": func(ctx context.Context) error { _, err := s.UAMRecordsOf(ctx, app); return err },
		"KeysOf":       func(ctx context.Context) error { _, err := s.KeysOf(ctx, []string{"a", "b"}); return err },
		"Lost":         func(ctx context.Context) error { _, err := s.Lost(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx = statestore.WithPatience(ctx, 50*time.Millisecond)
			if err := read(ctx); !errors.Is(err, creel.ErrUnavailable) {
				t.Error(err)
			}
			if left := statestore.PatienceOf(ctx).Left(); ctx.Err() != nil || left > 0 {
				t.Errorf("it ends with %v of its time left, %v", left, ctx.Err())
			}
		})
	}
}
