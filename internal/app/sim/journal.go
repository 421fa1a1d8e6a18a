// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// journal is what is durable of a ResourceManager.
type journal struct {
	epochs   int64
	apps     map[creel.ApplicationID]rm.AppRecord
	attempts map[creel.AttemptID]rm.AttemptRecord
	disowned map[creel.ApplicationID]int64
}

// replay gives the journal's records as the next epoch finds them.
func (j *journal) replay() []rm.AppRecord {
	out := make([]rm.AppRecord, 0, len(j.apps))
	for _, a := range j.apps {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b rm.AppRecord) int { return a.Submission.ID.Compare(b.Submission.ID) })
	var attempts []rm.AttemptRecord
	for _, t := range j.attempts {
		attempts = append(attempts, t)
	}
	slices.SortFunc(attempts, func(a, b rm.AttemptRecord) int { return a.ID.Compare(b.ID) })
	for i := range out {
		a := &out[i]
		a.Submitted, a.Started, a.Finished, a.Lifetime = ms(a.Submitted), ms(a.Started), ms(a.Finished), ms(a.Lifetime)
		a.Attempts = slices.Clone(a.Attempts)
		at, _ := slices.BinarySearchFunc(
			attempts,
			a.Submission.ID,
			func(t rm.AttemptRecord, id creel.ApplicationID) int { return t.ID.Application.Compare(id) },
		)
		for ; at < len(attempts) && attempts[at].ID.Application == a.Submission.ID; at++ {
			t := attempts[at]
			t.Started, t.Finished = ms(t.Started), ms(t.Finished)
			k := slices.IndexFunc(a.Attempts, func(o rm.AttemptRecord) bool { return o.ID.Attempt >= t.ID.Attempt })
			switch {
			case k < 0:
				a.Attempts = append(a.Attempts, t)
			case a.Attempts[k].ID == t.ID:
				a.Attempts[k] = t
			default:
				a.Attempts = slices.Insert(a.Attempts, k, t)
			}
		}
	}
	return out
}

// refused returns what was disowned, in order.
func (j *journal) refused() (out []rm.Disowned) {
	for id, claim := range j.disowned {
		out = append(out, rm.Disowned{App: id, Claim: claim})
	}
	slices.SortFunc(out, func(a, b rm.Disowned) int { return a.App.Compare(b.App) })
	return out
}

// ms is a time as the journal keeps it.
func ms(t time.Time) time.Time { return t.Truncate(time.Millisecond) }

// put makes an action's record durable.
func (j *journal) put(a rm.Action) {
	switch a := a.(type) {
	case rm.SaveApp:
		if a.Deleted {
			delete(j.apps, a.Record.Submission.ID)
			return
		}
		j.apps[a.Record.Submission.ID] = a.Record
	case rm.SaveAttempt:
		j.attempts[a.Record.ID] = a.Record
	case rm.SaveDisowned:
		if a.Deleted {
			delete(j.disowned, a.Disowned.App)
			return
		}
		j.disowned[a.Disowned.App] = a.Disowned.Claim
	}
}
