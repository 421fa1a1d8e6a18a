// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// These two rules are from Yaq (EuroSys 2016). Hadoop has neither, and both are off by default.

// pace is the measured pace of a node's opportunistic containers.
type pace struct {
	delay time.Duration // between two heartbeats
	mean  time.Duration // run time; 0 before the first end
}

// weight is the part of one container's run time in the mean: an average over about the last 8 containers.
const weight = 8

// Ran records the run time of a container that has exited by itself.
func (s *Scheduler) Ran(x *Item, d time.Duration) {
	if x.Opportunistic {
		s.pace.mean = average(s.pace.mean, d)
	}
	if s.cfg.Estimates {
		s.tasks.ran(x.ID.Attempt.Application, d)
	}
}

// average adds a run time to a mean; 0 is no mean yet.
func average(mean, d time.Duration) time.Duration {
	if d = max(d, time.Millisecond); mean == 0 {
		return d
	}
	return max(mean+(d-mean)/weight, time.Millisecond)
}

// SetDelay records the time between two heartbeats: so long does a free place wait for a container from elsewhere.
func (s *Scheduler) SetDelay(d time.Duration) { s.pace.delay = d }

// capacity is the present length of the opportunistic queue.
func (s *Scheduler) capacity() int {
	c := s.cfg.Capacity()
	if !s.cfg.Adaptive || s.pace.mean == 0 {
		return c
	}
	slots := 0
	for _, x := range s.running {
		if x.Opportunistic {
			slots++
		}
	}
	return min(c, Bound(s.pace.delay, s.pace.mean, slots))
}

// Bound is the shortest queue with which none of the slots is idle between two heartbeats, if containers run for the
// mean time. It is at least 1.
func Bound(delay, mean time.Duration, slots int) int {
	const most = 1 << 20
	if mean <= 0 {
		return most
	}
	each := (max(delay, 0) + mean - 1) / mean
	return int(min(max(each, 1)*time.Duration(max(slots, 1)), most))
}

// position is the place of a container in a queue by work: ahead of those with more work, but behind each that has
// waited for the patience.
func position(list []*Item, x *Item, patience time.Duration) int {
	at := len(list)
	for at > 0 && x.Work < list[at-1].Work && x.Since.Sub(list[at-1].Since) < patience {
		at--
	}
	return at
}
