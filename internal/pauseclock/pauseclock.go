// SPDX-License-Identifier: Apache-2.0

// Package pauseclock detects the pauses of a process: stopped by a signal, moved to another host, waiting for a disk,
// starved of CPU time. A process that judges others by their silence must detect them, because it received nothing
// during a pause. After its own pause it grants the others that time again.
//
// A loop calls Observe on a Watch at least every Interval. A gap that exceeds Interval by more than Tolerance is a
// pause, by the monotonic clock or by the wall clock. The monotonic clock stops while a virtual machine is suspended.
// The wall clock may be set forward, which is no silence of others either. A wall clock that is set back is no pause. A
// Watch reads no clock: its caller passes time.Now(). A Clock stops during the pauses of its process, for all its
// users.
package pauseclock

import "time"

// Interval is the longest regular time between two calls of Observe by a loop.
const Interval = 250 * time.Millisecond

// Tolerance is the extra time on top of Interval that a loop may take on a busy machine without counting as paused.
const Tolerance = 750 * time.Millisecond

// Watch finds the pauses of one loop. The zero value is ready. It has one owner.
type Watch struct {
	last  time.Time
	total time.Duration
}

// Observe records the time and returns the length of the loop's pause since the last Observe, 0 if it was not paused.
// Call it before processing messages that arrived meanwhile, and before judging anything as late.
func (w *Watch) Observe(now time.Time) (pause time.Duration) {
	if !w.last.IsZero() {
		gap := max(now.Sub(w.last), now.Round(0).Sub(w.last.Round(0)))
		if gap > Interval+Tolerance {
			pause = gap - Interval
		}
	}
	if now.After(w.last) {
		w.last = now
	}
	w.total += pause
	return pause
}

// Total returns the sum of the pauses so far, for a metric.
func (w *Watch) Total() time.Duration { return w.total }
