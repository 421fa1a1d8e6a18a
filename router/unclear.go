// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// UnclearWait is how long a member that cannot disown (Hadoop's) must have
// answered that it does not know an application, before the application may
// leave it after a submission that got no answer. It is more than the lease of a
// member (30 s), in which a stop of it is noticed; than the longest life of our
// unacknowledged bytes (remote.SocketLife, 30 s), after which the kernel drops
// them; and than the 14 s that a slow path was seen to take. What the kernel of
// the other side holds is read when that member runs, and that it ran is what
// its answers show.
const UnclearWait = 2 * time.Minute

// claimLife is how old a claim may be when a submission under it is sent. A
// router that was paused between the two claims again: meanwhile another may
// have waited for UnclearWait, and left the home.
const claimLife = 10 * time.Second

// unclearMost bounds the applications that Waits knows; the oldest leave, and
// wait from the beginning when they come again.
const unclearMost = 10_000

// Absences counts for how long a member that cannot disown has answered that it
// does not know an application. Waits does, behind a lock and with a clock.
type Absences interface {
	// Absent takes note of such an answer, given after a call under a claim of
	// ours. surely: the member refused the call, or it never arrived. It returns
	// for how long the member has answered so.
	Absent(app creel.ApplicationID, home creel.SubclusterID, number int64, surely bool) time.Duration
	// Unanswered takes note that the member could not be asked: what it answered
	// before proves nothing about what came to it since.
	Unanswered(app creel.ApplicationID)
}

// Waits remembers since when members that cannot disown have answered that they
// do not know an application. It is pure, without locks: router/server owns one
// behind a mutex. Make one with NewWaits.
type Waits struct {
	of    map[creel.ApplicationID]wait
	order []creel.ApplicationID // the oldest first
}

type wait struct {
	home   creel.SubclusterID // "" if it could not be asked since
	number int64              // of the newest claim that is ours
	since  time.Time
}

// NewWaits makes an empty one.
func NewWaits() *Waits { return &Waits{of: map[creel.ApplicationID]wait{}} }

// Absent is that of Absences. now is of a clock that stands still for our own
// pauses. The wait begins anew with a call that got no answer, and with a claim
// of another router: a call of that one may have got none.
func (w *Waits) Absent(
	now time.Time,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) time.Duration {
	before, there := w.of[app]
	if there && before.home == home {
		if number <= before.number && surely {
			return 0 // of two calls of ours at the same time the newer one counts
		}
		if number == before.number+1 && surely {
			before.number = number
			w.of[app] = before
			return now.Sub(before.since)
		}
	}
	if !there {
		w.order = append(w.order, app)
	}
	w.of[app] = wait{home, max(number, before.number), now}
	if len(w.order) > unclearMost {
		delete(w.of, w.order[0])
		w.order = w.order[1:]
	}
	return 0
}

// Unanswered is that of Absences.
func (w *Waits) Unanswered(app creel.ApplicationID) {
	if before, there := w.of[app]; there {
		before.home = ""
		w.of[app] = before
	}
}

// absent is the fence of a member that cannot disown. The home may be left once
// the member has answered for long enough that it does not know the application.
func (s *Submitter) absent(app creel.ApplicationID, at claim, try Try) (_ Try, mayLeave bool) {
	absence := &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("%s does not know %s and cannot refuse it for later", at.home, app),
		Why:  "its ResourceManager is not creel's, and a submission may still be on its way to it",
	}
	if s.Absences != nil {
		long := s.UnclearWait
		waited := s.Absences.Absent(app, at.home, at.number, try.Verdict != Unclear)
		if waited >= long {
			if try.Verdict != Refused || try.Err == nil {
				absence.Why = fmt.Sprintf("it has answered so for %s", long)
				try.Verdict, try.Err = Refused, errors.Join(try.Err, absence)
			}
			return try, true
		}
		absence.Why += fmt.Sprintf("; it may be left when it has answered so for %s", long)
		if s.Now != nil {
			try.Until = s.Now().Add(long - waited)
			absence.Why += ", not before " + try.Until.UTC().Format(time.RFC3339)
		}
	}
	try.Verdict, try.Err = Unclear, errors.Join(try.Err, absence)
	return try, false
}

// tooOld reports whether a claim is too old to forward under, by the monotonic
// clock or by that of the wall: a pause of our own is no excuse here.
func (s *Submitter) tooOld(claimed time.Time) bool {
	if s.Now == nil {
		return false
	}
	now := s.Now()
	return max(now.Sub(claimed), now.Round(0).Sub(claimed.Round(0))) > claimLife
}
