// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel"
)

// finishedAttempts remembers the attempts whose AMs have unregistered. If the response was lost with its connection,
// the AM unregisters again on a new one, and must receive the confirmation. Hadoop's ResourceManager also answers so
// while it knows the application, but rejects the login. The AM then ends with an error although its application
// succeeded. creel accepts the login for as long as an AM may be silent; an AM that has not repeated its call by then
// is gone.
type finishedAttempts struct {
	grace time.Duration
	at    map[creel.AttemptID]time.Time
	order []creel.AttemptID // in order of their ends, oldest first
}

// add records that an attempt finished at this time.
func (f *finishedAttempts) add(id creel.AttemptID, at time.Time) {
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

// has reports whether an attempt finished within the grace period.
func (f *finishedAttempts) has(id creel.AttemptID, now time.Time) bool {
	at, ok := f.at[id]
	return ok && now.Sub(at) < f.grace
}
