// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/reconcile"
	"github.com/creelrm/creel/subcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func app(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }

// federation is three members with their lists, and a store.
type federation struct {
	store  *memory.Store
	lists  map[creel.SubclusterID][]statestore.ReportedApplication
	silent map[creel.SubclusterID]bool
	ended  []string
	whole  map[creel.SubclusterID][]statestore.ReportedApplication // in addition to lists
	wholes int                                                     // how often it was asked for
	loop   *reconcile.Loop
}

func newFederation(t *testing.T) *federation {
	f := &federation{
		store:  memory.New(memory.NewState("test", nil), time.Now),
		lists:  map[creel.SubclusterID][]statestore.ReportedApplication{},
		silent: map[creel.SubclusterID]bool{},
		whole:  map[creel.SubclusterID][]statestore.ReportedApplication{},
	}
	var members []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2", "sc-3"} {
		members = append(members, subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive})
	}
	view := subcluster.NewView(time.Now(), members, nil)
	f.loop = reconcile.New(f.store, reconcile.Config{
		Name: "router",
		View: func() *subcluster.View { return view },
		Ask: func(_ context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
			if f.silent[m.ID] {
				return nil, errors.New("no answer")
			}
			return f.lists[m.ID], nil
		},
		Whole: func(_ context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
			if f.silent[m.ID] {
				return nil, errors.New("no answer")
			}
			f.wholes++
			return append(f.whole[m.ID], f.lists[m.ID]...), nil
		},
		End: func(_ context.Context, m *subcluster.Status, a creel.ApplicationID) error {
			f.ended = append(f.ended, string(m.ID)+" "+a.String())
			f.lists[m.ID] = nil
			return nil
		},
	})
	return f
}

func (f *federation) claim(t *testing.T, n int32, home creel.SubclusterID) {
	t.Helper()
	if _, _, err := f.store.Claim(t.Context(), app(n), home, nil); err != nil {
		t.Fatal(err)
	}
}

func (f *federation) runs(at creel.SubclusterID, list ...statestore.ReportedApplication) {
	f.lists[at] = append(f.lists[at], list...)
}

func TestDuplicateRunEndsAfterTwoRounds(t *testing.T) {
	f := newFederation(t)
	f.claim(t, 1, "sc-1")
	f.runs("sc-1", statestore.ReportedApplication{ID: app(1)})
	f.runs("sc-2", statestore.ReportedApplication{ID: app(1)})
	f.runs("sc-3", statestore.ReportedApplication{ID: app(1), Unmanaged: true}) // the proxy's
	if err := f.loop.Round(t.Context()); err != nil || len(f.ended) != 0 {
		t.Fatalf("one look is not enough: ended %v, %v", f.ended, err)
	}
	if err := f.loop.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(f.ended) != 1 || f.ended[0] != "sc-2 "+app(1).String() {
		t.Fatalf("ended %v", f.ended)
	}
	if err := f.loop.Round(t.Context()); err != nil || len(f.ended) != 1 {
		t.Fatalf("all is well: ended %v, %v", f.ended, err)
	}
	if s := f.loop.Stats(); s.Found.Load() != 1 || s.Ended.Load() != 1 || s.Rehomed.Load() != 0 {
		t.Errorf("found %d, ended %d, rehomed %d", s.Found.Load(), s.Ended.Load(), s.Rehomed.Load())
	}
}

