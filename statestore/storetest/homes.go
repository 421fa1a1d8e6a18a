// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// homes are the homes of one kind of id.
type homes[ID comparable] struct {
	statestore.Homes[ID]
	id      func(n int) ID
	unknown error // kind of the error for an id without a home
}

func homesOfApplications(t *testing.T, d Deployment) {
	sameHomes(t, d, homes[creel.ApplicationID]{d.Store, App, creel.ErrApplicationNotFound})
}

func homesOfReservations(t *testing.T, d Deployment) {
	s := d.Store
	_, _, err := s.Claim(t.Context(), App(1), "sc-1", nil) // an application is not a reservation
	ok(t, err)
	sameHomes(t, d, homes[creel.ReservationID]{
		s.Reservations(),
		func(n int) creel.ReservationID {
			id := creel.ReservationID{ClusterTimestamp: App(n).ClusterTimestamp, ID: int64(n)}
			if n > 1 {
				id.ID += 1 << 40 // numbers of reservations are longer than those of applications
			}
			return id
		},
		creel.ErrInvalidRequest,
	})
	same(t, "home of the application", must[creel.SubclusterID](t)(s.Home(t.Context(), App(1))), "sc-1")
}

// sameHomes checks the rules that homes of both kinds have.
func sameHomes[ID comparable](t *testing.T, d Deployment, h homes[ID]) {
	ctx := t.Context()
	is := must[creel.SubclusterID](t)
	claim := func(n int, at, home creel.SubclusterID, number int64) {
		t.Helper()
		won, is, err := h.Claim(ctx, h.id(n), at, nil)
		ok(t, err)
		if won != home || is != number {
			t.Fatalf("a claim of id %d for %s has home %s, number %d, want %s, %d", n, at, won, is, home, number)
		}
	}
	_, err := h.Home(ctx, h.id(1))
	refused(t, err, h.unknown)
	_, err = h.Move(ctx, h.id(1), "sc-1", "sc-2", 0, nil)
	refused(t, err, h.unknown)
	claim(1, "sc-1", "sc-1", 1)
	claim(1, "sc-1", "sc-1", 2)
	claim(1, "sc-2", "sc-1", 3)

	was, err := h.Move(ctx, h.id(1), "sc-3", "sc-2", 0, nil)
	refused(t, err, creel.ErrConflict)
	same(t, "home in the conflict", was, "sc-1")
	_, err = h.Move(ctx, h.id(1), "sc-1", "sc-2", 2, nil) // claim 3 followed
	refused(t, err, creel.ErrConflict)
	for range 2 { // the same move again is success
		same(t, "home after a move", is(h.Move(ctx, h.id(1), "sc-1", "sc-2", 0, nil)), "sc-2")
	}
	same(t, "home", is(h.Home(ctx, h.id(1))), "sc-2")

	refused(t, h.Forget(ctx, h.id(1), "sc-1", 0), creel.ErrConflict)
	ok(t, h.Forget(ctx, h.id(1), "sc-2", time.Hour))
	ok(t, h.Forget(ctx, h.id(1), "sc-2", 50*time.Millisecond)) // sooner is possible,
	ok(t, h.Forget(ctx, h.id(1), "sc-2", time.Hour))           // later is not
	d.Advance(100 * time.Millisecond)
	_, err = h.Home(ctx, h.id(1))
	refused(t, err, h.unknown)
	claim(1, "sc-3", "sc-3", 1)
	ok(t, h.Forget(ctx, h.id(1), "sc-3", 0))
	same(t, "freed", must[int](t)(d.Store.Sweep(ctx, 10)), 1)
	ok(t, h.Forget(ctx, h.id(1), "sc-3", 0)) // it has no home

	homesByPage(t, h)
	zero, bad := *new(ID), []error{}
	_, _, err = h.Claim(ctx, zero, "sc-1", nil)
	bad = append(bad, err)
	_, _, err = h.Claim(ctx, h.id(1), "sc 1", nil)
	bad = append(bad, err)
	_, err = h.Move(ctx, h.id(2), "sc-1", "", 0, nil)
	bad = append(bad, err, h.Forget(ctx, zero, "sc-1", 0), h.Forget(ctx, h.id(2), "sc-1", -1),
		h.Forget(ctx, h.id(2), "sc-1", statestore.MaxTTL+1))
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
		_, _, err := h.Claim(ctx, h.id(2+i), []creel.SubclusterID{"sc-8", "sc-9"}[i%2], nil)
		ok(t, err)
	}
	ok(t, h.Forget(ctx, h.id(2), "sc-8", time.Hour))
	for m, want := range map[creel.SubclusterID]int{"sc-8": 13, "sc-9": 12, "sc-7": 0} {
		seen := map[ID]bool{}
		cursor, ends := "", 0
		for {
			page, next, err := h.HomesAt(ctx, m, cursor, 7)
			ok(t, err)
			if len(page) > 7 {
				t.Fatalf("a page has %d lines", len(page))
			}
			for _, line := range page {
				if seen[line.ID] {
					t.Fatalf("%v is listed twice", line.ID)
				}
				if seen[line.ID] = true; !line.Ends.IsZero() {
					ends++
				}
			}
			if cursor = next; next == "" {
				break
			}
		}
		same(t, "length of the listing of "+string(m), len(seen), want)
		same(t, "ending ones of "+string(m), ends, map[creel.SubclusterID]int{"sc-8": 1}[m])
	}
	for _, limit := range []int{0, -1, statestore.MaxPage + 1} {
		_, _, err := h.HomesAt(ctx, "sc-8", "", limit)
		refused(t, err, creel.ErrInvalidRequest)
	}
	_, _, err := h.HomesAt(ctx, "sc-8", "nonsense", 7)
	refused(t, err, creel.ErrInvalidRequest)
}
