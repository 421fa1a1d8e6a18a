// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
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
