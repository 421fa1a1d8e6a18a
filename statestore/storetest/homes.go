// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// homes are the homes of one kind of id: the calls that applications and reservations have both.
type homes[ID comparable] struct {
	claim  func(ctx context.Context, id ID, at creel.SubclusterID) (home creel.SubclusterID, fresh bool, err error)
	move   func(ctx context.Context, id ID, from, to creel.SubclusterID) (creel.SubclusterID, error)
	home   func(ctx context.Context, id ID) (creel.SubclusterID, error)
	forget func(ctx context.Context, id ID, home creel.SubclusterID, ttl time.Duration) error
	// at lists a page of a member's ids, and those of them that will be forgotten.
	at func(
		ctx context.Context, m creel.SubclusterID, cursor string, limit int,
	) (page, ending []ID, next string, err error)

	id      func(n int) ID
	unknown error // kind of the error for an id without a home
}

func homesOfApplications(t *testing.T, d Deployment) {
	s := d.Store
	sameHomes(t, d, homes[creel.ApplicationID]{
		claim: func(
			ctx context.Context, id creel.ApplicationID, at creel.SubclusterID,
		) (creel.SubclusterID, bool, error) {
			home, number, err := s.Claim(ctx, id, at, nil)
			return home, number == 1, err
		},
		move: func(
			ctx context.Context, id creel.ApplicationID, from, to creel.SubclusterID,
		) (creel.SubclusterID, error) {
			return s.Move(ctx, id, from, to, 0, nil)
		},
		home: s.Home, forget: s.Forget, id: App, unknown: creel.ErrApplicationNotFound,
		at: func(ctx context.Context, m creel.SubclusterID, cursor string, limit int) (
			page, ending []creel.ApplicationID, next string, err error,
		) {
			list, next, err := s.HomesAt(ctx, m, cursor, limit)
			for _, h := range list {
				if page = append(page, h.Application); !h.Ends.IsZero() {
					ending = append(ending, h.Application)
				}
			}
			return page, ending, next, err
		},
	})
}

func homesOfReservations(t *testing.T, d Deployment) {
	s := d.Store
	_, _, err := s.Claim(t.Context(), App(1), "sc-1", nil) // an application is not a reservation
	ok(t, err)
	sameHomes(t, d, homes[creel.ReservationID]{
		claim: s.ClaimReservation, move: s.MoveReservation, home: s.ReservationHome, forget: s.ForgetReservation,
		id: func(n int) creel.ReservationID {
			id := creel.ReservationID{ClusterTimestamp: App(n).ClusterTimestamp, ID: int64(n)}
			if n > 1 {
				id.ID += 1 << 40 // numbers of reservations are longer than those of applications
			}
			return id
		},
		unknown: creel.ErrInvalidRequest,
		at: func(ctx context.Context, m creel.SubclusterID, cursor string, limit int) (
			page, ending []creel.ReservationID, next string, err error,
		) {
			list, next, err := s.ReservationsAt(ctx, m, cursor, limit)
			for _, h := range list {
				if page = append(page, h.Reservation); !h.Ends.IsZero() {
					ending = append(ending, h.Reservation)
				}
			}
			return page, ending, next, err
		},
	})
	same(t, "home of the application", must[creel.SubclusterID](t)(s.Home(t.Context(), App(1))), "sc-1")
}

