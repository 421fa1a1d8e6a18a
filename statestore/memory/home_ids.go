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

// Homes are the homes of one kind of id: statestore.Homes as a plain value. A State has those of applications itself.
type Homes[ID any] interface {
	Claim(
		now time.Time, id ID, member creel.SubclusterID, placement []byte,
	) (home creel.SubclusterID, number int64, err error)
	// Move: moved is false if the home was to already.
	Move(
		now time.Time, id ID, from, to creel.SubclusterID, number int64, placement []byte,
	) (is creel.SubclusterID, moved bool, err error)
	Home(now time.Time, id ID) (creel.SubclusterID, error)
	Forget(now time.Time, id ID, home creel.SubclusterID, ttl time.Duration) error
	HomesAt(
		now time.Time, member creel.SubclusterID, cursor string, limit int,
	) ([]statestore.Home[ID], string, error)
	// Adopt records the home that another program set in the same store, or removed ("") from it. again: it deleted the
	// record since, and made it again.
	Adopt(now time.Time, id ID, home creel.SubclusterID, again bool)
}

var (
	_ Homes[creel.ApplicationID] = (*State)(nil)
	_ Homes[creel.ReservationID] = (*homeTable[creel.ReservationID])(nil)
)

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

// Claim implements Homes.
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

// Move implements Homes.
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

// Home implements Homes.
func (t *homeTable[ID]) Home(now time.Time, id ID) (creel.SubclusterID, error) {
	p, ok := t.find(now, id)
	if !ok {
		return "", t.unknown(id)
	}
	return p.home, nil
}

// Forget implements Homes.
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

// HomesAt implements Homes.
func (t *homeTable[ID]) HomesAt(
	now time.Time, member creel.SubclusterID, cursor string, limit int,
) ([]statestore.Home[ID], string, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	var after *ID
	if cursor != "" {
		id, err := t.parse(cursor)
		if err != nil {
			return nil, "", statestore.BadCursor(cursor)
		}
		after = &id
	}
	ids, more := t.page(now, member, after, limit)
	page := make([]statestore.Home[ID], 0, len(ids))
	for _, id := range ids {
		p := t.of[id]
		page = append(page, statestore.Home[ID]{ID: id, Home: p.home, Claimed: p.claimed, Ends: p.ends})
	}
	if !more {
		return page, "", nil
	}
	return page, ids[len(ids)-1].String(), nil
}

// Adopt implements Homes.
func (t *homeTable[ID]) Adopt(now time.Time, id ID, home creel.SubclusterID, again bool) {
	if home == "" {
		t.lose(id)
		return
	}
	t.adopt(now, id, home, again)
}
