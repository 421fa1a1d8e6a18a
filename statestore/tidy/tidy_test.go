// SPDX-License-Identifier: Apache-2.0

package tidy

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func app(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }

// Four applications claimed for one home: one runs, one ended, one was forgotten
// by its ResourceManager, and one's submission is still on its way. Another home
// does not answer.
func TestOnlyCompletedApplicationsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := memory.New(memory.NewState("test", nil), time.Now)
		for n := range int32(4) {
			if _, _, err := store.Claim(ctx, app(n), "sc-1", nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := store.Claim(ctx, app(9), "sc-2", nil); err != nil {
			t.Fatal(err)
		}
		var runs atomic.Pointer[[]statestore.ReportedApplication]
		runs.Store(&[]statestore.ReportedApplication{{ID: app(0)}, {ID: app(1), Ended: true}})
		k := New(store, Config{TTL: time.Hour, Every: time.Minute, Name: "router",
			View: func() *subcluster.View {
				return &subcluster.View{Members: []subcluster.Status{
					{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive},
					{Member: subcluster.Member{ID: "sc-2"}, State: subcluster.StateActive}}}
			},
			Ask: func(_ context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
				if m.ID == "sc-2" {
					return nil, errors.New("no answer")
				}
				return *runs.Load(), nil
			}})
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		known := func(n int32) bool {
			_, err := store.Home(ctx, app(n))
			return err == nil
		}
		expect := func(when string, want map[int32]bool) {
			t.Helper()
			synctest.Wait()
			for n, w := range want {
				if known(n) != w {
					t.Errorf("%s: application %d is known: %v, want %v", when, n, known(n), w)
				}
			}
		}

		time.Sleep(61 * time.Second)
		expect(
			"after a round the record of the ended one lives on for its time",
			map[int32]bool{0: true, 1: true, 2: true, 3: true, 9: true},
		)
		if at, err := store.Ended(ctx, app(1)); err != nil || at.IsZero() {
			t.Errorf("the reported end is stored as %v, %v", at, err)
		}
		time.Sleep(30 * time.Minute)
		expect("half its time later", map[int32]bool{0: true, 1: true, 2: true, 3: true, 9: true})
		late := append(
			slices.Clone(*runs.Load()),
			statestore.ReportedApplication{ID: app(3)},
		) // the late submission arrives
		runs.Store(&late)
		time.Sleep(32 * time.Minute)
		expect("one is over, one unknown for as long", map[int32]bool{0: true, 1: false, 2: false, 3: true, 9: true})
		time.Sleep(62 * time.Minute)
		expect(
			"the late one runs, the silent home has answered nothing",
			map[int32]bool{0: true, 2: false, 3: true, 9: true},
		)
		if n, err := store.Sweep(ctx, 10); err != nil || n != 0 {
			t.Errorf("%d records are left over, %v", n, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Two routers: one works at a time.
func TestOneOfManyTidies(t *testing.T) {
	ctx := t.Context()
	store := memory.New(memory.NewState("test", nil), time.Now)
	if _, _, err := store.Claim(ctx, app(1), "sc-1", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(ctx, "tidy", "another", time.Minute); err != nil {
		t.Fatal(err)
	}
	asked := 0
	k := New(store, Config{TTL: time.Hour, Name: "this",
		View: func() *subcluster.View {
			return &subcluster.View{
				Members: []subcluster.Status{{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive}},
			}
		},
		Ask: func(context.Context, *subcluster.Status) ([]statestore.ReportedApplication, error) {
			asked++
			return nil, nil
		}})
	if err := k.round(ctx, time.Now()); err != nil || asked != 0 {
		t.Errorf("it worked beside the holder of the lease: %d members asked, %v", asked, err)
	}
}

// A member was removed. Its applications can still be found for as long as ended ones, in case it comes back, and are
// forgotten then; those of a member that came back stay.
func TestApplicationsOfRemovedMemberAreForgotten(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	store := memory.New(memory.NewState("test", nil), func() time.Time { return now })
	for n, home := range []creel.SubclusterID{"gone", "back", "silent"} {
		if _, _, err := store.Claim(ctx, app(int32(n)), home, nil); err != nil {
			t.Fatal(err)
		}
		if home != "silent" {
			if err := statestore.NoteRemoval(ctx, store, home, "ann"); err != nil {
				t.Fatal(err)
			}
		}
	}
	status := func(id creel.SubclusterID) subcluster.Status {
		return subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateLost}
	}
	gone, back := status("gone"), status("back")
	gone.Forgotten, back.State = true, subcluster.StateActive
	view := subcluster.NewView(now, []subcluster.Status{gone, back, status("silent")}, nil)
	none := func(context.Context, *subcluster.Status) ([]statestore.ReportedApplication, error) { return nil, nil }
	k := New(store, Config{TTL: time.Hour, Name: "this", View: func() *subcluster.View { return view }, Ask: none})
	known := func(when string, want ...bool) {
		t.Helper()
		if err := k.round(ctx, now); err != nil {
			t.Fatal(err)
		}
		for n, w := range want {
			if _, err := store.Home(ctx, app(int32(n))); (err == nil) != w {
				t.Errorf("%s: the home of application %d: %v, want it known: %v", when, n, err, w)
			}
		}
	}
	known("at once", true, true, true)
	now = now.Add(59 * time.Minute)
	known("within the hour", true, true, true)
	now = now.Add(2 * time.Minute)
	known("after it", false, true, true)
	if set, err := store.Documents(ctx, "removed"); err != nil || len(set.Documents) != 0 {
		t.Errorf("still noted are %+v, %v", set.Documents, err)
	}
	view = subcluster.NewView(now, []subcluster.Status{status("silent")}, nil)
	now = now.Add(2 * time.Hour)
	known("one that had come back is gone without being removed", false, true, true)
}

// An application was unknown to its home when this process looked last, a day ago; others have looked since. That it is
// unknown now is new: its submission may be on its way.
func TestOldUnknownIsCheckedAgain(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	store := memory.New(memory.NewState("test", nil), func() time.Time { return now })
	if _, _, err := store.Claim(ctx, app(1), "sc-1", nil); err != nil {
		t.Fatal(err)
	}
	view := subcluster.NewView(now, []subcluster.Status{
		{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive},
	}, nil)
	k := New(store, Config{
		TTL: time.Hour, Name: "this", View: func() *subcluster.View { return view },
		Ask: func(context.Context, *subcluster.Status) ([]statestore.ReportedApplication, error) { return nil, nil },
	})
	forgets := func() bool {
		t.Helper()
		if err := k.round(ctx, now); err != nil {
			t.Fatal(err)
		}
		page, _, err := store.HomesAt(ctx, "sc-1", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(page) == 0
	}
	if forgets() {
		t.Fatal("at the first look it is forgotten")
	}
	now = now.Add(24 * time.Hour)
	if forgets() {
		t.Error("it is forgotten at the first look in a day")
	}
	for range 2 {
		now = now.Add(29 * time.Minute)
		if forgets() {
			t.Error("it is forgotten within the hour")
		}
	}
	now = now.Add(29 * time.Minute)
	if !forgets() {
		t.Error("it is not forgotten, though unknown for more than an hour")
	}
}
