// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is how much load, and for how long. At least one of Duration and Count
// is set: no load is without an end.
type Plan struct {
	// Rate is requests due per second. With 0 the loop is closed: InFlight callers each send their next request after
	// the response to the last. That finds the highest rate, but its latencies are not meaningful.
	Rate     float64
	Duration time.Duration // requests become due for so long, the warm-up included
	Warmup   time.Duration // requests due earlier than this are made but not recorded
	Count    int64         // at most so many requests; 0: as many as Duration holds
	// InFlight is how many requests may be on their way. Those due while all are
	// busy wait, and their wait is part of their latency.
	InFlight    int
	Connections int           // sockets they share
	Grace       time.Duration // how long answers are waited for after the last request; 10 s if zero
}

// Bounds of a plan: the capacity of one process.
const (
	MaxRate        = 2e6
	MaxInFlight    = 100_000
	MaxConnections = 10_000
	MaxDuration    = 24 * time.Hour
)

// Validate returns an error for an invalid plan.
func (p Plan) Validate() error {
	switch {
	case p.Rate < 0 || p.Rate > MaxRate:
		return badOption("rate %g: give 0 (as fast as answers come) to %g a second", p.Rate, MaxRate)
	case p.Duration < 0 || p.Duration > MaxDuration || p.Count < 0:
		return badOption(
			"a duration of %v and a count of %d: give a duration up to %v and a count above 0",
			p.Duration,
			p.Count,
			MaxDuration,
		)
	case p.Duration == 0 && p.Count == 0:
		return badOption("the load has no end: give a duration or a count")
	case p.Duration > 0 && p.Warmup >= p.Duration:
		return badOption("a warm-up of %v leaves nothing of a duration of %v", p.Warmup, p.Duration)
	case p.InFlight < 1 || p.InFlight > MaxInFlight:
		return badOption("%d requests in flight: give 1 to %d", p.InFlight, MaxInFlight)
	case p.Connections < 1 || p.Connections > MaxConnections:
		return badOption("%d connections: give 1 to %d", p.Connections, MaxConnections)
	}
	return nil
}

// request is one call of a load. ticket counts requests from 0 in the order in
// which they are due, worker is below the plan's InFlight and is used by one
// request at a time.
type request func(ctx context.Context, worker int, ticket int64, due time.Time) error

// limit is how many requests there are in all; 0: time alone ends them.
func (p Plan) limit() int64 {
	limit := p.Count
	if p.Rate > 0 && p.Duration > 0 {
		if n := int64(p.Rate * p.Duration.Seconds()); limit == 0 || n < limit {
			limit = n
		}
	}
	return limit
}

// grace is how long answers are waited for when all is sent.
func (p Plan) grace() time.Duration { return cmp.Or(p.Grace, 10*time.Second) }

// drive makes a plan's requests. The one goroutine that keeps time releases
// each request when it is due, however the earlier ones fare; workers make
// them. A request that was due and never sent, or never answered, is counted,
// and the time for which it waited is recorded.
func drive(ctx context.Context, p Plan, m *meter, call request) error {
	if err := p.Validate(); err != nil {
		return err
	}
	limit, grace := p.limit(), p.grace()
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &driver{plan: p, meter: m, call: call, limit: limit, start: time.Now()}
	m.begin(d.start.Add(p.Warmup))
	var work sync.WaitGroup
	// released hands out requests that are due. Its room only spares the
	// timekeeper a switch for each of them: how late one is made shows in full,
	// because its due time follows from its number.
	released := make(chan int64, 4096)
	for w := range p.InFlight {
		work.Go(func() {
			if p.Rate > 0 {
				for ticket := range released {
					d.one(calls, w, ticket, d.due(ticket))
				}
				return
			}
			for calls.Err() == nil && (p.Duration == 0 || time.Since(d.start) < p.Duration) {
				ticket := d.next.Add(1) - 1
				if limit > 0 && ticket >= limit {
					return
				}
				d.one(calls, w, ticket, time.Now())
			}
		})
	}
	ended := make(chan struct{})
	go func() { work.Wait(); close(ended) }()
	var err error
	if p.Rate > 0 {
		err = d.release(ctx, released)
		close(released)
	} else if p.Duration > 0 {
		waitFor(ctx, ended, p.Duration)
	}
	if p.Rate > 0 || p.Duration > 0 {
		waitFor(ctx, ended, grace)
	}
	if p.Rate == 0 && p.Duration == 0 {
		<-ended
	}
	m.end(time.Now())
	cancel()
	<-ended
	return errors.Join(err, ctx.Err())
}

func waitFor(ctx context.Context, done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
}

type driver struct {
	plan  Plan
	meter *meter
	call  request
	limit int64
	start time.Time
	next  atomic.Int64 // of a closed loop
}

// due is when a request is to be sent.
func (d *driver) due(ticket int64) time.Time { return d.start.Add(d.plan.due(ticket)) }

// due is how long after the start a request is to be sent.
func (p Plan) due(ticket int64) time.Duration {
	return time.Duration(float64(ticket) / p.Rate * float64(time.Second))
}

// release hands out requests as their time comes until the plan's end.
func (d *driver) release(ctx context.Context, out chan<- int64) error {
	clock, err := newClock()
	if err != nil {
		return err
	}
	defer clock.close()
	for ticket := int64(0); ticket < d.limit && ctx.Err() == nil; ticket++ {
		due := d.due(ticket)
		now := time.Now()
		if now.Before(due) {
			if err := clock.until(ctx, due); err != nil {
				return err
			}
			now = time.Now()
		}
		d.meter.lag(now.Sub(due))
		select {
		case out <- ticket:
		case <-ctx.Done():
			return nil
		default:
			// Every worker is busy and the queue is full: the server is behind. Requests still queued when time is
			// over were due and count as unsent.
			if !d.insist(ctx, out, ticket) {
				d.unsent(ticket)
				return nil
			}
		}
	}
	return nil
}

// insist waits for room until the plan's time is over.
func (d *driver) insist(ctx context.Context, out chan<- int64, ticket int64) bool {
	left := time.Hour
	if d.plan.Duration > 0 {
		left = time.Until(d.start.Add(d.plan.Duration))
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case out <- ticket:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// unsent records all requests from a ticket on.
func (d *driver) unsent(from int64) {
	now := time.Now()
	for ticket := from; ticket < d.limit; ticket++ {
		if due := d.due(ticket); due.Before(now) {
			d.meter.unsent(due, now)
		}
	}
}

// one makes a request and records it.
func (d *driver) one(ctx context.Context, worker int, ticket int64, due time.Time) {
	if ctx.Err() != nil {
		d.meter.unsent(due, time.Now())
		return
	}
	err := d.call(ctx, worker, ticket, due)
	d.meter.done(worker, due, time.Now(), err)
}
