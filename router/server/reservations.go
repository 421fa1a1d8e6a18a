// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// Reservations is the part of the state store that a Server needs for the homes of reservations; package statestore
// documents it.
type Reservations interface {
	Claim(
		ctx context.Context, id creel.ReservationID, member creel.SubclusterID, placement []byte,
	) (home creel.SubclusterID, number int64, err error)
	Home(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error)
	Forget(ctx context.Context, id creel.ReservationID, home creel.SubclusterID, ttl time.Duration) error
}

// keptAfter is the time for which the home of a reservation is stored after its deadline.
const keptAfter = 24 * time.Hour

// Reservation is the part of a reservation's submission that the router reads.
type Reservation struct {
	ID       creel.ReservationID
	Queue    creel.QueuePath
	User     string
	Deadline time.Time // end of its plan; zero: it recurs without an end
}

// Reserve finds a home for a reservation by the policy of its queue, or its present home, and forwards it there. If
// the home rejects it, the record of the home is deleted, so that another try may find another home. If the answer
// was lost, the record stays, since the home may have the reservation.
func (s *Server) Reserve(
	ctx context.Context, r Reservation, forward func(ctx context.Context, m *remote.Member) error,
) error {
	home, err := s.conf.Reservations.Home(ctx, r.ID)
	fresh := false
	if errors.Is(err, creel.ErrInvalidRequest) { // it has none
		view := s.View()
		var chosen creel.SubclusterID
		chosen, _, err = s.Policy(view, r.Queue).
			Home(view, policies.Submission{Queue: r.Queue, User: r.User}, nil, s.random())
		if err == nil {
			var number int64
			home, number, err = s.conf.Reservations.Claim(ctx, r.ID, chosen, nil)
			fresh = number == 1
		}
	}
	if err != nil {
		return err
	}
	m, err := s.Member(home)
	if err != nil {
		return err
	}
	err = forward(ctx, m)
	switch verdict := VerdictOf(err); {
	case verdict == router.Accepted && !r.Deadline.IsZero():
		// A failure only leaves a record behind; without a record calls ask all members.
		_ = s.conf.Reservations.Forget(ctx, r.ID, home, max(0, time.Until(r.Deadline))+keptAfter)
	case fresh && (verdict == router.Refused || verdict == router.NotSent):
		_ = s.conf.Reservations.Forget(ctx, r.ID, home, 0)
	}
	return err
}

// AtReservation calls the home of a reservation. Without a record the reservation was made without a router, or long
// ago. Then it asks all members and returns the answer of the member that has it. Only if all answer is it certain
// that no member has it.
func AtReservation[T any](
	ctx context.Context, s *Server, id creel.ReservationID,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (answer T, err error) {
	home, err := s.conf.Reservations.Home(ctx, id)
	if err == nil {
		m, err := s.Member(home)
		if err != nil {
			return answer, err
		}
		return call(ctx, m)
	}
	if !errors.Is(err, creel.ErrInvalidRequest) {
		return answer, err
	}
	var refused, none, silent error
	for _, p := range Ask(ctx, s, call) {
		switch {
		case p.Err == nil:
			return p.Value, nil
		case errors.Is(p.Err, creel.ErrUnavailable):
			silent = cmp.Or(silent, p.Err)
		case errors.Is(OfNoPlan(p.Err), creel.ErrQueueNotFound):
			none = cmp.Or(none, p.Err)
		case VerdictOf(p.Err) == router.Refused:
			refused = cmp.Or(refused, p.Err)
		}
	}
	return answer, cmp.Or(silent, refused, none, err)
}

// Unreserve is AtReservation for the call that deletes the reservation.
func Unreserve[T any](
	ctx context.Context, s *Server, id creel.ReservationID,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (T, error) {
	type said struct {
		answer T
		by     creel.SubclusterID
	}
	a, err := AtReservation(ctx, s, id, func(ctx context.Context, m *remote.Member) (said, error) {
		answer, err := call(ctx, m)
		return said{answer, m.ID}, err
	})
	if err == nil {
		_ = s.conf.Reservations.Forget(ctx, id, a.by, 0) // on failure the record expires later
	}
	return a.answer, err
}

// HasHome reports whether the home of a reservation is recorded, or the record cannot be read. Then a list of it
// comes from AtReservation. Otherwise all members are asked: members without the reservation return an empty list.
func (s *Server) HasHome(ctx context.Context, id creel.ReservationID) bool {
	home, err := s.reservedAt(ctx, id)
	return home != "" || err != nil
}

// reservedAt returns the home of an application's reservation, "" if it has none or the reservation has no claim.
func (s *Server) reservedAt(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error) {
	if id.IsZero() {
		return "", nil
	}
	home, err := s.conf.Reservations.Home(ctx, id)
	if errors.Is(err, creel.ErrInvalidRequest) {
		return "", nil
	}
	return home, err
}

// OfNoPlan recognises the rejection of a member without reservations, or without reservations in a queue. It goes by
// the text: many rejections share the class or code. For errors.Is the result is then creel.ErrQueueNotFound. If the
// member has no reservations at all, it is also creel.ErrNotEnabled.
func OfNoPlan(err error) error {
	var words string
	var refused *hrpc.RemoteError
	var status *remote.StatusError
	switch {
	case errors.As(err, &refused):
		words = refused.Message
	case errors.As(err, &status):
		words = string(status.Body)
	}
	switch {
	case strings.Contains(words, "Reservation is not enabled"),
		strings.Contains(words, "Unable to create new reservation"): // by REST
		return noPlan{err, creel.ErrNotEnabled}
	case strings.Contains(words, "is not managed by reservation system"):
		return noPlan{err, creel.ErrQueueNotFound}
	}
	return err
}

// noPlan is a rejection recognised by OfNoPlan.
type noPlan struct {
	error
	kind error
}

// Unwrap returns the rejection and its kinds, for errors.Is.
func (e noPlan) Unwrap() []error { return []error{e.error, creel.ErrQueueNotFound, e.kind} }
