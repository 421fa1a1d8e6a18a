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
}

var (
	appIDs = homeIDs[creel.ApplicationID]{
		check: statestore.CheckApplication, unknown: statestore.NoHome, at: ofApp,
	}
	reservationIDs = homeIDs[creel.ReservationID]{
		check: statestore.CheckReservation, unknown: statestore.NoReservation, at: ofReservation,
	}
)

func ofApp(a creel.ApplicationID) homeKey         { return locate(a.ClusterTimestamp, int64(a.ID)) }
func ofReservation(r creel.ReservationID) homeKey { return locate(r.ClusterTimestamp, r.ID) }

// homesOf has the checked calls about the homes of one kind of id.
type homesOf[ID fmt.Stringer] struct {
	table
	ids *homeIDs[ID]
}

func (s *Store) apps() homesOf[creel.ApplicationID] {
	return homesOf[creel.ApplicationID]{table{s: s, kind: "a", publish: true}, &appIDs}
}

func (s *Store) reservations() homesOf[creel.ReservationID] {
	return homesOf[creel.ReservationID]{table{s: s, kind: "r"}, &reservationIDs}
}

// Claim is statestore.Claims.Claim.
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
	return h.claim(ctx, h.ids.at(id), member, placement)
}

// Move is statestore.Claims.Move.
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
	is, ok, err := h.move(ctx, h.ids.at(id), id.String(), from, to, number, placement)
	switch {
	case err != nil || ok:
		return is, err
	case is == "":
		return "", h.ids.unknown(id)
	}
	return is, statestore.OtherHome(id, from, is)
}

// Home is statestore.Homes.Home.
func (h homesOf[ID]) Home(ctx context.Context, id ID) (creel.SubclusterID, error) {
	is, err := h.find(ctx, h.ids.at(id))
	if err == nil && is == "" {
		err = h.ids.unknown(id)
	}
	return is, err
}

// Forget is statestore.Homes.Forget.
func (h homesOf[ID]) Forget(ctx context.Context, id ID, home creel.SubclusterID, ttl time.Duration) error {
	if err := h.ids.check(id); err != nil {
		return err
	}
	if err := statestore.CheckTTL(ttl); err != nil {
		return err
	}
	is, err := h.forget(ctx, h.ids.at(id), id.String(), home, ttl)
	if err == nil && is != home {
		err = statestore.OtherHome(id, home, is)
	}
	return err
}
