// SPDX-License-Identifier: Apache-2.0

package awake

import (
	"sync"
	"time"
)

// Held is the time by which one keeps what one holds under a lease. It is the
// opposite of Clock: a pause of our own counts in full, since whoever gave the
// lease counts it. It goes by the faster of the monotonic clock, which stands
// still while a machine sleeps or moves, and the wall clock, which may be set
// back; set forward, it ends a lease early, which harms nobody. Moments of it are
// comparable with each other only. The zero value is ready, and is safe for
// concurrent use.
type Held struct {
	Read func() time.Time // time.Now if nil

	mu   sync.Mutex
	last time.Time // as read
	held time.Time
}

// Now is the moment by this clock. It never goes back.
func (h *Held) Now() time.Time {
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
