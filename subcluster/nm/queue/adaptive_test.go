// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
)

func TestBoundKeepsEachSlotBusy(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		delay, mean time.Duration
		slots, want int
	}{
		{s, s, 1, 1},
		{s, 400 * ms, 1, 3},
		{s, 400 * ms, 4, 12},
		{s, 500 * ms, 1, 2},
		{s, 499 * ms, 1, 3},
		{s, time.Hour, 2, 2},
		{s, time.Hour, 0, 1},
		{0, s, 3, 3},
		{24 * time.Hour, 1, 1000, 1 << 20},
		{s, 0, 1, 1 << 20},
	} {
		if got := Bound(c.delay, c.mean, c.slots); got != c.want {
			t.Errorf("delay %v, mean %v, %d slots: %d, want %d", c.delay, c.mean, c.slots, got, c.want)
		}
	}
}

func TestMeanFollowsRunTimes(t *testing.T) {
	s := New(Config{Length: 100, Adaptive: true}, drawnTotal)
	s.SetDelay(time.Second)
	if got := s.capacity(); got != 100 {
		t.Errorf("before the first end: %d", got)
	}
	for _, c := range []struct {
		ran  time.Duration
		want int
	}{{100 * time.Millisecond, 10}, {900 * time.Millisecond, 5}, {0, 6}} {
		if s.Ran(&Item{Opportunistic: true}, c.ran); s.capacity() != c.want {
			t.Errorf("after %v: mean %v, length %d, want %d", c.ran, s.pace.mean, s.capacity(), c.want)
		}
	}
	if New(Config{Length: 3, Adaptive: true}, drawnTotal).capacity() != 3 {
		t.Error("the length is not the limit")
	}
}

// A container passes those with more work, and none that has waited for the patience.
func TestOrderByWorkRespectsPatience(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		const patience = 5 * time.Second
		now := time.Unix(1000, 0)
		var list []*Item
		for range rapid.IntRange(1, 30).Draw(t, "containers") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "pause")) * time.Second)
			x := &Item{Work: time.Duration(rapid.IntRange(1, 4).Draw(t, "work")), Since: now}
			at := position(list, x, patience)
			for i, y := range list[at:] {
				if x.Work >= y.Work || now.Sub(y.Since) >= patience {
					t.Fatalf("it passes number %d of work %v, waiting for %v", at+i, y.Work, now.Sub(y.Since))
				}
			}
			if at > 0 {
				if y := list[at-1]; x.Work < y.Work && now.Sub(y.Since) < patience {
					t.Fatalf("it stays behind work %v, waiting for %v", y.Work, now.Sub(y.Since))
				}
			}
			list = slices.Insert(list, at, x)
			if rapid.IntRange(0, 2).Draw(t, "start") == 0 {
				list = list[1:]
			}
		}
	})
}
