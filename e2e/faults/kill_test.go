// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// kill -9 in the middle of 100,000 claims, each application claimed by two routers for two members. Acknowledged claims
// survive, and no application has two homes. With appendfsync everysec Redis may respond before it writes. It defers
// writes for up to 2 s during a long fsync.
func TestKillInTheMiddleOfClaims(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	cfg := redis.Config{URL: server.URL(), MaxWait: time.Hour}
	open := func() *redis.Store {
		s, err := redis.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	routers := []*redis.Store{open(), open()}
	members := []creel.SubclusterID{"sc-0", "sc-1"}
	const apps, callers = 50_000, 64
	var acked [2][apps]creel.SubclusterID
	var made [apps]atomic.Int32 // answers "claimed by this call"
	var count atomic.Int64
	var wg sync.WaitGroup
	for r, s := range routers {
		for c := range callers / 2 {
			wg.Go(func() {
				for i := c; i < apps; i += callers / 2 {
					is, number, err := s.Claim(t.Context(), storetest.App(i), members[r], nil)
					if err != nil {
						t.Errorf("application %d: %v", i, err)
						return
					}
					acked[r][i] = is
					if number == 1 {
						made[i].Add(1)
					}
					count.Add(1)
				}
			})
		}
	}
	for _, at := range []int64{30_000, 60_000} {
		for count.Load() < at && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		server.Kill()
		server.Restart()
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	s := open()
	listed := map[creel.ApplicationID]creel.SubclusterID{}
	for _, m := range members {
		for cursor := ""; ; {
			page, next, err := s.HomesAt(t.Context(), m, cursor, statestore.MaxPage)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range page {
				if was, twice := listed[h.ID]; twice {
					t.Fatalf("%v is listed at %s and at %s", h.ID, was, m)
				}
				listed[h.ID] = h.Home
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
	won := map[creel.SubclusterID]int{}
	for i := range apps {
		is := listed[storetest.App(i)]
		if acked[0][i] != is || acked[1][i] != is || is == "" {
			t.Fatalf("application %d: acknowledged %q and %q, stored %q", i, acked[0][i], acked[1][i], is)
		}
		if n := made[i].Load(); n > 1 {
			t.Fatalf("application %d was new %d times", i, n)
		}
		won[is]++
	}
	t.Logf(
		"%d claims acknowledged through 2 kills, homes %v, %d repeats",
		count.Load(),
		won,
		routers[0].Stats().Retries+routers[1].Stats().Retries,
	)
}
