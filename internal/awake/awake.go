// SPDX-License-Identifier: Apache-2.0

// Package awake tells a process how long it was not running: stopped by a
// signal, moved to another host, waiting for a disk, starved of processor time.
// Who judges others by their silence must know, since for that long it heard
// nobody: after a pause of our own everybody gets that time again.
//
// A Watch is told of the time again and again by a loop that comes round at
// least every Interval. A gap between two tellings that is longer than Interval
// by more than Tolerance is a pause, by the monotonic clock or by the wall clock:
// the one stands still while a virtual machine does, and the other may be set
// forward, which is no silence of others either. A wall clock that is set back is
// no pause. A Watch reads no clock: its caller gives time.Now(). A Clock is one
// that stands still for the pauses of its process, for all who wait in it.
package awake

import "time"

// Interval is how often, at the latest, the loop of a Watch comes round.
const Interval = 250 * time.Millisecond

// Tolerance is how much later than Interval a loop may come round without that
// being a pause: what a busy machine takes.
const Tolerance = 750 * time.Millisecond

// Watch finds the pauses of one loop. The zero value is ready. It has one owner.
type Watch struct {
	last  time.Time
	total time.Duration
}

// Observe takes note of the time and returns how long the loop was paused since
// the last Observe, 0 if it was not. Call it before what arrived meanwhile is
// looked at, and before anything is judged to be late.
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
