// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// applications implements statestore.Applications.
type applications struct{ homesOf[creel.ApplicationID] }

// withoutIdentity makes claims in a store that is being rebuilt, without a check of its identity.
func (a applications) withoutIdentity() statestore.Claims[creel.ApplicationID] {
	a.table.any = true
	return a
}

// Absent implements statestore.Applications.
func (a applications) Absent(
	ctx context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	if err := statestore.CheckApplication(app); err != nil {
		return 0, err
	}
	is, waited, err := a.table.absent(ctx, ofApp(app), home, number, surely)
	switch {
	case err != nil || is == home:
		return waited, err
	case is == "":
		return 0, statestore.NoHome(app)
	}
	return 0, statestore.OtherHome(app, home, is)
}

// Accept implements statestore.Applications.
func (a applications) Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if err := statestore.CheckLife(app, life); err != nil {
		return err
	}
	is, err := a.table.accept(ctx, ofApp(app), home, life)
	switch {
	case err != nil || is == home:
		return err
	case is == "":
		return statestore.NoHome(app)
	}
	return statestore.OtherHome(app, home, is)
}

// AcceptedIn implements statestore.Applications.
func (a applications) AcceptedIn(ctx context.Context, app creel.ApplicationID) (int64, error) {
	life, ok, err := a.table.acceptedIn(ctx, ofApp(app))
	if err == nil && !ok {
		err = statestore.NoHome(app)
	}
	return life, err
}

// Placement implements statestore.Applications.
func (a applications) Placement(ctx context.Context, app creel.ApplicationID) ([]byte, error) {
	placement, ok, err := a.table.storedPlacement(ctx, ofApp(app))
	if err == nil && !ok {
		err = statestore.NoHome(app)
	}
	return placement, err
}

// Ended implements statestore.Applications.
func (a applications) Ended(ctx context.Context, app creel.ApplicationID) (time.Time, error) {
	at, ok, err := a.table.ended(ctx, ofApp(app))
	if err == nil && !ok {
		err = statestore.NoHome(app)
	}
	return at, err
}

// Sweep implements statestore.Store.
func (s *Store) Sweep(ctx context.Context, limit int) (int, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return 0, err
	}
	if err := s.fenced(ctx); err != nil {
		return 0, err
	}
	freed, err := s.applications.table.sweep(ctx, limit)
	if err != nil || freed == limit {
		return freed, err
	}
	more, err := s.reservations.table.sweep(ctx, limit-freed)
	return freed + more, err
}
