// SPDX-License-Identifier: Apache-2.0

package nm

import "time"

// These are the first and the longest pause between two tries of an unanswered call.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// Pace decides when a node calls its ResourceManager. One call is in flight at a time. Its driver sets a timer for
// each time that Wake, Hurry or Next returns, and makes a call if Fire reports that one is due. The zero value is
// ready.
type Pace struct {
	// Eager is the time between a container's end and the heartbeat that reports it. 0 waits for the next regular
	// heartbeat, like Hadoop's nodes.
	Eager time.Duration

	calling bool      // a call is in flight
	soon    bool      // an early heartbeat is due once that call has ended
	halted  bool      // no further calls
	due     time.Time // of the next call, if a timer is set
	backoff time.Duration
}

// Wake requests a call at a time. It reports whether the driver must set a timer: not if a call is in flight, or a
// timer is set for an earlier or equal time.
func (p *Pace) Wake(at time.Time) bool {
	if p.halted || p.calling || !p.due.IsZero() && !at.Before(p.due) {
		return false
	}
	p.due = at
	return true
}

// Fire reports whether the timer for a time must make a call, which is then in flight. It must not if an earlier
// timer was set meanwhile.
func (p *Pace) Fire(at time.Time) bool {
	if p.calling || p.halted || !p.due.Equal(at) {
		return false
	}
	p.calling, p.due = true, time.Time{}
	return true
}

// Hurry makes the next heartbeat earlier after a container on an active node has ended. It returns the time for a
// timer; set is false if none is needed.
func (p *Pace) Hurry(now time.Time, active bool) (at time.Time, set bool) {
	switch {
	case p.Eager <= 0 || !active:
		return at, false
	case p.calling:
		p.soon = true
		return at, false
	}
	at = now.Add(p.Eager)
	return at, p.Wake(at)
}

// Ended records that the call has ended, before its answer is processed.
func (p *Pace) Ended() { p.calling = false }

// Next returns the time of the next call after an ended one, given its start and whether it was answered; set is
// false if a timer is set for an earlier time. The time is never before now, because an answer may take longer than
// the interval. An unanswered heartbeat is sent again, with growing pauses.
func (p *Pace) Next(began, now time.Time, interval time.Duration, answered bool) (at time.Time, set bool) {
	switch {
	case !answered:
		p.backoff = min(max(2*p.backoff, firstBackoff), lastBackoff)
		at = now.Add(p.backoff)
	case p.soon:
		p.backoff, p.soon = 0, false
		at = now.Add(p.Eager)
	default:
		p.backoff = 0
		if at = began.Add(interval); at.Before(now) {
			at = now
		}
	}
	return at, p.Wake(at)
}

// Halt ends all calls: the ResourceManager has rejected the node.
func (p *Pace) Halt() { p.halted = true }
