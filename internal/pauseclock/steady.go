// SPDX-License-Identifier: Apache-2.0

package pauseclock

import "time"

// SteadyClock is the time of a process whose deadlines are wall clock times: it never decreases, and never stops while
// the process runs. If the wall clock is set forward, SteadyClock follows at once. That looks like a pause (see
// [Watch]), after which others get extra time. If the wall clock is set back, SteadyClock continues by the monotonic
// clock, slower by a tenth until the wall clock has caught up. So a deadline is late by a tenth of its length at most,
// not by the whole change of the clock. The zero value is ready. It has one owner.
type SteadyClock struct {
	read time.Time // of the last Now
	at   time.Time
}

// slew is the divisor of the time by which a SteadyClock ahead of the wall clock is slower: a tenth. That is more than
// the drift of any clock.
const slew = 10

// Now returns the time for a caller's reading of time.Now() and of the wall clock. The two readings differ only in
// tests.
func (s *SteadyClock) Now(read, wall time.Time) time.Time {
	var passed time.Duration
	if !s.read.IsZero() {
		passed = read.Sub(s.read)
	}
	if passed < 0 {
		return s.at // an earlier reading that arrives late
	}
	s.read = read
	return s.Step(passed, wall)
}

// Step is Now for callers without a monotonic clock: passed is the monotonic time since the last Step.
func (s *SteadyClock) Step(passed time.Duration, wall time.Time) time.Time {
	wall = wall.Round(0)
	at := s.at.Add(max(0, passed))
	if ahead := at.Sub(wall); s.at.IsZero() || ahead <= 0 {
		at = wall
	} else {
		at = at.Add(-min(ahead, passed/slew))
	}
	s.at = at
	return at
}

// Ahead returns the time by which the SteadyClock is ahead of a wall clock that was set back, otherwise 0.
func (s *SteadyClock) Ahead(wall time.Time) time.Duration {
	return max(0, s.at.Sub(wall.Round(0)))
}
