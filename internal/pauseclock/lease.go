// SPDX-License-Identifier: Apache-2.0

package pauseclock

import (
	"sync"
	"time"
)

// LeaseClock is the clock by which an owner measures its lease. It is the opposite of Clock: it counts pauses of the
// process in full, because the lease's issuer counts them. It follows the faster of the monotonic clock, which stops
// while a machine sleeps or moves, and the wall clock, which may be set back. A wall clock set forward ends a lease
// early, which is harmless. Its times are comparable only with each other. The zero value is ready, and is safe for
// concurrent use.
type LeaseClock struct {
	Read func() time.Time // time.Now if nil

	mu   sync.Mutex
	last time.Time // as read
	held time.Time
}

// Now returns the time by this clock. It never decreases.
func (h *LeaseClock) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	read := h.Read
	if read == nil {
		read = time.Now
	}
	now := read()
	if h.last.IsZero() {
		h.held = now.Round(0)
	} else {
		h.held = h.held.Add(max(now.Sub(h.last), now.Round(0).Sub(h.last.Round(0)), 0))
	}
	h.last = now
	return h.held
}