func TestRecordFollowsApplicationUnknownAtHome(t *testing.T) {
	f := newFederation(t)
	f.claim(t, 1, "sc-1")
	f.runs("sc-2", statestore.ReportedApplication{ID: app(1)})
	for range 2 {
		if err := f.loop.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if home, err := f.store.Home(t.Context(), app(1)); err != nil || home != "sc-2" || len(f.ended) != 0 {
		t.Fatalf("home %s, ended %v, %v", home, f.ended, err)
	}
}

func TestNothingIsDoneWhileTheHomeIsSilent(t *testing.T) {
	f := newFederation(t)
	f.claim(t, 1, "sc-1")
	f.runs("sc-2", statestore.ReportedApplication{ID: app(1)})
	f.silent["sc-1"] = true
	for range 3 {
		if err := f.loop.Round(t.Context()); err == nil {
			t.Error("a silent member is told")
		}
	}
	if home, err := f.store.Home(t.Context(), app(1)); err != nil || home != "sc-1" || len(f.ended) != 0 {
		t.Fatalf("home %s, ended %v, %v", home, f.ended, err)
	}
}

// Applications at home, ended ones, unmanaged AMs of proxies, and those that
// were submitted past the routers are left alone.
func TestConsistentApplicationsAreUnchanged(t *testing.T) {
	f := newFederation(t)
	f.claim(t, 1, "sc-1")
	f.claim(t, 2, "sc-1")
	f.claim(t, 3, "sc-1")
	f.runs("sc-1", statestore.ReportedApplication{ID: app(1)})
	f.runs("sc-2",
		statestore.ReportedApplication{ID: app(1), Unmanaged: true},
		statestore.ReportedApplication{ID: app(2), Ended: true},
		statestore.ReportedApplication{ID: app(7)},
	)
	for range 3 {
		if err := f.loop.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.loop.Stats().Found.Load(); n != 0 || len(f.ended) != 0 {
		t.Errorf("found %d, ended %v", n, f.ended)
	}
}

// A home that moved between the reading of the record and of the list is no
// difference: the next round sees it in order.
func TestADifferenceOfOneRoundIsForgotten(t *testing.T) {
	f := newFederation(t)
	f.claim(t, 1, "sc-1")
	f.runs("sc-2", statestore.ReportedApplication{ID: app(1)})
	for range 3 {
		if err := f.loop.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, to := range [][2]creel.SubclusterID{{"sc-1", "sc-2"}, {"sc-2", "sc-1"}} {
			if _, err := f.store.Move(t.Context(), app(1), to[0], to[1], 0, nil); err != nil {
				t.Fatal(err)
			}
			if to[1] == "sc-2" {
				if err := f.loop.Round(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := f.loop.Stats().Found.Load(); n != 0 {
		t.Errorf("found %d", n)
	}
}

func TestTheLoopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.loop.Run(ctx) }()
		time.Sleep(3*time.Minute + time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := f.loop.Stats().Rounds.Load(); n != 3 {
			t.Errorf("%d rounds in three minutes", n)
		}
	})
}

// The home's list lacks applications that ended there long ago. Before the home's record is moved the whole list is
// checked: it was a second run.
func TestAbsenceAtHomeNeedsCompleteList(t *testing.T) {
	f := newFederation(t)
	f.claim(t, 1, "sc-1")
	f.whole["sc-1"] = []statestore.ReportedApplication{{ID: app(1), Ended: true}}
	f.runs("sc-2", statestore.ReportedApplication{ID: app(1)})
	for range 2 {
		if err := f.loop.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	home, err := f.store.Home(t.Context(), app(1))
	if err != nil || home != "sc-1" || len(f.ended) != 1 || f.ended[0] != "sc-2 "+app(1).String() {
		t.Errorf("its home is %s, %v; ended %v", home, err, f.ended)
	}
}

// After a failover many applications may live where they are not at home: their home is asked once for all that it
// remembers.
func TestWholeListIsRequestedOnce(t *testing.T) {
	f := newFederation(t)
	var stray []statestore.ReportedApplication
	for n := range int32(50) {
		f.claim(t, n, "sc-1")
		stray = append(stray, statestore.ReportedApplication{ID: app(n)})
	}
	f.runs("sc-2", stray...)
	for range 2 {
		if err := f.loop.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	home, err := f.store.Home(t.Context(), app(49))
	if f.wholes != 1 || err != nil || home != "sc-2" {
		t.Errorf("asked %d times; the last one's home is %s, %v", f.wholes, home, err)
	}
}
