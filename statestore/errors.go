// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
)

// failf makes the error of a refused request.
func failf(kind error, try, what, why string, args ...any) error {
	return &creel.Error{Kind: kind, What: what, Why: fmt.Sprintf(why, args...), Try: try}
}

// Unavailable returns the error of a store that cannot serve, with the reason and the time to retry after.
func Unavailable(why string, retryAfter time.Duration) error {
	return &creel.Error{Kind: creel.ErrUnavailable, What: "state store unavailable", Why: why,
		Try: "repeat the request, it is safe", RetryAfter: retryAfter}
}

// RetryAfter is the pause that an error asks its caller to make, 0 for none.
func RetryAfter(err error) time.Duration {
	var e *creel.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// All stores return these errors in the same words.

// NoHome returns the error for an unknown application.
func NoHome(app creel.ApplicationID) error {
	return failf(creel.ErrApplicationNotFound, "check the id; ended applications are forgotten after a while",
		"no home for "+app.String(), "the state store has no record of it")
}

// NoReservation returns the error for an unknown reservation.
func NoReservation(id creel.ReservationID) error {
	return failf(
		creel.ErrInvalidRequest,
		"check the id",
		"no home for "+id.String(),
		"the state store has no record of it",
	)
}

// OtherHome returns the error for a compare-and-set that found another home.
func OtherHome(what fmt.Stringer, expected, is creel.SubclusterID) error {
	return failf(
		creel.ErrConflict,
		"use the current home",
		"home of "+what.String()+" not changed",
		"it is %q, not %q",
		is,
		expected,
	)
}

// OldEpoch returns the error for a member of an earlier epoch.
func OldEpoch(id creel.SubclusterID, is, came int64) error {
	return failf(
		creel.ErrStale,
		"stop it, or raise its epoch",
		fmt.Sprintf(
			"subcluster %q refused",
			id,
		),
		"epoch %d is registered, this is %d: its ResourceManager has a later epoch",
		is,
		came,
	)
}

// AliveMember returns the error for a member whose name another live process uses.
func AliveMember(id creel.SubclusterID, epoch int64, age time.Duration) error {
	return failf(
		creel.ErrConflict,
		"stop the other process, give this one a name of its own, or start it with --take-over",
		fmt.Sprintf("subcluster %q is taken", id),
		"another process holds it with epoch %d, last heartbeat %s ago",
		epoch, units.Age(age.Seconds()),
	)
}

// NotMember returns the error for a member that must register (again).
func NotMember(id creel.SubclusterID) error {
	return failf(
		creel.ErrNotRegistered,
		"register it",
		fmt.Sprintf("subcluster %q refused", id),
		"it is not registered with that epoch",
	)
}

// NoMember returns the error for an unknown member.
func NoMember(id creel.SubclusterID) error {
	return failf(
		creel.ErrInvalidRequest,
		"check the id",
		fmt.Sprintf("subcluster %q is unknown", id),
		"it never registered, or was removed",
	)
}

// StillMember refuses to remove a member that may be alive.
func StillMember(id creel.SubclusterID) error {
	return failf(creel.ErrConflict, "deregister it, or wait for three leases without a heartbeat",
		fmt.Sprintf("subcluster %q not removed", id), "it may still be alive")
}

// NoUAMRecord returns the error for an attempt without a record.
func NoUAMRecord(a creel.AttemptID) error {
	return failf(
		creel.ErrAttemptNotFound,
		"start the attempt again",
		"no UAM record of "+a.String(),
		"the state store has no record of it",
	)
}

// OtherUAMRecord returns the error for a record that another proxy wrote.
func OtherUAMRecord(a creel.AttemptID, is, expected int64) error {
	return failf(creel.ErrConflict, "read the record; if another proxy wrote it, stop serving the attempt",
		"UAM record of "+a.String()+" not saved", "its revision is %d, not %d", is, expected)
}

// DroppedUAMRecord returns the error for a record that was dropped, or followed by a dropped record of a later
// attempt.
func DroppedUAMRecord(a creel.AttemptID) error {
	return failf(creel.ErrConflict, "stop serving the attempt",
		"UAM record of "+a.String()+" not saved", "it was dropped: the attempt is over")
}

// OtherPolicy returns the error for a policy that was written meanwhile.
func OtherPolicy(q creel.QueuePath, is, expected int64) error {
	return failf(creel.ErrConflict, "read the policy and try again on that version",
		fmt.Sprintf("policy of %q not written", q), "its version is %d, not %d", is, expected)
}

// HeldLease returns the error for a lease with another live holder.
func HeldLease(l Lease) error {
	return failf(
		creel.ErrConflict,
		"wait until it is released or expires",
		fmt.Sprintf("lease %q not acquired", l.Name),
		"%q holds it",
		l.Holder,
	)
}

// LostLease returns the error for a lease that passed to another holder.
func LostLease(l Lease) error {
	return failf(
		creel.ErrStale,
		"step down and acquire it again",
		fmt.Sprintf("lease %q not renewed", l.Name),
		"token %d does not hold it any more",
		l.Token,
	)
}

// OtherKey returns the error for a ring that was rotated meanwhile.
func OtherKey(ring string, is, expect int32) error {
	return failf(creel.ErrConflict, "read the ring again and use its newest key",
		fmt.Sprintf("key ring %q not rotated", ring), "its current key is %d, not %d", is, expect)
}

// OtherSchema returns the error for a store whose format this creel cannot read.
func OtherSchema(is string) error {
	return failf(
		creel.ErrNotPermitted,
		fmt.Sprintf("run a creel that reads schema %s, or point this one at another store or prefix", is),
		"this creel refuses the state store",
		"it is written in schema %s, this creel reads %d to %d",
		is,
		OldestSchema,
		SchemaVersion,
	)
}

// BadCursor returns the error for a cursor that no page returned.
func BadCursor(cursor string) error {
	return failf(
		creel.ErrInvalidRequest,
		"begin the listing again with an empty cursor",
		"listing refused",
		"cursor %.80q is not from an earlier page",
		cursor,
	)
}

// ReadableSchema rejects a stored schema version that this creel cannot read.
func ReadableSchema(word string) error {
	n, err := strconv.Atoi(word)
	if err != nil || n < OldestSchema || n > SchemaVersion {
		return OtherSchema(strconv.Quote(word))
	}
	return nil
}
