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
	"github.com/creelrm/creel/subcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func app(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }

// Four applications claimed for one home: one runs, one ended, one was forgotten
// by its ResourceManager, and one's submission is still on its way. Another home
// does not answer.
func TestOnlyWhatEndedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := statestore.NewMemory(statestore.NewState("test", nil), time.Now)
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
		time.Sleep(30 * time.Minute)
		late := append(
			slices.Clone(*runs.Load()),
			statestore.ReportedApplication{ID: app(3)},
		) // the late submission arrives
		runs.Store(&late)
		time.Sleep(32 * time.Minute)
		expect("after its time it is gone", map[int32]bool{0: true, 1: false, 2: true, 3: true, 9: true})
		time.Sleep(62 * time.Minute)
		expect(
			"what its home has not known for that long goes the same way",
			map[int32]bool{0: true, 2: false, 3: true, 9: true},
		)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Two routers: one works at a time.
func TestOneOfManyTidies(t *testing.T) {
	ctx := t.Context()
	store := statestore.NewMemory(statestore.NewState("test", nil), time.Now)
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
