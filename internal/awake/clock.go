// SPDX-License-Identifier: Apache-2.0

package awake

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Clock is the time in which this process was awake: it goes as time.Now does,
// and stands still for the pauses of the process. What waits, expires or gives up
// by this clock does not count a pause of ours against anybody. Moments of it are
// comparable with each other only, not with time.Now.
//
// Run has to run: it comes round each Interval. Whoever reads the clock first
// after a pause finds the pause, so nobody can judge before it is known. The
// methods are safe for concurrent use. A nil *Clock is time.Now, without pauses.
type Clock struct {
	read func() time.Time
	log  *slog.Logger

	mu    sync.Mutex
	watch Watch
	awake time.Time
}

// NewClock makes a Clock over read, which is time.Now where a process is real;
// nil is time.Now too. Each pause is logged at WARN; nil: silent.
func NewClock(read func() time.Time, log *slog.Logger) *Clock {
	if read == nil {
		read = time.Now
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Clock{read: read, log: log, awake: read()}
	c.watch.Observe(c.awake)
	return c
}

// Run comes round each Interval until ctx ends, then returns nil.
func (c *Clock) Run(ctx context.Context) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		c.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Now is the moment by this clock. It never goes back.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	now, pause := c.observe()
	if pause > 0 {
		Tell(c.log, pause)
	}
	return now
}

// Tell logs that this process did not run for a time.
func Tell(log *slog.Logger, pause time.Duration) {
	log.Warn("this process did not run; nobody is judged by that time",
		"for", pause.Round(time.Millisecond).String(),
		"try", "look for stops, migrations, swapping and slow disks of its machine")
}

func (c *Clock) observe() (now time.Time, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, at := c.watch.last, c.read()
	pause = c.watch.Observe(at)
	passed := at.Sub(before)
	if pause > 0 {
		passed = min(passed, Interval)
	}
	c.awake = c.awake.Add(max(0, passed))
	return c.awake, pause
}

// Until is how long a moment of this clock is away, if there is no pause.
func (c *Clock) Until(moment time.Time) time.Duration { return moment.Sub(c.Now()) }

// Paused is the sum of the pauses so far, the one that just ended included. A
// caller whose wait failed compares it with what it was before: if it rose, the
// failure may be our own.
func (c *Clock) Paused() time.Duration {
	if c == nil {
		return 0
	}
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch.Total()
}
