// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// anyIdentity claims in a store that is being rebuilt, without checking its identity.
type anyIdentity struct{ s *Store }

func (a anyIdentity) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	t := a.s.apps()
	t.any = true
	return t.Claim(ctx, app, member, placement)
}

func (a anyIdentity) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	t := a.s.apps()
	t.any = true
	return t.Move(ctx, app, from, to, number, placement)
}

// Claim implements statestore.Homes.
func (s *Store) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	return s.apps().Claim(ctx, app, member, placement)
}

// Move implements statestore.Homes.
func (s *Store) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	return s.apps().Move(ctx, app, from, to, number, placement)
}

// Absent implements statestore.Homes.
func (s *Store) Absent(
	ctx context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	if err := statestore.CheckApplication(app); err != nil {
		return 0, err
	}
	is, waited, err := s.apps().absent(ctx, ofApp(app), home, number, surely)
	switch {
	case err != nil || is == home:
		return waited, err
	case is == "":
		return 0, statestore.NoHome(app)
	}
	return 0, statestore.OtherHome(app, home, is)
}

// Accept implements statestore.Homes.
func (s *Store) Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if err := statestore.CheckLife(app, life); err != nil {
		return err
	}
	is, err := s.apps().accept(ctx, ofApp(app), home, life)
	switch {
	case err != nil || is == home:
		return err
	case is == "":
		return statestore.NoHome(app)
	}
	return statestore.OtherHome(app, home, is)
}

// AcceptedIn implements statestore.Homes.
func (s *Store) AcceptedIn(ctx context.Context, app creel.ApplicationID) (int64, error) {
	life, ok, err := s.apps().acceptedIn(ctx, ofApp(app))
	if err == nil && !ok {
		err = statestore.NoHome(app)
	}
	return life, err
}

// Home implements statestore.Homes.
func (s *Store) Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	return s.apps().Home(ctx, app)
}

// Placement implements statestore.Homes.
func (s *Store) Placement(ctx context.Context, app creel.ApplicationID) ([]byte, error) {
	placement, ok, err := s.apps().storedPlacement(ctx, ofApp(app))
	if err == nil && !ok {
		err = statestore.NoHome(app)
	}
	return placement, err
}

// Ended implements statestore.Homes.
func (s *Store) Ended(ctx context.Context, app creel.ApplicationID) (time.Time, error) {
	at, ok, err := s.apps().ended(ctx, ofApp(app))
	if err == nil && !ok {
		err = statestore.NoHome(app)
	}
	return at, err
}

// Forget implements statestore.Homes.
func (s *Store) Forget(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration) error {
	return s.apps().Forget(ctx, app, home, ttl)
}

// HomesAt implements statestore.Homes.
func (s *Store) HomesAt(
	ctx context.Context,
	member creel.SubclusterID,
	cursor string,
	limit int,
) ([]statestore.Home, string, error) {
	lines, next, err := s.apps().page(ctx, member, cursor, limit)
	page := make([]statestore.Home, 0, len(lines))
	for _, l := range lines {
		page = append(
			page,
			statestore.Home{
				Application: creel.ApplicationID{ClusterTimestamp: l.ts, ID: int32(l.n)},
				Home:        l.member,
				Claimed:     l.claimed,
				Ends:        l.ends,
			},
		)
	}
	return page, next, err
}

// Sweep implements statestore.Homes.
func (s *Store) Sweep(ctx context.Context, limit int) (int, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return 0, err
	}
	if err := s.fenced(ctx); err != nil {
		return 0, err
	}
	freed, err := s.apps().sweep(ctx, limit)
	if err != nil || freed == limit {
		return freed, err
	}
	more, err := s.reservations().sweep(ctx, limit-freed)
	return freed + more, err
}

// ClaimReservation implements statestore.Reservations.
func (s *Store) ClaimReservation(
	ctx context.Context,
	id creel.ReservationID,
	member creel.SubclusterID,
) (home creel.SubclusterID, fresh bool, err error) {
	home, number, err := s.reservations().Claim(ctx, id, member, nil)
	return home, number == 1, err
}

// MoveReservation implements statestore.Reservations.
func (s *Store) MoveReservation(
	ctx context.Context,
	id creel.ReservationID,
	from, to creel.SubclusterID,
) (creel.SubclusterID, error) {
	return s.reservations().Move(ctx, id, from, to, 0, nil)
}

// ReservationHome implements statestore.Reservations.
func (s *Store) ReservationHome(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error) {
	return s.reservations().Home(ctx, id)
}

// ForgetReservation implements statestore.Reservations.
func (s *Store) ForgetReservation(
	ctx context.Context,
	id creel.ReservationID,
	home creel.SubclusterID,
	ttl time.Duration,
) error {
	return s.reservations().Forget(ctx, id, home, ttl)
}

// ReservationsAt implements statestore.Reservations.
func (s *Store) ReservationsAt(
	ctx context.Context,
	member creel.SubclusterID,
	cursor string,
	limit int,
) ([]statestore.ReservationHome, string, error) {
	lines, next, err := s.reservations().page(ctx, member, cursor, limit)
	page := make([]statestore.ReservationHome, 0, len(lines))
	for _, l := range lines {
		page = append(
			page,
			statestore.ReservationHome{
				Reservation: creel.ReservationID{ClusterTimestamp: l.ts, ID: l.n},
				Home:        l.member,
				Claimed:     l.claimed,
				Ends:        l.ends,
			},
		)
	}
	return page, next, err
}
