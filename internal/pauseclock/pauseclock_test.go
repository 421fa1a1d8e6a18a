// SPDX-License-Identifier: Apache-2.0

package pauseclock_test

import (
	"testing"
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
)

func TestUnexpectedGapIsPause(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	var w pauseclock.Watch
	for _, step := range []struct {
		at   time.Duration
		want time.Duration
	}{
		{0, 0},
		{pauseclock.Interval, 0},
		{2 * pauseclock.Interval, 0},
		{3*pauseclock.Interval + pauseclock.Tolerance, 0}, // late, as on a busy machine
		{15 * time.Second, 15*time.Second - 4*pauseclock.Interval - pauseclock.Tolerance},
		{15*time.Second + pauseclock.Interval, 0},
		{10 * time.Second, 0}, // a clock set back is no pause, and does not make one
		{15*time.Second + 2*pauseclock.Interval, 0},
	} {
		if got := w.Observe(start.Add(step.at)); got != step.want {
			t.Errorf("at %v: a pause of %v, want %v", step.at, got, step.want)
		}
	}
	if w.Total() != 15*time.Second-4*pauseclock.Interval-pauseclock.Tolerance {
		t.Errorf("in all %v", w.Total())
	}
}
