// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
)

// The store pauses together with this process, or between two of its reads, for longer than members may be silent.
// Its clock has gone on: every heartbeat is old. One member is back first, and the others get a lease.
func TestAPauseOfTheStoreBlamesNoMember(t *testing.T) {
	var ahead atomic.Int64 // of the store's clock
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.NewState("m", nil), func() time.Time {
			return time.Now().Add(time.Duration(ahead.Load()))
		})
		f := &faulty{Store: store, deaf: true}
		register(t, f, "sc-1")
		register(t, f, "sc-2")
		w := watch.New(f, watch.Config{Poll: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(3 * time.Second)
		ahead.Store(int64(time.Minute))
		register(t, f, "sc-1")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if v := w.View(); len(v.Active()) != 2 || v.Freeze == nil {
			t.Errorf("after the store's pause %v are active, freeze %+v", v.Active(), v.Freeze)
		}
		register(t, f, "sc-2")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if v := w.View(); len(v.Active()) != 2 || v.Freeze != nil {
			t.Errorf("when both are back %v are active, freeze %+v", v.Active(), v.Freeze)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// pausing is a store whose reader is stopped during a read, until the read's time is over.
type pausing struct {
	*memory.Store
	ahead atomic.Int64 // of this process's clock
	stop  atomic.Bool
}

func (p *pausing) Records(ctx context.Context) (subcluster.Records, error) {
	if p.stop.CompareAndSwap(true, false) {
		p.ahead.Store(int64(15 * time.Second))
		return subcluster.Records{}, context.DeadlineExceeded
	}
	return p.Store.Records(ctx)
}

// A read that timed out while this process was paused proves nothing about the store: it is made again, and the view
// does not freeze.
func TestReadIsRepeatedAfterOwnPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pausing{Store: memory.New(memory.NewState("m", nil), time.Now)}
		clock := pauseclock.NewClock(func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }, nil)
		frozen := 0
		w := watch.New(p, watch.Config{Poll: time.Second, Clock: clock, OnView: func(v *subcluster.View) {
			if v.Freeze != nil {
				frozen++
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- clock.Run(ctx) }()
		go func() { done <- w.Run(ctx) }()
		time.Sleep(3 * time.Second)
		p.stop.Store(true)
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		if age, ok := w.Age(); p.stop.Load() || !ok || age > 2*time.Second {
			t.Errorf("the last good read is %v old (%v); stopped: %v", age, ok, !p.stop.Load())
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if frozen > 0 {
			t.Errorf("the view froze %d times", frozen)
		}
	})
}
