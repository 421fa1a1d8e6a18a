// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// Members of a federation give out different ids of applications whenever they start: no two
// have a start in common, nor has one with its own start before, wherever clocks are set.
func TestStartsAreOfOneMemberAlone(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]int64{1, 1000}).Draw(t, "step") // of epochs, as people count members
		clock := time.UnixMilli(1_800_000_000_000)
		taken, last := map[int64]int64{}, map[int64]time.Time{}
		for range 50 {
			// Many start within the same second, and clocks are also set back.
			clock = clock.Add(time.Duration(rapid.Int64Range(-3_000_000, 3_000_000).Draw(t, "us")) * time.Microsecond)
			epoch := step * rapid.Int64Range(1, 20).Draw(t, "member")
			at := StartOf(clock, epoch, last[epoch])
			if of, ok := taken[at.UnixMilli()]; ok {
				t.Fatalf("at %v, member of epoch %d has the start %d, which that of %d had", clock, epoch, at.UnixMilli(), of)
			}
			late, before := at.Sub(clock), last[epoch]
			if late <= -time.Second || late > 0 && late > max(0, before.Sub(clock))+time.Second {
				t.Fatalf("a start at %v is told as one %v later, after one at %v", clock, late, before)
			}
			if !before.IsZero() && !at.After(before) {
				t.Fatalf("a start at %v is told as at %v, and the one before as at %v", clock, at, before)
			}
			taken[at.UnixMilli()], last[epoch] = epoch, at
		}
	})
}

// ResourceManagers without a federation have no epoch, and agents may make many of them members: their ids differ by
// the millisecond of their clocks. Only after a clock was set back they use the next millisecond.
func TestStartsWithoutAnEpochAreTheClocks(t *testing.T) {
	clock := time.UnixMilli(1_800_000_000_123)
	for _, c := range []struct{ last, want time.Time }{
		{time.Time{}, clock},
		{clock.Add(-time.Millisecond), clock},
		{clock, clock.Add(time.Second)},
		{clock.Add(1700 * time.Millisecond), clock.Add(2 * time.Second)},
	} {
		if at := StartOf(clock, 0, c.last); !at.Equal(c.want) {
			t.Errorf("a start at %v after one at %v is told as at %v, want %v", clock, c.last, at, c.want)
		}
	}
}
