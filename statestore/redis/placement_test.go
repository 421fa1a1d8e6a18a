// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"testing"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// Routers from before placements drop a home, or make one, and leave the placement that is there. A claim without a
// placement removes it, and leftovers of a bucket go with its last home.
func TestPlacementsThatOlderRoutersLeftBehindGo(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	ctx, c := t.Context(), s.Client()
	all := func(pattern string) []string {
		t.Helper()
		keys, err := c.Keys(ctx, pattern).Result()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	dropAsBefore := func(field string) {
		t.Helper()
		for _, bucket := range all("{creel:1}:a:*") {
			if n, err := c.HDel(ctx, bucket, field).Result(); err != nil || n != 1 {
				t.Fatalf("field %s of %s: %d, %v", field, bucket, n, err)
			}
		}
	}
	first, second, third := storetest.App(1), storetest.App(65), storetest.App(129) // in one bucket
	for _, app := range [...]int{1, 65, 129} {
		if _, _, err := s.Claim(ctx, storetest.App(app), "sc-1", []byte("most room")); err != nil {
			t.Fatal(err)
		}
	}
	dropAsBefore("0")
	if _, _, err := s.Claim(ctx, first, "sc-2", nil); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Placement(ctx, first); err != nil || len(b) != 0 {
		t.Errorf("the claim gave none, kept is %q, %v", b, err)
	}
	dropAsBefore("1")
	if err := s.Forget(ctx, first, "sc-2", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Placement(ctx, third); err != nil || string(b) != "most room" {
		t.Errorf("of a neighbour: %q, %v", b, err)
	}
	if keys := all("{creel:1}:ap:*"); len(keys) != 1 {
		t.Fatalf("placements: %v", keys)
	}
	if n, err := c.HLen(ctx, all("{creel:1}:ap:*")[0]).Result(); err != nil || n != 2 {
		t.Errorf("%d placements, %v; want the neighbour's and that of %s, which was left behind", n, err, second)
	}
	if err := s.Forget(ctx, third, "sc-1", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if keys := all("{creel:1}:ap:*"); len(keys) != 0 {
		t.Errorf("placements are left: %v", keys)
	}
}
