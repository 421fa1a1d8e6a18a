// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// homes are the homes of one kind of id, for concurrent callers.
type homes[ID any] struct {
	store *Store
	in    func(*State) Homes[ID]
	tell  func(ID) // reports that a home changed or was deleted, under the lock
}

// Reservations implements statestore.Store.
func (m *Store) Reservations() statestore.Homes[creel.ReservationID] {
	return homes[creel.ReservationID]{store: m, in: (*State).Reservations, tell: func(creel.ReservationID) {}}
}

// Claim implements statestore.Homes.
func (h homes[ID]) Claim(
	ctx context.Context,
	id ID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	err = h.store.write(ctx, func(t *State, now time.Time) (err error) {
		home, number, err = h.in(t).Claim(now, id, member, placement)
		return err
	})
	return home, number, err
}

// Move implements statestore.Homes.
func (h homes[ID]) Move(
	ctx context.Context,
	id ID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	return write(ctx, h.store, func(t *State, now time.Time) (creel.SubclusterID, error) {
		is, moved, err := h.in(t).Move(now, id, from, to, number, placement)
		if moved {
			h.tell(id)
		}
		return is, err
	})
}

// Home implements statestore.Homes.
func (h homes[ID]) Home(_ context.Context, id ID) (creel.SubclusterID, error) {
	return read(h.store, func(t *State, now time.Time) (creel.SubclusterID, error) { return h.in(t).Home(now, id) })
}

// Forget implements statestore.Homes.
func (h homes[ID]) Forget(ctx context.Context, id ID, home creel.SubclusterID, ttl time.Duration) error {
	return h.store.write(ctx, func(t *State, now time.Time) error {
		err := h.in(t).Forget(now, id, home, ttl)
		if err == nil {
			h.tell(id)
		}
		return err
	})
}

// HomesAt implements statestore.Homes.
func (h homes[ID]) HomesAt(
	_ context.Context,
	member creel.SubclusterID,
	cursor string,
	limit int,
) ([]statestore.Home[ID], string, error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return h.in(h.store.state).HomesAt(h.store.clock(), member, cursor, limit)
}
