// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func measure(t *testing.T, p Plan, call request) *Result {
	t.Helper()
	m := newMeter(nil)
	if err := drive(t.Context(), p, m, call); err != nil {
		t.Fatal(err)
	}
	return m.result("test", "here", p)
}

// A server that pauses for 300 ms delays every request due during the pause, and each shows its own delay: of 1000 a
// second, 300 wait, half of them longer than 150 ms. A loop that sends its next request after the last response would
// have seen one slow request.
func TestAStallShowsInFull(t *testing.T) {
	const rate, stall = 1000, 300 * time.Millisecond
	var mu sync.Mutex
	r := measure(
		t,
		Plan{Rate: rate, Count: 1000, InFlight: 4, Connections: 1},
		func(_ context.Context, _ int, ticket int64, _ time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			if ticket == 100 {
				time.Sleep(stall)
			}
			return nil
		},
	)
	if r.Answered != 1000 || r.Unsent != 0 || r.Failed != 0 {
		t.Fatalf("of 1000 requests %d were answered, %d not sent, %d failed", r.Answered, r.Unsent, r.Failed)
	}
	if r.Latency.Max < 299 {
		t.Errorf("the longest wait is %g ms; the server stood still for 300", r.Latency.Max)
	}
	// At least 300 of 1000 waited, the one that is 80th from the end of them
	// for some 220 ms: a busy machine makes it longer, never shorter.
	if r.Latency.P90 < 150 {
		t.Errorf("p90 is %g ms: the requests that were due while the server stood still are missing", r.Latency.P90)
	}
}

// Requests that could not be sent before time was over are counted, and their waits are in the latencies.
func TestRequestsThatCouldNotBeSent(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	p := Plan{
		Rate:        100_000,
		Duration:    300 * time.Millisecond,
		InFlight:    2,
		Connections: 1,
		Grace:       10 * time.Millisecond,
	}
	r := measure(t, p, func(ctx context.Context, _ int, _ int64, _ time.Time) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if r.Answered != 0 || r.Failures["unanswered"] != 2 || r.Unsent < 4096 {
		t.Errorf(
			"%d answered, failures %v, %d unsent; want none, 2 unanswered and thousands",
			r.Answered,
			r.Failures,
			r.Unsent,
		)
	}
	if r.Latency.Count != r.Unsent+2 || r.Latency.P50 < 1 {
		t.Errorf("the latencies are %+v: they leave out who still waits", r.Latency)
	}
}

func TestAClosedLoopKeepsItsCount(t *testing.T) {
	var calls atomic.Int64
	r := measure(
		t,
		Plan{Count: 500, InFlight: 7, Connections: 1},
		func(_ context.Context, w int, _ int64, _ time.Time) error {
			if w < 0 || w >= 7 {
				return errors.New("a worker that is not one of 7")
			}
			calls.Add(1)
			return nil
		},
	)
	if calls.Load() != 500 || r.Answered != 500 || r.Loop != "closed" {
		t.Errorf("%d calls, %d answered, loop %s", calls.Load(), r.Answered, r.Loop)
	}
}

func TestWarmUpIsNotRecorded(t *testing.T) {
	start := time.Now()
	r := measure(
		t,
		Plan{Rate: 1000, Duration: 400 * time.Millisecond, Warmup: 200 * time.Millisecond, InFlight: 4, Connections: 1},
		func(context.Context, int, int64, time.Time) error {
			if time.Since(start) < 100*time.Millisecond {
				return errors.New("not yet")
			}
			return nil
		},
	)
	if r.Latency.Count != 200 || r.Failed != 0 {
		t.Errorf("%d recorded, failures %v; want the 200 of the second half", r.Latency.Count, r.Failures)
	}
}

func TestAPlanWithoutAnEndIsRefused(t *testing.T) {
	good := Plan{Rate: 1, Duration: time.Second, InFlight: 1, Connections: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"no end":           func(p *Plan) { p.Duration = 0 },
		"negative rate":    func(p *Plan) { p.Rate = -1 },
		"too fast":         func(p *Plan) { p.Rate = 1e9 },
		"too long":         func(p *Plan) { p.Duration = 48 * time.Hour },
		"all warm-up":      func(p *Plan) { p.Warmup = time.Second },
		"nobody calls":     func(p *Plan) { p.InFlight = 0 },
		"too many":         func(p *Plan) { p.InFlight = 1 << 30 },
		"no connection":    func(p *Plan) { p.Connections = 0 },
		"negative count":   func(p *Plan) { p.Count = -1 },
		"too many sockets": func(p *Plan) { p.Connections = 1 << 20 },
	} {
		p := good
		change(&p)
		if p.Validate() == nil {
			t.Errorf("%s: %+v is taken", name, p)
		}
	}
}

func TestOnlyLoopbackUnlessForced(t *testing.T) {
	o := Options{Plan: Plan{Count: 1, InFlight: 1, Connections: 1}, User: "load"}
	for _, a := range []string{"127.0.0.1:1", "[::1]:1", "127.3.4.5:1"} {
		if err := o.check(a); err != nil {
			t.Errorf("%s is refused: %v", a, err)
		}
	}
	for _, a := range []string{"192.0.2.1:8032", "[2001:db8::1]:8032", "no-port"} {
		if o.check(a) == nil {
			t.Errorf("%s is taken", a)
		}
	}
	o.Anywhere = true
	if err := o.check("192.0.2.1:8032"); err != nil {
		t.Errorf("forced, and refused: %v", err)
	}
}

func TestProgressCountsRecordedRequests(t *testing.T) {
	var reports []int64
	p := Plan{
		Rate: 100, Count: 150, InFlight: 1, Connections: 1,
		Progress: func(recorded int64, _ time.Duration) { reports = append(reports, recorded) },
	}
	r := measure(t, p, func(context.Context, int, int64, time.Time) error { return nil })
	if len(reports) == 0 || reports[0] < 1 || reports[0] > r.Answered {
		t.Errorf("reports of %v requests, of %d", reports, r.Answered)
	}
}
