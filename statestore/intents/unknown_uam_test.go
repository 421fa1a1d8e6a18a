// SPDX-License-Identifier: Apache-2.0

package intents_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
)

// A UAM's record is written before the UAM is submitted, with the priority that home had then. So a member that does
// not know a recorded UAM may get it in a moment, with the old priority.
func TestIntentWaitsForRecordedUAM(t *testing.T) {
	notFound := &creel.Error{Kind: creel.ErrApplicationNotFound, What: "never heard of it"}
	atB := intents.Intent{Application: app, User: "ann", Verb: intents.Priority, Level: 7, Member: "b"}
	for name, c := range map[string]struct {
		uams   []statestore.UAM
		router bool          // a router asks the member, not the loop
		launch time.Duration // until the member knows the UAM; 0: never
		set    bool
		gone   time.Duration // latest time at which no record is left
	}{
		"launched soon":           {[]statestore.UAM{{Member: "b"}}, false, 20 * time.Second, true, 26 * time.Second},
		"launched soon, at once":  {[]statestore.UAM{{Member: "b"}}, true, 20 * time.Second, true, 26 * time.Second},
		"never launched":          {[]statestore.UAM{{Member: "b"}}, false, 0, false, 66 * time.Second},
		"never launched, at once": {[]statestore.UAM{{Member: "b"}}, true, 0, false, 66 * time.Second},
		"without a record":        {[]statestore.UAM{{Member: "c"}}, false, 0, false, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, ctx := start(t)
				began := time.Now()
				var level int32
				ask := func(i intents.Intent) error {
					if c.launch == 0 || time.Since(began) < c.launch {
						return notFound
					}
					level = i.Level
					return nil
				}
				f.is(subcluster.StateActive, func() (bool, error) {
					err := ask(f.asked[len(f.asked)-1])
					return err == nil, err
				})
				record := statestore.UAMRecord{
					Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "a", UAMs: c.uams,
				}
				if _, err := f.store.SaveUAMRecord(ctx, record); err != nil {
					t.Fatal(err)
				}
				var err error
				if c.router {
					err = intents.AtOthers(ctx, f.store, atB, "a", nil, func(context.Context, intents.Part) error {
						return ask(atB)
					})
				} else {
					err = intents.Record(ctx, f.store, atB)
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.gone)
				synctest.Wait()
				f.mu.Lock()
				defer f.mu.Unlock()
				if set := level == atB.Level; set != c.set {
					t.Errorf("the member has the new priority: %v, want %v", set, c.set)
				}
				if n := waiting(t, f); n != 0 {
					t.Errorf("%d wait after %v", n, c.gone)
				}
				for _, at := range f.at {
					if at != "b" {
						t.Errorf("%s was asked", at)
					}
				}
			})
		})
	}
}
