// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel"
)

// finished are the attempts whose AMs have said that they are done. The answer may
// have been lost with its connection; the AM says it again, on a new one, and is to
// be told that it was heard. Hadoop's ResourceManager answers so, too, as long as it
// knows the application, but refuses the login: there the AM ends with an error though
// its application has succeeded. We let it in for as long as an AM may be silent: one
// that has not repeated itself by then is gone.
type finished struct {
	grace time.Duration
	at    map[creel.AttemptID]time.Time
	order []creel.AttemptID // as they finished, the first first
}

// add notes that an attempt finished at that time.
func (f *finished) add(id creel.AttemptID, at time.Time) {
	if f.at == nil {
		f.at = map[creel.AttemptID]time.Time{}
	}
	n := 0
	for n < len(f.order) && !f.has(f.order[n], at) {
		delete(f.at, f.order[n])
		n++
	}
	f.order = append(f.order[n:], id)
	f.at[id] = at
}

// has reports whether an attempt has finished a moment ago.
func (f *finished) has(id creel.AttemptID, now time.Time) bool {
	at, ok := f.at[id]
	return ok && now.Sub(at) < f.grace
}
