// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

// homesOf implements statestore.Homes for one kind of id.
type homesOf[ID fmt.Stringer] struct {
	engine  *engine
	kind    homeKind
	parse   func(string) (ID, error)
	compare func(a, b ID) int
	check   func(ID) error
	unknown func(ID) error // for an id without a home
	table   func(*memory.State) memory.Homes[ID]
	tell    func(*txn, ID) // reports that a home changed or was deleted
	any     bool           // claims and moves in a store that is being rebuilt
}

func applicationsOf(s *engine) applications {
	return applications{homesOf[creel.ApplicationID]{
		engine: s,
		kind:   homeKind{"homes", s.paths.homes, s.paths.apps, readApplicationHome, applicationHome},
		parse:  creel.ParseApplicationID, compare: creel.ApplicationID.Compare,
		check: statestore.CheckApplication, unknown: statestore.NoHome,
		table: func(m *memory.State) memory.Homes[creel.ApplicationID] { return m },
		tell: func(t *txn, app creel.ApplicationID) {
			t.tell(statestore.Change{Kind: statestore.ChangeHome, Application: app})
		},
	}}
}

func reservationsOf(s *engine) homesOf[creel.ReservationID] {
	return homesOf[creel.ReservationID]{
		engine: s,
		kind: homeKind{
			"reservations", s.paths.bookings, s.paths.reservations, readReservationHome, reservationHome,
		},
		parse: creel.ParseReservationID, compare: creel.ReservationID.Compare,
		check: statestore.CheckReservation, unknown: statestore.NoReservation,
		table: (*memory.State).Reservations,
		tell:  func(*txn, creel.ReservationID) {},
	}
}

// Reservations implements statestore.Store.
func (s *Store) Reservations() statestore.Homes[creel.ReservationID] { return reservationsOf(s.engine) }

// in reads an id's home in a transaction.
func (k homesOf[ID]) in(t *txn, id ID) (*homeShard, error) {
	return t.home(k.kind, id.String(), func(s *shard, at time.Time, home creel.SubclusterID, again bool) {
		k.table(s.State).Adopt(at, id, home, again)
	})
}

// Claim implements statestore.Claims.
func (k homesOf[ID]) Claim(
	ctx context.Context, id ID, member creel.SubclusterID, placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	if err := k.check(id); err != nil {
		return "", 0, err
	}
	err = k.engine.change(ctx, false, func(t *txn) error {
		if err := t.servesIf(!k.any); err != nil {
			return err
		}
		h, err := k.in(t, id)
		if err != nil {
			return err
		}
		if h.expired(t.now) {
			if err := t.leave(h.id); err != nil {
				return err
			}
		}
		home, number, err = k.table(h.State).Claim(t.now, id, member, placement)
		return err
	})
	if err != nil {
		return "", 0, err
	}
	return home, number, nil
}

func (t *txn) servesIf(whole bool) error {
	if !whole {
		return nil
	}
	return t.serves()
}

// Move implements statestore.Claims.
func (k homesOf[ID]) Move(
	ctx context.Context, id ID, from, to creel.SubclusterID, number int64, placement []byte,
) (is creel.SubclusterID, err error) {
	if err := k.check(id); err != nil {
		return "", err
	}
	err = k.engine.change(ctx, true, func(t *txn) error {
		if err := t.servesIf(!k.any); err != nil {
			return err
		}
		h, err := k.in(t, id)
		if err != nil {
			return err
		}
		moved := false
		if is, moved, err = k.table(h.State).Move(t.now, id, from, to, number, placement); moved {
			k.tell(t, id)
		}
		return err
	})
	return is, err
}

// Forget implements statestore.Homes.
func (k homesOf[ID]) Forget(ctx context.Context, id ID, home creel.SubclusterID, ttl time.Duration) error {
	if err := k.check(id); err != nil {
		return err
	}
	return k.engine.change(ctx, false, func(t *txn) error {
		h, err := k.in(t, id)
		if err == nil {
			k.tell(t, id)
			err = k.table(h.State).Forget(t.now, id, home, ttl)
		}
		return err
	})
}

