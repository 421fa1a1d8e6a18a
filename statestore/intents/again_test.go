// SPDX-License-Identifier: Apache-2.0

package intents_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
)

// A call with an older intent is on its way while the home carries out a newer one, and then undoes that: so the
// newer one is sent again. That holds for any user, and also if the newer one was recorded.
func TestInFlightIntentDoesNotUndoNewer(t *testing.T) {
	priority := func(user string, level int32) intents.Intent {
		return intents.Intent{Application: app, User: user, Verb: intents.Priority, Level: level}
	}
	older := priority("ann", 5)
	for name, newer := range map[string]intents.Intent{"the same user": priority("ann", 7), "another": priority("bob", 7)} {
		for how, carryOut := range map[string]func(t *testing.T, f *federation, set func(int32)){
			"by a router": func(t *testing.T, f *federation, set func(int32)) {
				earlier, err := intents.Earlier(t.Context(), f.store, newer)
				if err != nil {
					t.Fatal(err)
				}
				set(newer.Level)
				if err := intents.AtOthers(t.Context(), f.store, newer, "a", earlier, nil); err != nil {
					t.Fatal(err)
				}
			},
			"from the record": func(t *testing.T, f *federation, set func(int32)) {
				if err := intents.Record(t.Context(), f.store, newer); err != nil {
					t.Fatal(err)
				}
				loop := intents.New(f.store, intents.Config{
					View: func() *subcluster.View {
						members := []subcluster.Status{{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive}}
						return subcluster.NewView(time.Now(), members, nil)
					},
					Do: func(_ context.Context, _ *subcluster.Status, i intents.Intent) (bool, error) {
						set(i.Level)
						return true, nil
					},
				})
				if err := loop.Round(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, ctx := start(t)
					var level atomic.Int32
					var calls int
					set := level.Store
					f.is(subcluster.StateActive, func() (bool, error) {
						if calls++; calls == 1 {
							carryOut(t, f, set)
						}
						set(f.asked[len(f.asked)-1].Level)
						return true, nil
					})
					if err := intents.Record(ctx, f.store, older); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Second)
					if level.Load() != older.Level {
						t.Fatalf("the call that was on its way set %d", level.Load())
					}
					if n := waiting(t, f); n != 0 {
						t.Errorf("%d wait, as users see it", n)
					}
					time.Sleep(2 * time.Minute)
					left, err := f.store.Documents(ctx, "intents")
					if err != nil || level.Load() != newer.Level || len(left.Documents) != 0 {
						t.Errorf("the priority is %d, %d words are on record (%v)", level.Load(), len(left.Documents), err)
					}
				})
			})
		}
	}
}

// An intent that is sent again has been carried out: its user does not learn of a refusal then.
func TestRepeatedIntentMayBeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateActive, func() (bool, error) {
			if len(f.asked) == 1 {
				return true, nil
			}
			return false, &creel.Error{Kind: creel.ErrInvalidRequest, What: "it ends"}
		})
		for level := range int32(2) {
			i := intents.Intent{Application: app, User: "ann", Verb: intents.Priority, Level: level}
			if err := intents.Record(ctx, f.store, i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if n := waiting(t, f); n != 0 || len(f.calls()) != 2 {
			t.Errorf("%d wait, or were refused; asked for %d times", n, len(f.calls()))
		}
	})
}
