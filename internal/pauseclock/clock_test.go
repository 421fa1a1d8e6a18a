// SPDX-License-Identifier: Apache-2.0

package pauseclock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
)

// The clock stops during the pauses of its process, for the first reader after one too, and otherwise advances with
// time.
func TestTheClockStandsStillForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ahead time.Duration
		c := pauseclock.NewClock(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		start := c.Now()
		time.Sleep(10 * time.Second)
		if d := c.Now().Sub(start); d != 10*time.Second || c.Paused() != 0 {
			t.Fatalf("after 10 s awake the clock has gone %v, with pauses of %v", d, c.Paused())
		}
		mu.Lock()
		ahead = time.Minute
		mu.Unlock()
		if d := c.Now().Sub(start); d < 10*time.Second || d > 10*time.Second+pauseclock.Interval {
			t.Fatalf("a pause of a minute moved the clock to %v", d)
		}
		if d := time.Minute - c.Paused(); d < 0 || d > pauseclock.Interval {
			t.Fatalf("the pause of a minute is taken for %v", c.Paused())
		}
		left := c.Until(start.Add(20 * time.Second))
		time.Sleep(left)
		if d := c.Now().Sub(start); d != 20*time.Second {
			t.Fatalf("the clock shows %v where it promised 20 s", d)
		}
		mu.Lock()
		ahead = 0 // set back
		mu.Unlock()
		if d := c.Now().Sub(start); d < 20*time.Second {
			t.Fatalf("the clock went back to %v", d)
		}
		cancel()
		wg.Wait()
	})
}

func TestWithoutAClockThereAreNoPauses(t *testing.T) {
	var c *pauseclock.Clock
	if d := time.Since(c.Now()); d > time.Minute || c.Paused() != 0 {
		t.Fatalf("off by %v, pauses of %v", d, c.Paused())
	}
}
