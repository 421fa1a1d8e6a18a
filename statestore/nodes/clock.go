// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"sync"
	"time"
)

// clock is the system's clock, as this process knows it. Only calls report a time. Between them the process's own
// clock counts: the time is never ahead of the system's by more than the drift of one clock since the last write.
type clock struct {
	mu     sync.Mutex
	server time.Time // a time by the system's clock, zero: none is known
	local  time.Time // the same moment by this process's clock
	last   time.Time // the latest time that was read
}

// trusted is the time for which a process relies on its own clock.
const trusted = 5 * time.Second

// learn takes the time of a write, which was sent and answered at these times of this process.
func (c *clock) learn(written, sent, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.server.Add(answered.Sub(c.local))
	if latest := written.Add(answered.Sub(sent) + time.Millisecond); now.After(latest) {
		now = latest
	}
	if c.server.IsZero() || now.Before(written) {
		now = written
	}
	c.server, c.local = now, answered
}

// read returns the time, and whether a recent write confirms it.
func (c *clock) read(local time.Time) (now time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() || local.Sub(c.local) > trusted {
		return time.Time{}, false
	}
	now = c.server.Add(local.Sub(c.local))
	// A correction by less than a second does not turn the time back.
	if now.Before(c.last) && c.last.Sub(now) < time.Second {
		now = c.last
	}
	c.last = now
	return now.UTC(), true
}
