// SPDX-License-Identifier: Apache-2.0

package nm

import "time"

// The first and the longest pause between two tries of an unanswered call.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// Pace decides when a node calls its ResourceManager. One call is on its way at a
// time. Its driver sets a timer for each time that Wake, Hurry or Next asks for,
// and makes a call when Fire reports that it is due. The zero value is ready.
type Pace struct {
	// Eager is how soon a heartbeat is sent after a container has ended. 0 waits
	// for the next one's time, as Hadoop's nodes do.
	Eager time.Duration

	calling bool      // a call is on its way
	soon    bool      // a heartbeat is due before its time, once that call has ended
	halted  bool      // no call is made any more
	due     time.Time // of the next call, when a timer is set
	backoff time.Duration
}

// Wake asks for a call at a time. It reports whether a timer is to be set for it:
// not if a call is on its way, or set for as soon.
func (p *Pace) Wake(at time.Time) bool {
	if p.halted || p.calling || !p.due.IsZero() && !at.Before(p.due) {
		return false
	}
	p.due = at
	return true
}

// Fire reports whether the timer that was set for a time is to make a call, which
// then is on its way. It is not if an earlier one was set meanwhile.
func (p *Pace) Fire(at time.Time) bool {
	if p.calling || p.halted || !p.due.Equal(at) {
		return false
	}
	p.calling, p.due = true, time.Time{}
	return true
}

// Hurry brings the next heartbeat forward, for a container has ended on a node
// that is active. It returns the time to set a timer for, or false.
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

// Next returns the time of the next call after one that began at a time and has ended, and was answered or not; false
// when a timer is set for an earlier one. It is never before now: an answer may take longer than the interval. The
// same heartbeat is sent again, with growing pauses while it is unanswered.
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

// Halt ends all calls: the ResourceManager does not want the node.
func (p *Pace) Halt() { p.halted = true }
