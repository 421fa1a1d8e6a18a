// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// homeIDs is one kind of id that has homes.
type homeIDs[ID fmt.Stringer] struct {
	check   func(ID) error
	unknown func(ID) error // for an id without a home
	at      func(ID) homeKey
	id      func(ts, n int64) ID
}

var (
	appIDs = homeIDs[creel.ApplicationID]{
		check: statestore.CheckApplication, unknown: statestore.NoHome, at: ofApp,
		id: func(ts, n int64) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: ts, ID: int32(n)} },
	}
	reservationIDs = homeIDs[creel.ReservationID]{
		check: statestore.CheckReservation, unknown: statestore.NoReservation, at: ofReservation,
		id: func(ts, n int64) creel.ReservationID { return creel.ReservationID{ClusterTimestamp: ts, ID: n} },
	}
)

func ofApp(a creel.ApplicationID) homeKey         { return locate(a.ClusterTimestamp, int64(a.ID)) }
func ofReservation(r creel.ReservationID) homeKey { return locate(r.ClusterTimestamp, r.ID) }

// homesOf implements statestore.Homes for one kind of id.
type homesOf[ID fmt.Stringer] struct {
	table table
	ids   *homeIDs[ID]
}

// Reservations implements statestore.Store.
func (s *Store) Reservations() statestore.Homes[creel.ReservationID] { return s.reservations }

// Claim implements statestore.Claims.
func (h homesOf[ID]) Claim(
	ctx context.Context, id ID, member creel.SubclusterID, placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	if err := h.ids.check(id); err != nil {
		return "", 0, err
	}
	if err := subcluster.ValidID(member); err != nil {
		return "", 0, err
	}
	if err := statestore.CheckPlacement(placement); err != nil {
		return "", 0, err
	}
	return h.table.claim(ctx, h.ids.at(id), member, placement)
}

// Move implements statestore.Claims.
func (h homesOf[ID]) Move(
	ctx context.Context, id ID, from, to creel.SubclusterID, number int64, placement []byte,
) (creel.SubclusterID, error) {
	if err := h.ids.check(id); err != nil {
		return "", err
	}
	if err := subcluster.ValidID(to); err != nil {
		return "", err
	}
	if err := statestore.CheckPlacement(placement); err != nil {
		return "", err
	}
	is, ok, err := h.table.move(ctx, h.ids.at(id), id.String(), from, to, number, placement)
	switch {
	case err != nil || ok:
		return is, err
	case is == "":
		return "", h.ids.unknown(id)
	}
	return is, statestore.OtherHome(id, from, is)
}

// Home implements statestore.Homes.
func (h homesOf[ID]) Home(ctx context.Context, id ID) (creel.SubclusterID, error) {
	is, err := h.table.find(ctx, h.ids.at(id))
	if err == nil && is == "" {
		err = h.ids.unknown(id)
	}
	return is, err
}

// Forget implements statestore.Homes.
func (h homesOf[ID]) Forget(ctx context.Context, id ID, home creel.SubclusterID, ttl time.Duration) error {
	if err := h.ids.check(id); err != nil {
		return err
	}
	if err := statestore.CheckTTL(ttl); err != nil {
		return err
	}
	is, err := h.table.forget(ctx, h.ids.at(id), id.String(), home, ttl)
	if err == nil && is != home {
		err = statestore.OtherHome(id, home, is)
	}
	return err
}

// HomesAt implements statestore.Homes.
func (h homesOf[ID]) HomesAt(
	ctx context.Context, member creel.SubclusterID, cursor string, limit int,
) ([]statestore.Home[ID], string, error) {
	lines, next, err := h.table.page(ctx, member, cursor, limit)
	page := make([]statestore.Home[ID], 0, len(lines))
	for _, l := range lines {
		id := h.ids.id(l.ts, l.n)
		page = append(page, statestore.Home[ID]{ID: id, Home: l.member, Claimed: l.claimed, Ends: l.ends})
	}
	return page, next, err
}
