// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"testing"
)

func TestTimersFireInOrderOfTimeThenStart(t *testing.T) {
	timers := newTimers()
	var fired []string
	at := func(when int64, name string) *timer {
		return timers.start(when, func() { fired = append(fired, name) })
	}
	at(20, "c")
	at(10, "a")
	dropped := at(10, "dropped")
	at(10, "b")
	at(30, "d")
	timers.stop(&dropped)
	timers.stop(&dropped) // again: there is none
	if dropped != nil || timers.next() != 10 {
		t.Fatalf("stopped timer %v, next deadline %d, want none and 10", dropped, timers.next())
	}
	timers.run(20)
	if want := []string{"a", "b", "c"}; !slices.Equal(fired, want) {
		t.Errorf("fired %v, want %v", fired, want)
	}
	if timers.next() != 30 {
		t.Errorf("next deadline %d, want 30", timers.next())
	}
	timers.run(30)
	if timers.next() != 0 {
		t.Errorf("next deadline %d after the last one", timers.next())
	}
}

// A deadline that a fired one starts at once, such as the next round of a stopped clock, fires in the same run.
func TestTimersFireDeadlinesStartedWhileRunning(t *testing.T) {
	timers, fired := newTimers(), 0
	timers.start(10, func() { timers.start(10, func() { fired++ }) })
	if timers.run(10); fired != 1 {
		t.Errorf("fired %d times, want 1", fired)
	}
}

func newTimers() *timers {
	t := &timers{}
	t.init()
	return t
}
