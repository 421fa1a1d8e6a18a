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

// Reservations is the part of the state store that a Server needs for the homes of reservations: see the promises of
// package statestore.
type Reservations interface {
	ClaimReservation(
		ctx context.Context, id creel.ReservationID, member creel.SubclusterID,
	) (home creel.SubclusterID, fresh bool, err error)
	ReservationHome(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error)
	ForgetReservation(ctx context.Context, id creel.ReservationID, home creel.SubclusterID, ttl time.Duration) error
}

// keptAfter is how long the home of a reservation is stored after its deadline.
const keptAfter = 24 * time.Hour

// Reservation is the part of a reservation's submission that the router reads.
type Reservation struct {
	ID       creel.ReservationID
	Queue    creel.QueuePath
	User     string
	Deadline time.Time // when its plan is over; zero: never, it recurs
}

// Reserve finds a home for a reservation by the policy of its queue, or its present one, and forwards it there. The
// home of a rejected one is forgotten, so that another try may find another; if the answer was lost it stays, since
// the plan may have it.
func (s *Server) Reserve(
	ctx context.Context, r Reservation, forward func(ctx context.Context, m *remote.Member) error,
) error {
	home, err := s.conf.Reservations.ReservationHome(ctx, r.ID)
	fresh := false
	if errors.Is(err, creel.ErrInvalidRequest) { // it has none
		view := s.View()
		var chosen creel.SubclusterID
		chosen, _, err = s.Policy(view, r.Queue).
			Home(view, policies.Submission{Queue: r.Queue, User: r.User}, nil, s.random())
		if err == nil {
			home, fresh, err = s.conf.Reservations.ClaimReservation(ctx, r.ID, chosen)
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
		// A failure costs only a leftover record; calls about a forgotten one ask all members.
		_ = s.conf.Reservations.ForgetReservation(ctx, r.ID, home, max(0, time.Until(r.Deadline))+keptAfter)
	case fresh && (verdict == router.Refused || verdict == router.NotSent):
		_ = s.conf.Reservations.ForgetReservation(ctx, r.ID, home, 0)
	}
	return err
}

// AtReservation calls the home of a reservation. One without a record was made without a router, or long ago: all
// members are asked, and the answer is that of the member that knows it. That none knows it is certain only if all
// answer.
func AtReservation[T any](
	ctx context.Context, s *Server, id creel.ReservationID,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (answer T, err error) {
	home, err := s.conf.Reservations.ReservationHome(ctx, id)
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

// Unreserve is AtReservation of the call that deletes it.
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
		_ = s.conf.Reservations.ForgetReservation(ctx, id, a.by, 0) // it expires in time all the same
	}
	return a.answer, err
}

// HasHome reports whether the home of a reservation is recorded, or the record cannot be read: then AtReservation has
// the answer. Lists of one without a home ask all members: those that do not know it have an empty list of it.
func (s *Server) HasHome(ctx context.Context, id creel.ReservationID) bool {
	home, err := s.reservedAt(ctx, id)
	return home != "" || err != nil
}

// reservedAt returns the home of the reservation that an application runs in, "" if it names none or one without a
// claim.
func (s *Server) reservedAt(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error) {
	if id.IsZero() {
		return "", nil
	}
	home, err := s.conf.Reservations.ReservationHome(ctx, id)
	if errors.Is(err, creel.ErrInvalidRequest) {
		return "", nil
	}
	return home, err
}

// OfNoPlan finds out by its text whether a rejection is of a member that has no reservations, or none in a queue:
// many rejections share its class, or code. To errors.Is it is then that the queue is not there, and if the member
// has none at all that they are not enabled.
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

// noPlan is a rejection of OfNoPlan.
type noPlan struct {
	error
	kind error
}

// Unwrap returns the rejection, and its meaning, for errors.Is.
func (e noPlan) Unwrap() []error { return []error{e.error, creel.ErrQueueNotFound, e.kind} }
