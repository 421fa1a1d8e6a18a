// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"pgregory.net/rapid"
)

// daemon returns a record with all fields set.
func daemon(kind, name string) statestore.Daemon {
	return statestore.Daemon{
		Kind: kind, Name: name, Host: "h1", PID: 7, Version: "v1.2.3", Started: time.UnixMilli(1700000000123).UTC(),
		Addresses: map[string]string{"web": "h1:8089"}, NotReady: "view: \"old\"\n",
	}
}

// listed returns the IDs of all daemons, read in pages of two.
func listed(t *testing.T, s statestore.Store) (ids []string, all []statestore.LiveDaemon) {
	t.Helper()
	for cursor := ""; ; {
		page, next, err := s.Daemons(t.Context(), cursor, 2)
		ok(t, err)
		for _, d := range page {
			ids = append(ids, d.ID())
		}
		all = append(all, page...)
		if cursor = next; next == "" {
			return ids, all
		}
	}
}

// daemons: every process lists a record as last stored, with its age by the store's clock, until
// its daemon drops it or it expires.
func daemons(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	are := func(s statestore.Store, want ...string) []statestore.LiveDaemon {
		t.Helper()
		ids, all := listed(t, s)
		same(t, "daemons", fmt.Sprint(ids), fmt.Sprint(want))
		return all
	}
	are(s)
	router, proxy, dies := daemon("router", "a:1"), daemon("proxy", "p/1"), daemon("proxy", "p/0")
	ok(t, s.KeepDaemon(ctx, router, time.Hour))
	ok(t, s.KeepDaemon(ctx, dies, 2*time.Second)) // listed below, even on a slow machine
	ok(t, s.KeepDaemon(ctx, proxy, time.Hour))
	again := router
	again.PID = 8 // another process
	ok(t, s.KeepDaemon(ctx, again, time.Hour))
	d.Advance(10 * time.Millisecond)
	all := are(s, "proxy p/0 h1 7", "proxy p/1 h1 7", "router a:1 h1 7", "router a:1 h1 8")
	same(t, "record", fmt.Sprint(all[2].Daemon), fmt.Sprint(router))
	if all[2].Age < 10*time.Millisecond || all[2].Age > time.Minute {
		t.Fatalf("a record kept 10 ms ago has age %v", all[2].Age)
	}
	before := all[3].Age
	d.Advance(2 * time.Second)
	router.NotReady, router.Version = "", "v1.2.4"
	ok(t, s.KeepDaemon(ctx, router, time.Hour))
	all = are(s, "proxy p/1 h1 7", "router a:1 h1 7", "router a:1 h1 8")
	same(t, "renewed record", fmt.Sprint(all[1].Daemon), fmt.Sprint(router))
	if all[1].Age >= all[2].Age || all[2].Age < before+2*time.Second {
		t.Fatalf("ages %v and %v: the first was kept again, the other two seconds ago", all[1].Age, all[2].Age)
	}
	ok(t, s.DropDaemon(ctx, router))
	ok(t, s.DropDaemon(ctx, router))
	are(s, "proxy p/1 h1 7", "router a:1 h1 8")
	ok(t, s.KeepDaemon(ctx, dies, time.Hour)) // its record expired, but it still runs
	if d.Again != nil {
		s = d.Again(t)
	}
	are(s, "proxy p/0 h1 7", "proxy p/1 h1 7", "router a:1 h1 8")
}

// manyDaemons: a listing by pages has each daemon once. A daemon above the limit is rejected until
// another has left or expired.
func manyDaemons(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	keep := func(n int, life time.Duration) error {
		return s.KeepDaemon(ctx, daemon("proxy", fmt.Sprintf("%05d", n)), life)
	}
	const senders = 50
	var all sync.WaitGroup
	for part := range senders {
		all.Go(func() {
			for n := part; n < statestore.MaxDaemons; n += senders {
				if err := keep(n, time.Hour); err != nil {
					t.Errorf("daemon %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	seen, cursor := 0, ""
	for {
		page, next, err := s.Daemons(ctx, cursor, statestore.MaxPage)
		ok(t, err)
		for _, one := range page {
			same(t, "name", one.Name, fmt.Sprintf("%05d", seen))
			seen++
		}
		if cursor = next; next == "" {
			break
		}
	}
	same(t, "listed", seen, statestore.MaxDaemons)
	refused(t, keep(statestore.MaxDaemons, time.Hour), creel.ErrBusy)
	ok(t, keep(17, time.Hour)) // has a record already
	ok(t, s.DropDaemon(ctx, daemon("proxy", "00018")))
	ok(t, keep(statestore.MaxDaemons, time.Hour))
	refused(t, keep(statestore.MaxDaemons+1, time.Hour), creel.ErrBusy)
	ok(t, keep(4711, time.Millisecond))
	d.Advance(10 * time.Millisecond)
	ok(t, keep(statestore.MaxDaemons+1, time.Hour))
}

// daemon keeps or drops one of a few, or lists them.
func (m *model) daemon(t *rapid.T) {
	sc, tc := m.contexts(t)
	d := daemon("proxy", rapid.SampledFrom([]string{"", "p1", "p2", "p3"}).Draw(t, "name"))
	switch rapid.IntRange(0, 2).Draw(t, "request") {
	case 0:
		d.NotReady = rapid.SampledFrom([]string{"", "view"}).Draw(t, "not ready")
		life := anyTTL(t)
		alike(t, "keep daemon", m.store.KeepDaemon(sc, d, life), m.reference.KeepDaemon(tc, d, life))
	case 1:
		alike(t, "drop daemon", m.store.DropDaemon(sc, d), m.reference.DropDaemon(tc, d))
	case 2:
		cursor := rapid.SampledFrom([]string{"", "proxy p2 h1 7"}).Draw(t, "cursor")
		limit := rapid.IntRange(0, 3).Draw(t, "limit")
		s, snext, serr := m.store.Daemons(sc, cursor, limit)
		w, wnext, werr := m.reference.Daemons(tc, cursor, limit)
		alike(t, "daemons", serr, werr)
		for i := range s {
			s[i].Age = 0
		}
		for i := range w {
			w[i].Age = 0
		}
		equal(t, "daemons", s, w)
		equal(t, "cursor", snext, wnext)
	}
}