// sameHomes checks the rules that homes of both kinds have.
func sameHomes[ID comparable](t *testing.T, d Deployment, h homes[ID]) {
	ctx := t.Context()
	is := must[creel.SubclusterID](t)
	claim := func(n int, at, home creel.SubclusterID, fresh bool) {
		t.Helper()
		won, first, err := h.claim(ctx, h.id(n), at)
		ok(t, err)
		if won != home || first != fresh {
			t.Fatalf("a claim of id %d for %s has home %s, fresh %v, want %s, %v", n, at, won, first, home, fresh)
		}
	}
	_, err := h.home(ctx, h.id(1))
	refused(t, err, h.unknown)
	_, err = h.move(ctx, h.id(1), "sc-1", "sc-2")
	refused(t, err, h.unknown)
	claim(1, "sc-1", "sc-1", true)
	claim(1, "sc-1", "sc-1", false)
	claim(1, "sc-2", "sc-1", false)

	was, err := h.move(ctx, h.id(1), "sc-3", "sc-2")
	refused(t, err, creel.ErrConflict)
	same(t, "home in the conflict", was, "sc-1")
	for range 2 { // the same move again is success
		same(t, "home after a move", is(h.move(ctx, h.id(1), "sc-1", "sc-2")), "sc-2")
	}
	same(t, "home", is(h.home(ctx, h.id(1))), "sc-2")

	refused(t, h.forget(ctx, h.id(1), "sc-1", 0), creel.ErrConflict)
	ok(t, h.forget(ctx, h.id(1), "sc-2", time.Hour))
	ok(t, h.forget(ctx, h.id(1), "sc-2", 50*time.Millisecond)) // sooner is possible,
	ok(t, h.forget(ctx, h.id(1), "sc-2", time.Hour))           // later is not
	d.Advance(100 * time.Millisecond)
	_, err = h.home(ctx, h.id(1))
	refused(t, err, h.unknown)
	claim(1, "sc-3", "sc-3", true)
	ok(t, h.forget(ctx, h.id(1), "sc-3", 0))
	same(t, "freed", must[int](t)(d.Store.Sweep(ctx, 10)), 1)
	ok(t, h.forget(ctx, h.id(1), "sc-3", 0)) // it has no home

	homesByPage(t, h)
	zero, bad := *new(ID), []error{}
	_, _, err = h.claim(ctx, zero, "sc-1")
	bad = append(bad, err)
	_, _, err = h.claim(ctx, h.id(1), "sc 1")
	bad = append(bad, err)
	_, err = h.move(ctx, h.id(2), "sc-1", "")
	bad = append(bad, err, h.forget(ctx, zero, "sc-1", 0), h.forget(ctx, h.id(2), "sc-1", -1),
		h.forget(ctx, h.id(2), "sc-1", statestore.MaxTTL+1))
	for i, err := range bad {
		if !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("invalid call %d is answered %v", i, err)
		}
	}
}

// homesByPage checks the listings of both kinds.
func homesByPage[ID comparable](t *testing.T, h homes[ID]) {
	ctx := t.Context()
	const n = 25
	for i := range n {
		_, _, err := h.claim(ctx, h.id(2+i), []creel.SubclusterID{"sc-8", "sc-9"}[i%2])
		ok(t, err)
	}
	ok(t, h.forget(ctx, h.id(2), "sc-8", time.Hour))
	for m, want := range map[creel.SubclusterID]int{"sc-8": 13, "sc-9": 12, "sc-7": 0} {
		seen := map[ID]bool{}
		cursor, ends := "", 0
		for {
			page, ending, next, err := h.at(ctx, m, cursor, 7)
			ok(t, err)
			if ends += len(ending); len(page) > 7 {
				t.Fatalf("a page has %d lines", len(page))
			}
			for _, id := range page {
				if seen[id] {
					t.Fatalf("%v is listed twice", id)
				}
				seen[id] = true
			}
			if cursor = next; next == "" {
				break
			}
		}
		same(t, "length of the listing of "+string(m), len(seen), want)
		same(t, "ending ones of "+string(m), ends, map[creel.SubclusterID]int{"sc-8": 1}[m])
	}
	for _, limit := range []int{0, -1, statestore.MaxPage + 1} {
		_, _, _, err := h.at(ctx, "sc-8", "", limit)
		refused(t, err, creel.ErrInvalidRequest)
	}
	_, _, _, err := h.at(ctx, "sc-8", "nonsense", 7)
	refused(t, err, creel.ErrInvalidRequest)
}
