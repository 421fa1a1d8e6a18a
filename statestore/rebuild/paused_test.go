// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/rebuild"
	"github.com/creelrm/creel/subcluster"
)

// emptied is a store that came back empty; it counts the starts of a rebuild.
type emptied struct {
	rebuild.Store
	begun atomic.Int64
}

func (*emptied) Lost(context.Context) (bool, error) { return true, nil }

func (e *emptied) Acquire(context.Context, string, string, time.Duration) (statestore.Lease, error) {
	e.begun.Add(1)
	return statestore.Lease{}, creel.ErrConflict
}

// A router without known members waits for routers that knew members of the store. Its own pause does not count as
// waiting: they may have been paused, too.
func TestOwnPauseDoesNotCountAsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, looks := &emptied{}, 0
		r := rebuild.New(store, rebuild.Config{
			View: func() *subcluster.View {
				if looks++; looks == 3 {
					time.Sleep(time.Minute) // as a stopped process does
				}
				return nil
			},
			Ask: func(context.Context, *subcluster.Status) ([]statestore.ReportedApplication, error) {
				return nil, nil
			},
			Clock: pauseclock.NewClock(time.Now, nil), Settle: 5 * time.Second,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		time.Sleep(time.Minute + 3*time.Second)
		if n := store.begun.Load(); n != 0 {
			t.Errorf("after a pause it began at once, %d times", n)
		}
		time.Sleep(5 * time.Second)
		if store.begun.Load() == 0 {
			t.Error("it never begins")
		}
		// It cannot distinguish an emptied store from a new one.
		if told := r.Trouble(); !strings.HasPrefix(told, "the store is new or came back empty") {
			t.Errorf("it says %q", told)
		}
		cancel()
		wg.Wait()
	})
}
