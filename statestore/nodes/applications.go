// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// applications implements statestore.Applications.
type applications struct{ homesOf[creel.ApplicationID] }

// withoutIdentity makes claims in a store that is being rebuilt.
func (a applications) withoutIdentity() statestore.Claims[creel.ApplicationID] {
	a.any = true
	return a
}

// Absent implements statestore.Applications.
func (a applications) Absent(
	ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, number int64, surely bool,
) (waited time.Duration, err error) {
	if err := statestore.CheckApplication(app); err != nil {
		return 0, err
	}
	err = a.engine.change(ctx, false, func(t *txn) error {
		h, err := a.in(t, app)
		if err == nil {
			waited, err = h.Absent(t.now, app, home, number, surely)
		}
		return err
	})
	return waited, err
}

// Accept implements statestore.Applications.
func (a applications) Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if err := statestore.CheckLife(app, life); err != nil {
		return err
	}
	return a.engine.change(ctx, false, func(t *txn) error {
		h, err := a.in(t, app)
		if err == nil {
			err = h.Accept(t.now, app, home, life)
		}
		return err
	})
}

// AcceptedIn implements statestore.Applications.
func (a applications) AcceptedIn(ctx context.Context, app creel.ApplicationID) (life int64, err error) {
	err = a.look(ctx, app, func(t *txn, h *homeShard) (err error) {
		life, err = h.AcceptedIn(t.now, app)
		return err
	})
	return life, err
}

// Placement implements statestore.Applications.
func (a applications) Placement(ctx context.Context, app creel.ApplicationID) (placement []byte, err error) {
	err = a.look(ctx, app, func(t *txn, h *homeShard) (err error) {
		placement, err = h.Placement(t.now, app)
		return err
	})
	return placement, err
}

// Ended implements statestore.Applications.
func (a applications) Ended(ctx context.Context, app creel.ApplicationID) (at time.Time, err error) {
	err = a.look(ctx, app, func(t *txn, h *homeShard) (err error) {
		at, err = h.Ended(t.now, app)
		return err
	})
	return at, err
}
