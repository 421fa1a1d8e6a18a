// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// UnclearWait is how long a member that cannot disown (Hadoop's) must have answered that it does not know an
// application, before the application may leave it after a submission that got no answer. It exceeds the lease of a
// member (30 s), in which a stop of it is noticed. It exceeds the longest life of unacknowledged bytes of this router
// (SocketLife), after which the kernel drops them, and the 14 s that a slow path was seen to take. Data in the other
// side's kernel is read when that member runs, and its answers show that it ran.
const UnclearWait = 2 * time.Minute

// claimLife is how old a claim may be when a submission under it is sent. A
// router that was paused between the two claims again: meanwhile another may
// have waited for UnclearWait, and left the home.
const claimLife = 10 * time.Second

// SocketLife is how long the kernel may still send data that this process wrote (remote.SocketLife).
const SocketLife = 30 * time.Second

// absent is the fence for a member that cannot disown. The home may be left once the member has answered for long
// enough that it does not know the application. The store counts, for all routers together, so that repeats may go
// through any of them.
func (s *Submitter) absent(
	ctx context.Context,
	app creel.ApplicationID,
	at claim,
	try Try,
) (_ Try, mayLeave bool) {
	absence := &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("%s does not know %s and cannot refuse it for later", at.home, app),
		Why:  "its ResourceManager is not creel's, and a submission may still be on its way to it",
	}
	if long := s.UnclearWait; long > 0 {
		surely := try.Verdict != Unclear && (s.Paused == nil || !s.Paused())
		waited, err := s.Homes.Absent(ctx, app, at.home, at.number, surely)
		if err != nil {
			try.Verdict, try.Err = Unclear, errors.Join(try.Err, absence, err)
			return try, false
		}
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

// tooOld reports whether a claim is too old to forward under, by the monotonic clock or by that of the wall: a pause
// of this process is no excuse here.
func (s *Submitter) tooOld(claimed time.Time) bool {
	if s.Now == nil {
		return false
	}
	now := s.Now()
	return max(now.Sub(claimed), now.Round(0).Sub(claimed.Round(0))) > claimLife
}
