// SPDX-License-Identifier: Apache-2.0

package kills_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/kills"
	"github.com/creelrm/creel/subcluster"
)

var app = creel.ApplicationID{ClusterTimestamp: 1_700_000_000_000, ID: 7}

// federation is a store with one application at home in "a", and a home that
// answers as it is told.
type federation struct {
	store *statestore.Memory

	mu     sync.Mutex // the loop runs beside the test
	state  subcluster.State
	asked  []kills.Kill
	answer func() (bool, error)
}

func start(t *testing.T) (*federation, context.Context) {
	t.Helper()
	f := &federation{
		store: statestore.NewMemory(statestore.NewState("test", nil), time.Now),
		state: subcluster.StateActive,
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); synctest.Wait() })
	if _, _, err := f.store.Claim(ctx, app, "a"); err != nil {
		t.Fatal(err)
	}
	loop := kills.New(f.store, kills.Config{
		View: func() *subcluster.View {
			f.mu.Lock()
			defer f.mu.Unlock()
			m := subcluster.Status{Member: subcluster.Member{ID: "a"}, State: f.state}
			return subcluster.NewView(time.Now(), []subcluster.Status{m}, nil)
		},
		Kill: func(_ context.Context, _ *subcluster.Status, k kills.Kill) (bool, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.asked = append(f.asked, k)
			return f.answer()
		},
	})
	go func() { _ = loop.Run(ctx) }()
	return f, ctx
}

func waiting(t *testing.T, f *federation) int {
	t.Helper()
	list, err := kills.Waiting(t.Context(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// is sets the home's state and its answer.
func (f *federation) is(state subcluster.State, answer func() (bool, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
	if answer != nil {
		f.answer = answer
	}
}

// calls are those that the home got.
func (f *federation) calls() []kills.Kill {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// A kill waits as long as its home is away, an hour if it must, is made in the user's
// name until the home says that the application ended, and is then forgotten.
func TestAKillWaitsForItsHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateLost, func() (bool, error) { return len(f.asked) >= 3, nil })
		for range 2 { // the second is a repeat
			if err := kills.Record(ctx, f.store, kills.Kill{Application: app, User: "ann", Diagnostics: "enough"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if list, err := kills.Waiting(ctx, f.store); err != nil || len(list) != 1 || list[0].User != "ann" ||
			list[0].Age < time.Hour || len(f.calls()) != 0 {
			t.Fatalf("after an hour without the home: %+v, %v, asked %d times", list, err, len(f.calls()))
		}
		f.is(subcluster.StateDraining, nil)
		time.Sleep(time.Minute)
		asked := f.calls()
		if n := waiting(t, f); n != 0 || len(asked) != 3 || asked[0].User != "ann" || asked[0].Diagnostics != "enough" {
			t.Errorf("after the home came back: %d wait, asked %+v", n, asked)
		}
	})
}

// What the home does not know, refuses, or nobody has a record of is not asked for
// ever; silence is.
func TestAKillEndsWithTheHomesWord(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		left int
	}{
		"it does not know it": {&creel.Error{Kind: creel.ErrApplicationNotFound}, 0},
		"it refuses":          {&creel.Error{Kind: creel.ErrNotPermitted}, 0},
		"it is silent":        {&creel.Error{Kind: creel.ErrUnavailable}, 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, ctx := start(t)
				f.is(subcluster.StateActive, func() (bool, error) { return false, c.err })
				for _, user := range []string{"ann", "bob"} { // the one's refusal is not the other's
					if err := kills.Record(ctx, f.store, kills.Kill{Application: app, User: user}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				if n := waiting(t, f); n != 2*c.left {
					t.Errorf("%d wait, want %d", n, 2*c.left)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateLost, nil)
		if err := kills.Record(ctx, f.store, kills.Kill{Application: app, User: "ann"}); err != nil {
			t.Fatal(err)
		}
		if err := f.store.Forget(ctx, app, "a", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d wait for an application without a record", n)
		}
		unknown := kills.Kill{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, User: "ann"}
		if err := kills.Record(ctx, f.store, unknown); !errors.Is(err, creel.ErrApplicationNotFound) {
			t.Errorf("a kill of what nobody knows: %v", err)
		}
		if err := kills.Record(ctx, f.store, kills.Kill{Application: app}); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("a kill by nobody: %v", err)
		}
	})
}
