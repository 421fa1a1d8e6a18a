// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

func ofApp(a creel.ApplicationID) homeKey         { return locate(a.ClusterTimestamp, int64(a.ID)) }
func ofReservation(r creel.ReservationID) homeKey { return locate(r.ClusterTimestamp, r.ID) }

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
	return claimApp(ctx, t, app, member, placement)
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
	return moveApp(ctx, t, app, from, to, number, placement)
}

func claimApp(
	ctx context.Context,
	t table,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	if err := statestore.CheckApplication(app); err != nil {
		return "", 0, err
	}
	if err := subcluster.ValidID(member); err != nil {
		return "", 0, err
	}
	if err := statestore.CheckPlacement(placement); err != nil {
		return "", 0, err
	}
	return t.claim(ctx, ofApp(app), member, placement)
}

// Claim implements statestore.Homes.
func (s *Store) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	return claimApp(ctx, s.apps(), app, member, placement)
}

// Move implements statestore.Homes.
func (s *Store) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	return moveApp(ctx, s.apps(), app, from, to, number, placement)
}

func moveApp(
	ctx context.Context,
	t table,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	if err := statestore.CheckApplication(app); err != nil {
		return "", err
	}
	if err := subcluster.ValidID(to); err != nil {
		return "", err
	}
	if err := statestore.CheckPlacement(placement); err != nil {
		return "", err
	}
	is, ok, err := t.move(ctx, ofApp(app), app.String(), from, to, number, placement)
	switch {
	case err != nil || ok:
		return is, err
	case is == "":
		return "", statestore.NoHome(app)
	}
	return is, statestore.OtherHome(app, from, is)
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
	is, err := s.apps().find(ctx, ofApp(app))
	if err == nil && is == "" {
		err = statestore.NoHome(app)
	}
	return is, err
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
	if err := statestore.CheckApplication(app); err != nil {
		return err
	}
	if err := statestore.CheckTTL(ttl); err != nil {
		return err
	}
	is, err := s.apps().forget(ctx, ofApp(app), app.String(), home, ttl)
	if err == nil && is != home {
		err = statestore.OtherHome(app, home, is)
	}
	return err
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
	if err := statestore.CheckReservation(id); err != nil {
		return "", false, err
	}
	if err := subcluster.ValidID(member); err != nil {
		return "", false, err
	}
	home, number, err := s.reservations().claim(ctx, ofReservation(id), member, nil)
	return home, number == 1, err
}

// MoveReservation implements statestore.Reservations.
func (s *Store) MoveReservation(
	ctx context.Context,
	id creel.ReservationID,
	from, to creel.SubclusterID,
) (creel.SubclusterID, error) {
	if err := statestore.CheckReservation(id); err != nil {
		return "", err
	}
	if err := subcluster.ValidID(to); err != nil {
		return "", err
	}
	is, ok, err := s.reservations().move(ctx, ofReservation(id), id.String(), from, to, 0, nil)
	switch {
	case err != nil || ok:
		return is, err
	case is == "":
		return "", statestore.NoReservation(id)
	}
	return is, statestore.OtherHome(id, from, is)
}

// ReservationHome implements statestore.Reservations.
func (s *Store) ReservationHome(ctx context.Context, id creel.ReservationID) (creel.SubclusterID, error) {
	is, err := s.reservations().find(ctx, ofReservation(id))
	if err == nil && is == "" {
		err = statestore.NoReservation(id)
	}
	return is, err
}

// ForgetReservation implements statestore.Reservations.
func (s *Store) ForgetReservation(
	ctx context.Context,
	id creel.ReservationID,
	home creel.SubclusterID,
	ttl time.Duration,
) error {
	if err := statestore.CheckReservation(id); err != nil {
		return err
	}
	if err := statestore.CheckTTL(ttl); err != nil {
		return err
	}
	is, err := s.reservations().forget(ctx, ofReservation(id), id.String(), home, ttl)
	if err == nil && is != home {
		err = statestore.OtherHome(id, home, is)
	}
	return err
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