// look reads an id's home. A missing home is an error only in a store that has all homes.
func (k homesOf[ID]) look(ctx context.Context, id ID, read func(t *txn, h *homeShard) error) error {
	if k.check(id) != nil {
		return k.unknown(id)
	}
	return k.engine.look(ctx, func(t *txn) error {
		h, err := k.in(t, id)
		if err != nil {
			return err
		}
		if err = read(t, h); err != nil {
			return t.unknown(err)
		}
		return nil
	})
}

// Home implements statestore.Homes.
func (k homesOf[ID]) Home(ctx context.Context, id ID) (home creel.SubclusterID, err error) {
	err = k.look(ctx, id, func(t *txn, h *homeShard) (err error) {
		home, err = k.table(h.State).Home(t.now, id)
		return err
	})
	return home, err
}

// HomesAt implements statestore.Homes.
func (k homesOf[ID]) HomesAt(
	ctx context.Context, member creel.SubclusterID, cursor string, limit int,
) (page []statestore.Home[ID], next string, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = k.engine.look(ctx, func(t *txn) error {
		names, err := t.children(k.kind.hadoop)
		if err != nil {
			return err
		}
		ids, err := k.after(k.idsIn(names), cursor)
		if err != nil {
			return err
		}
		page, next, err = pageOf(ids, limit, func(id ID) (line statestore.Home[ID], ok bool, err error) {
			one := t.apart()
			if is, err := one.homeIn(k.kind, id.String()); err != nil || is != member {
				return line, false, err
			}
			h, err := k.in(one, id)
			if err != nil {
				return line, false, err
			}
			list, _, err := k.table(h.State).HomesAt(t.now, member, "", 1)
			if err != nil || len(list) == 0 {
				return line, false, err
			}
			return list[0], true, nil
		})
		return err
	})
	if page == nil && err == nil {
		page = []statestore.Home[ID]{}
	}
	return page, next, err
}

// idsIn parses the names of Hadoop's records, sorted. Others are left out.
func (k homesOf[ID]) idsIn(names []string) []ID {
	var ids []ID
	for _, n := range names {
		if id, err := k.parse(n); err == nil && id.String() == n {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, k.compare)
	return ids
}

// after returns the ids after a cursor.
func (k homesOf[ID]) after(ids []ID, cursor string) ([]ID, error) {
	if cursor == "" {
		return ids, nil
	}
	last, err := k.parse(cursor)
	if err != nil {
		return nil, statestore.BadCursor(cursor)
	}
	return slices.DeleteFunc(ids, func(id ID) bool { return k.compare(id, last) <= 0 }), nil
}

// pageOf lists the ids of a home after a cursor. at reads an id's home; ok: it is valid, and that of the listing.
func pageOf[ID fmt.Stringer, Line any](
	ids []ID, limit int, at func(id ID) (line Line, ok bool, err error),
) (page []Line, next string, err error) {
	last := ""
	for len(ids) > 0 {
		block := ids[:min(len(ids), parallel, max(2*limit, 8))]
		ids = ids[len(block):]
		lines, there := make([]Line, len(block)), make([]bool, len(block))
		err := each(len(block), func(i int) (err error) {
			lines[i], there[i], err = at(block[i])
			return err
		})
		if err != nil {
			return nil, "", err
		}
		for i := range block {
			switch {
			case !there[i]:
			case len(page) == limit:
				return page, last, nil
			default:
				page, last = append(page, lines[i]), block[i].String()
			}
		}
	}
	return page, "", nil
}

// apart is a transaction for reads beside others of this one.
func (t *txn) apart() *txn {
	return &txn{ctx: t.ctx, store: t.store, now: t.now, nodes: map[string]*node{}, writes: map[string]write{}}
}

// homeIn reads the home in Hadoop's record alone.
func (t *txn) homeIn(kind homeKind, id string) (creel.SubclusterID, error) {
	n, err := t.get(kind.hadoop + "/" + id)
	if err != nil {
		return "", err
	}
	return kind.read(n.data)
}
