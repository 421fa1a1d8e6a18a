// SPDX-License-Identifier: Apache-2.0

package pauseclock

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Clock is the running time of this process: it advances like time.Now, and stops during the pauses of the process.
// Waits and expiries by this clock do not count the process's own pauses. Its times are comparable only with each
// other, not with time.Now.
//
// Run must be running; it checks each Interval. The first read after a pause detects the pause, so that no decision
// precedes it. The methods are safe for concurrent use. A nil *Clock is time.Now, without pauses.
type Clock struct {
	read func() time.Time
	log  *slog.Logger

	mu    sync.Mutex
	watch Watch
	awake time.Time
}

// NewClock makes a Clock that reads the time by read; nil means time.Now, which real processes use. Each pause is
// logged at WARN; a nil log is silent.
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

// Run checks for pauses each Interval until ctx ends, then returns nil.
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

// Now returns the time by this clock. It never decreases.
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

// Tell logs the length of a pause of this process.
func Tell(log *slog.Logger, pause time.Duration) {
	log.Warn("this process was paused; missed heartbeats of that time are ignored",
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

// Until returns the time until a moment of this clock, if there is no pause.
func (c *Clock) Until(moment time.Time) time.Duration { return moment.Sub(c.Now()) }

// Paused returns the sum of all pauses, including the one that just ended. A caller whose wait failed compares it with
// the earlier value: if it rose, the pause may be the cause.
func (c *Clock) Paused() time.Duration {
	if c == nil {
		return 0
	}
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch.Total()
}
