// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

func save(t *testing.T, h *statetest.Holder, key, value string) {
	t.Helper()
	if err := h.Save(statetest.Put(key, value)); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, f *Follower) {
	t.Helper()
	if err := f.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// scanned makes a log count its scans, which a warm takeover does not need.
func scanned(l state.Log) (log *Log, parts *int) {
	log, parts = l.(*Log), new(int)
	log.scan = func(ctx context.Context, cursor string) ([]any, string, error) {
		*parts++
		return log.scanPart(ctx, cursor)
	}
	return log, parts
}

func entriesOf(t *testing.T, l state.Log) map[string]string {
	t.Helper()
	got := map[string]string{}
	if err := l.Each(func(key string, value []byte) error {
		got[key] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return got
}

// A follower reads all entries once. Its takeover reads only the changes since.
func TestTakeoverReadsOnlyChanges(t *testing.T) {
	t.Parallel()
	d := deployment(redistest.Start(t).URL(), 0, time.Hour)
	h := d.Start(t)
	f := d.StartFollower(t).(*Follower)
	defer f.Close()
	want := map[string]string{}
	for i := range 10 {
		key := fmt.Sprint("key", i)
		want[key] = key
		save(t, h, key, key)
		follow(t, f)
	}
	save(t, h, "last", "1")
	want["last"] = "1"
	opened, err := f.Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, parts := scanned(opened)
	if got := entriesOf(t, l); !maps.Equal(got, want) || *parts != 0 || f.reads != 1 {
		t.Errorf("%d entries of %d, after %d scans at the takeover and %d before", len(got), len(want), *parts, f.reads)
	}
	_ = h.End() // fenced
}

// A follower that misses groups, because the tail is bounded or the holder keeps none, reads all entries again.
func TestFollowerReadsAllAfterGap(t *testing.T) {
	t.Parallel()
	d := deployment(redistest.Start(t).URL(), 0, time.Hour)
	h := d.Start(t)
	f := d.StartFollower(t).(*Follower)
	defer f.Close()
	save(t, h, "a", "1")
	follow(t, f)
	h.Log.(*Log).cfg.Tail = 0
	save(t, h, "a", "2")
	h.Log.(*Log).cfg.Tail = 1000
	save(t, h, "b", "1")
	follow(t, f) // notices the gap
	follow(t, f)
	if want := map[string]string{"a": "2", "b": "1"}; f.reads != 2 || !maps.Equal(f.copy.entries, want) {
		t.Errorf("after %d reads of all entries the copy is %v", f.reads, f.copy.entries)
	}
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
}

// Redis loses a group that the follower has, and the next holder writes as many others. The numbers of groups and
// of entries are equal, the values are not.
func TestCopyOfLostGroupsIsNotContinued(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := deployment(server.URL(), 0, time.Hour)
	h := d.Start(t)
	f := d.StartFollower(t).(*Follower)
	defer f.Close()
	save(t, h, "a", "1")
	save(t, h, "b", "1")
	older := server.Snapshot()
	save(t, h, "a", "lost")
	follow(t, f)
	server.GoBack(older)
	if err := h.Save(statetest.Put("b", "1")); !errors.Is(err, state.ErrLost) {
		t.Fatalf("the holder's transaction was answered %v", err)
	}
	next := d.Start(t)
	save(t, next, "b", "2")
	if err := next.End(); err != nil {
		t.Fatal(err)
	}
	opened, err := f.Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := entriesOf(t, opened), map[string]string{"a": "1", "b": "2"}; !maps.Equal(got, want) {
		t.Errorf("the follower leads with %v, want %v", got, want)
	}
}

// lease opens a lease for a process.
func lease(t *testing.T, url, name, holder string) *Lease {
	t.Helper()
	l, err := OpenLease(Config{Redis: redis.Config{URL: url}, Name: name, Holder: holder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestOneProcessHasTheLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, other := lease(t, server.URL(), "pair", "rm1"), lease(t, server.URL(), "pair", "rm2")
	again := lease(t, server.URL(), "pair", "rm1") // a restarted rm1
	const long = time.Hour
	expect := func(c Claim, err error) func(won bool, holder string) {
		return func(won bool, holder string) {
			t.Helper()
			if err != nil || c.Won != won || c.Holder != holder || (c.Left > 0) != (holder != "") || c.Left > long {
				t.Errorf("the answer is %+v, %v", c, err)
			}
		}
	}
	ctx := t.Context()
	expect(one.Look(ctx))(false, "")
	expect(one.Claim(ctx, long))(true, "")
	expect(other.Claim(ctx, long))(false, "rm1")
	expect(again.Claim(ctx, long))(false, "rm1")
	expect(one.Claim(ctx, long))(true, "") // renewed
	if err := other.Release(ctx); err != nil {
		t.Fatal(err)
	}
	expect(other.Look(ctx))(false, "rm1")
	if err := one.Release(ctx); err != nil {
		t.Fatal(err)
	}
	expect(other.Claim(ctx, time.Millisecond))(true, "")
	for claim, err := one.Claim(ctx, long); !claim.Won; claim, err = one.Claim(ctx, long) { // once it has expired
		if err != nil {
			t.Fatal(err)
		}
	}
	expect(other.Look(ctx))(false, "rm1")
}

// A server's clock that was set back does not prolong a lease beyond its term.
func TestLeaseEndsAlthoughClockWasSetBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, other := lease(t, server.URL(), "clock", "rm1"), lease(t, server.URL(), "clock", "rm2")
	if c, err := one.Claim(t.Context(), 10*time.Second); err != nil || !c.Won {
		t.Fatal(c, err)
	}
	server.Do("HSET", one.keys[0], "lease_until", "9000000000000000")
	if c, err := other.Look(t.Context()); err != nil || c.Left > 10*time.Second || c.Holder != "rm1" {
		t.Errorf("the answer is %+v, %v", c, err)
	}
}
