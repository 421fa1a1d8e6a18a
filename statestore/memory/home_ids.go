// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// homeID is an id that has a home.
type homeID interface {
	comparable
	fmt.Stringer
}

// homeIDs is one kind of id that has homes.
type homeIDs[ID homeID] struct {
	compare func(a, b ID) int
	check   func(ID) error
	unknown func(ID) error // for an id without a home
	parse   func(string) (ID, error)
}

var (
	appIDs = homeIDs[creel.ApplicationID]{
		creel.ApplicationID.Compare, statestore.CheckApplication, statestore.NoHome, creel.ParseApplicationID,
	}
	reservationIDs = homeIDs[creel.ReservationID]{
		creel.ReservationID.Compare, statestore.CheckReservation, statestore.NoReservation, creel.ParseReservationID,
	}
)

// Claim is statestore.Claims.Claim.
func (t *homeTable[ID]) Claim(
	now time.Time, id ID, member creel.SubclusterID, placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	if err := t.check(id); err != nil {
		return "", 0, err
	}
	if err := subcluster.ValidID(member); err != nil {
		return "", 0, err
	}
	if err := statestore.CheckPlacement(placement); err != nil {
		return "", 0, err
	}
	home, number = t.claim(now, id, member, placement)
	return home, number, nil
}

// Move is statestore.Claims.Move. moved is false if the home was to already.
func (t *homeTable[ID]) Move(
	now time.Time, id ID, from, to creel.SubclusterID, number int64, placement []byte,
) (is creel.SubclusterID, moved bool, err error) {
	if err := t.check(id); err != nil {
		return "", false, err
	}
	if err := subcluster.ValidID(to); err != nil {
		return "", false, err
	}
	if err := statestore.CheckPlacement(placement); err != nil {
		return "", false, err
	}
	is, moved, ok := t.move(now, id, from, to, number, placement)
	switch {
	case ok:
		return is, moved, nil
	case is == "":
		return "", false, t.unknown(id)
	}
	return is, false, statestore.OtherHome(id, from, is)
}

// Home is statestore.Homes.Home.
func (t *homeTable[ID]) Home(now time.Time, id ID) (creel.SubclusterID, error) {
	p, ok := t.find(now, id)
	if !ok {
		return "", t.unknown(id)
	}
	return p.home, nil
}

// Forget is statestore.Homes.Forget.
func (t *homeTable[ID]) Forget(now time.Time, id ID, home creel.SubclusterID, ttl time.Duration) error {
	if err := t.check(id); err != nil {
		return err
	}
	if err := statestore.CheckTTL(ttl); err != nil {
		return err
	}
	if is, ok := t.forget(now, id, home, ttl); !ok {
		return statestore.OtherHome(id, home, is)
	}
	return nil
}

// At lists the ids of a page, and reports whether more follow; see statestore.Homes.HomesAt.
func (t *homeTable[ID]) At(
	now time.Time, member creel.SubclusterID, cursor string, limit int,
) (ids []ID, more bool, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, false, err
	}
	var after *ID
	if cursor != "" {
		id, err := t.parse(cursor)
		if err != nil {
			return nil, false, statestore.BadCursor(cursor)
		}
		after = &id
	}
	ids, more = t.page(now, member, after, limit)
	return ids, more, nil
}
