// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// Live is the set of attempts whose AMs may call: launched and not yet ended. The zero value is empty.
type Live struct{ attempts map[creel.AttemptID]bool }

// Has reports whether the AMRM token of an attempt is valid.
func (l *Live) Has(id creel.AttemptID) bool { return l.attempts[id] }

// Recovered adds the attempts that survived the previous process.
func (l *Live) Recovered(a *rm.AppRecord) {
	if a.State.Ended() {
		return
	}
	for _, t := range a.Attempts {
		if !t.State.Ended() {
			l.add(t.ID)
		}
	}
}

// Perform applies an action of the machine. An attempt's token becomes valid before its AM is started.
func (l *Live) Perform(action rm.Action) {
	switch a := action.(type) {
	case rm.LaunchAM:
		l.add(a.Attempt)
	case rm.AttemptEnded:
		delete(l.attempts, a.Attempt)
	}
}

func (l *Live) add(id creel.AttemptID) {
	if l.attempts == nil {
		l.attempts = map[creel.AttemptID]bool{}
	}
	l.attempts[id] = true
}
