// SPDX-License-Identifier: Apache-2.0

package pauseclock

import (
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

var wallStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A wall clock that is set back by ten minutes holds nothing up: of an hour that passes,
// at least nine tenths pass by this clock too, and then it is the wall clock again.
func TestTimeContinuesAfterClockSetBack(t *testing.T) {
	var s SteadyClock
	begin := s.Step(0, wallStart)
	wall := wallStart.Add(-10 * time.Minute)
	after := s.Step(time.Second, wall.Add(time.Second))
	if passed := after.Sub(begin); passed != 900*time.Millisecond {
		t.Errorf("in the second in which the clock was set back %v passed", passed)
	}
	if ahead := s.Ahead(wall.Add(time.Second)); ahead != 10*time.Minute-100*time.Millisecond {
		t.Errorf("it is ahead by %v", ahead)
	}
	for m := 1; m <= 101; m++ {
		after = s.Step(time.Minute, wall.Add(time.Second+time.Duration(m)*time.Minute))
	}
	if now := wall.Add(time.Second + 101*time.Minute); !after.Equal(now) || s.Ahead(now) != 0 {
		t.Errorf("101 minutes later it is %v, and the wall clock says %v", after, now)
	}
}

// A wall clock that is set forward, or runs on while the machine is paused, is followed at once.
func TestTimeFollowsClockSetForward(t *testing.T) {
	var s SteadyClock
	s.Step(0, wallStart)
	if at := s.Step(time.Second, wallStart.Add(time.Hour)); !at.Equal(wallStart.Add(time.Hour)) {
		t.Errorf("it is %v", at)
	}
}

// Over time.Now it is time.Now.
func TestATimeOfReadings(t *testing.T) {
	var s SteadyClock
	read := time.Now()
	if at := s.Now(read, read); !at.Equal(read.Round(0)) {
		t.Errorf("%v is %v", read, at)
	}
	later := read.Add(3 * time.Second) // moves both clocks
	if at := s.Now(later, later); !at.Equal(later.Round(0)) {
		t.Errorf("%v is %v", later, at)
	}
	if at := s.Now(read, read); !at.Equal(later.Round(0)) {
		t.Errorf("an earlier reading turned it back to %v", at)
	}
}

// Whatever happens to the wall clock, the time never goes back, and while the process runs it passes at nine tenths
// of the true speed at least.
func TestATimeNeverStandsStill(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var s SteadyClock
		wall := wallStart
		before := s.Step(0, wall)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			passed := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "passed"))
			jump := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "jump"))
			if rapid.Bool().Draw(t, "set") {
				wall = wall.Add(jump)
			}
			wall = wall.Add(passed)
			after := s.Step(passed, wall)
			if after.Sub(before) < passed-passed/slew {
				t.Fatalf("of %v only %v passed", passed, after.Sub(before))
			}
			if after.Before(wall) {
				t.Fatalf("it is %v, behind a wall clock of %v", after, wall)
			}
			before = after
		}
	})
}
