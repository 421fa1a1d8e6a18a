// SPDX-License-Identifier: Apache-2.0

package pauseclock_test

import (
	"testing"
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
)

// A lease is not held longer because this process or its machine was paused, or because a clock was set back.
func TestHeldLeaseExpiresDuringPause(t *testing.T) {
	now := time.Now() // with both clocks
	h := pauseclock.LeaseClock{Read: func() time.Time { return now }}
	start := h.Now()
	passed := func(want time.Duration, what string) {
		t.Helper()
		if d := h.Now().Sub(start); d != want {
			t.Fatalf("%s: %v have passed, want %v", what, d, want)
		}
	}
	now = now.Add(10 * time.Second)
	passed(10*time.Second, "a pause of the process")
	// Without a monotonic reading only the wall clock is seen, as after a sleep.
	now = now.Round(0).Add(time.Minute)
	passed(70*time.Second, "a sleep of the machine")
	now = now.Add(-time.Hour)
	passed(70*time.Second, "a wall clock set back")
	now = now.Add(5 * time.Second)
	passed(75*time.Second, "five seconds later")
}
