// SPDX-License-Identifier: Apache-2.0

// Package ratelog rate-limits log lines that clients can trigger.
package ratelog

import (
	"sync"
	"time"
)

// Every is the time for which a Line is silent after a write.
const Every = time.Minute

// Line is one line of a log. The zero value is ready, and counts as never written. Any number of goroutines may use it.
type Line struct {
	mu      sync.Mutex
	written time.Time
	count   int
}

// Happened counts an event, and reports whether to write the line now. It also returns the number of events since the
// last write.
func (l *Line) Happened(now time.Time) (count int, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if !l.written.IsZero() && now.Sub(l.written) < Every {
		return l.count, false
	}
	count, l.count, l.written = l.count, 0, now
	return count, true
}
