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

// Plan is the amount and the duration of a load. At least one of Duration and Count is set, so that every load ends.
type Plan struct {
	// Rate is requests due per second. With 0 the loop is closed: each of InFlight callers sends its next request
	// after the response to the last one. That finds the highest rate, but its latencies are not meaningful.
	Rate     float64
	Duration time.Duration // time in which requests become due, including the warm-up
	Warmup   time.Duration // requests due earlier are made but not recorded
	Count    int64         // limit of requests; 0: as many as fit Duration
	// InFlight limits the requests in flight. Requests due while all callers are busy wait, and the wait is part of
	// their latency.
	InFlight    int
	Connections int           // number of shared sockets
	Grace       time.Duration // wait for answers after the last request; 0: 10 s
	// Progress is called every second with the requests recorded so far and the time since the start; nil: never.
	Progress func(recorded int64, after time.Duration) `json:"-"`
}

// Limits of a plan: the capacity of one process.
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
		return badOption("a warm-up of %v uses up a duration of %v", p.Warmup, p.Duration)
	case p.InFlight < 1 || p.InFlight > MaxInFlight:
		return badOption("%d requests in flight: give 1 to %d", p.InFlight, MaxInFlight)
	case p.Connections < 1 || p.Connections > MaxConnections:
		return badOption("%d connections: give 1 to %d", p.Connections, MaxConnections)
	}
	return nil
}

// request is one call of a load. ticket counts requests from 0 in due order. worker is below the plan's InFlight; one
// request at a time uses it.
type request func(ctx context.Context, worker int, ticket int64, due time.Time) error

// limit is the number of requests; 0: only time ends them.
func (p Plan) limit() int64 {
	limit := p.Count
	if p.Rate > 0 && p.Duration > 0 {
		if n := int64(p.Rate * p.Duration.Seconds()); limit == 0 || n < limit {
			limit = n
		}
	}
	return limit
}

// grace is the wait for answers after the last request.
func (p Plan) grace() time.Duration { return cmp.Or(p.Grace, 10*time.Second) }

// drive makes a plan's requests. A single goroutine keeps time and releases each request when it is due, whatever
// happens to earlier ones; workers make them. A request that was due and never sent, or never answered, is counted
// with its waiting time.
func drive(ctx context.Context, p Plan, m *meter, call request) error {
	if err := p.Validate(); err != nil {
		return err
	}
	limit, grace := p.limit(), p.grace()
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &driver{plan: p, meter: m, call: call, limit: limit, start: time.Now()}
	m.begin(p, d.start)
	var work sync.WaitGroup
	// released has the due requests. Its capacity only saves the timekeeper a switch for each request. The delay of a
	// request is fully visible, because its due time follows from its number.
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
	next  atomic.Int64 // for a closed loop
}

// due is the time at which a request must be sent.
func (d *driver) due(ticket int64) time.Time { return d.start.Add(d.plan.due(ticket)) }

// due is a request's time after the start.
func (p Plan) due(ticket int64) time.Duration {
	return time.Duration(float64(ticket) / p.Rate * float64(time.Second))
}

// release releases requests at their times until the plan's end.
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
			// Every worker is busy and the queue is full: the server is too slow. Requests still queued at the end of
			// the time were due and count as unsent.
			if !d.insist(ctx, out, ticket) {
				d.unsent(ticket)
				return nil
			}
		}
	}
	return nil
}

// insist waits for space in the queue until the plan's time ends.
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
