// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// A process has the epoch of its member in its data. It may serve when the heartbeats under
// that epoch have ended, also if one was still on its way; it may not while they go on.
func TestProcessServesAfterPredecessorIsSilent(t *testing.T) {
	const every = time.Second
	for name, c := range map[string]struct {
		heartbeats int  // after the start
		previous   bool // its data has the epoch
		refused    bool
	}{
		"the one before was killed":       {0, true, false},
		"its last heartbeat arrives late": {1, true, false},
		"the one before lives":            {10, true, true},
		"the data is of nobody":           {10, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.NewState("test", nil), time.Now)
				epoch, err := store.NextEpoch(t.Context(), "sc-1", 0, false)
				if err != nil {
					t.Fatal(err)
				}
				m := subcluster.Member{ID: "sc-1", Epoch: epoch, Lease: 10 * time.Second,
					Addresses: subcluster.Addresses{Client: "there:8032", Scheduler: "there:8030"}}
				if err := store.Register(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				go func() {
					for range c.heartbeats {
						time.Sleep(every)
						if err := store.Heartbeat(t.Context(), subcluster.Heartbeat{ID: "sc-1", Epoch: epoch}); err != nil {
							t.Error(err)
						}
					}
				}()
				check := &aloneCheck{Store: store, ID: "sc-1", Every: every, done: make(chan struct{})}
				if c.previous {
					check.Previous = epoch
				}
				began := time.Now()
				err = check.start(t.Context())
				took := time.Since(began)
				switch {
				case c.refused != errors.Is(err, creel.ErrConflict):
					t.Errorf("it was answered %v", err)
				case c.refused && (!strings.Contains(err.Error(), "--take-over") || !strings.Contains(err.Error(), "there:8032")):
					t.Errorf("the error does not say who serves and what to try: %v", err)
				case !c.refused && took > (silentHeartbeats+time.Duration(min(c.heartbeats, 1))+1)*every:
					t.Errorf("it waited %v", took)
				}
				time.Sleep(time.Minute) // the heartbeats end
			})
		})
	}
}
