// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// whole rebuilds a store, or a new one, from the homes that members report.
func whole(t *testing.T, s *redis.Store, homes ...statestore.ApplicationHome) {
	t.Helper()
	if _, err := s.Reopen(t.Context(), given(homes...)); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, s *redis.Store, n int, member, want creel.SubclusterID) {
	t.Helper()
	if home, _, err := s.Claim(t.Context(), storetest.App(n), member, nil); err != nil || home != want {
		t.Fatalf("the home of application %d is %q (%v), want %q", n, home, err, want)
	}
}

// looks has a store look at its server, and says whether it found it lost.
func looks(t *testing.T, s *redis.Store, want bool) {
	t.Helper()
	if lost, err := s.Lost(t.Context()); err != nil || lost != want {
		t.Fatalf("the store is lost: %v (%v), want %v", lost, err, want)
	}
}

// refuses wants a claim of an application refused as long as its home is not known.
func refuses(t *testing.T, s *redis.Store, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if home, _, err := s.Claim(ctx, storetest.App(n), "sc-other", nil); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("application %d has the home %q (%v) in a store that went back", n, home, err)
	}
}

// A server restarts with an earlier state, under the same identity. The first claim after that is refused, also that
// of a process that was started since; all homes are served again when the store is rebuilt.
func TestStoreGoesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cfg := redis.Config{URL: server.URL(), Confirm: true}
	first, second := open(t, cfg), open(t, cfg)
	whole(t, first)
	claim(t, first, 1, "sc-1", "sc-1")
	looks(t, first, false)
	older := server.Snapshot()
	looks(t, first, false)
	claim(t, second, 2, "sc-2", "sc-2")
	looks(t, second, false) // its first mark is newer than the snapshot

	server.GoBack(older)
	refuses(t, second, 2)
	refuses(t, first, 3)
	looks(t, first, true)
	looks(t, second, true)
	whole(t, first, statestore.ApplicationHome{ID: storetest.App(2), Home: "sc-2"})
	for _, s := range []*redis.Store{first, second} {
		looks(t, s, false)
		claim(t, s, 1, "sc-other", "sc-1")
		claim(t, s, 2, "sc-other", "sc-2")
		looks(t, s, false)
	}
}

// A server restarts with a state of before the store was rebuilt: its identity is an earlier one.
func TestStoreGoesBackBehindItsRebuilding(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL(), Confirm: true})
	whole(t, s)
	claim(t, s, 1, "sc-1", "sc-1")
	older := server.Snapshot()
	server.Do("FLUSHALL")
	looks(t, s, true)
	whole(t, s, statestore.ApplicationHome{ID: storetest.App(1), Home: "sc-1"})
	claim(t, s, 2, "sc-2", "sc-2")

	server.GoBack(older)
	looks(t, s, true)
	refuses(t, s, 2)
	whole(t, s, statestore.ApplicationHome{ID: storetest.App(2), Home: "sc-2"})
	looks(t, s, false)
	claim(t, s, 1, "sc-other", "sc-1")
	claim(t, s, 2, "sc-other", "sc-2")
}
