// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// UnclearWait applies to members that cannot disown (Hadoop's), after a submission without an answer. The member must
// have answered for this time that it does not know the application before the application may leave it. The time
// exceeds a member's lease (30 s), within which a stopped member is noticed. It exceeds SocketLife, after which the
// kernel drops this router's unacknowledged bytes, and the 14 s measured on a slow path. The member's process reads
// the data in its kernel when it runs, and its answers show that it ran.
const UnclearWait = 2 * time.Minute

// claimLife is the greatest age of a claim when a submission under it is sent. A router that was paused between the
// claim and the submission claims again: meanwhile another router may have waited for UnclearWait and left the home.
const claimLife = 10 * time.Second

// SocketLife is the time for which the kernel may still send data that this process wrote (remote.SocketLife).
const SocketLife = 30 * time.Second

// absent is the fence for a member that cannot disown. The home may be left once the member has answered for
// UnclearWait that it does not know the application. The store measures this time for all routers together, so that
// repeats may go through any router.
func (s *Submitter) absent(
	ctx context.Context,
	app creel.ApplicationID,
	at claim,
	try Try,
) (_ Try, mayLeave bool) {
	absence := &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("%s does not know %s and cannot reject it later", at.home, app),
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

// tooOld reports whether a claim is too old for forwarding, by the monotonic clock or the wall clock. Pauses of this
// process count.
func (s *Submitter) tooOld(claimed time.Time) bool {
	if s.Now == nil {
		return false
	}
	now := s.Now()
	return max(now.Sub(claimed), now.Round(0).Sub(claimed.Round(0))) > claimLife
}
