// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/creelrm/creel/internal/hrpc"
)

// meter records a load's measurements. Workers record into shards, to avoid lock contention.
type meter struct {
	from   time.Time // requests due before this are not recorded
	until  time.Time
	shards [8]shard
	lags   shard

	waiting atomic.Int64 // due and not sent
	open    atomic.Bool
	spent   *useMeter

	ended  chan struct{} // closed at the end
	ticker sync.WaitGroup
}

type shard struct {
	mu     sync.Mutex
	h      *hdrhistogram.Histogram
	failed map[string]int64
}

// Latencies are stored in microseconds to three digits, up to an hour.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, time.Hour.Microseconds(), 3) }

func newMeter(pids []int) *meter {
	m := &meter{spent: newSpending(pids)}
	for i := range m.shards {
		m.shards[i] = shard{h: newHistogram(), failed: map[string]int64{}}
	}
	m.lags.h = newHistogram()
	return m
}

// begin starts the measured time, including processor time.
func (m *meter) begin(p Plan, start time.Time) {
	m.from = start.Add(p.Warmup)
	m.open.Store(true)
	m.spent.startAt(m.from)
	m.ended = make(chan struct{})
	if p.Progress == nil {
		return
	}
	m.ticker.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-m.ended:
				return
			case now := <-tick.C:
				p.Progress(m.recorded(), now.Sub(start))
			}
		}
	})
}

// recorded returns the number of recorded requests.
func (m *meter) recorded() (n int64) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += s.h.TotalCount()
		s.mu.Unlock()
	}
	return n
}

func (m *meter) end(now time.Time) {
	m.open.Store(false)
	m.until = now
	m.spent.stop()
	close(m.ended)
	m.ticker.Wait()
}

// lag records the timekeeper's own delay.
func (m *meter) lag(d time.Duration) { m.lags.record(d) }

func (s *shard) record(d time.Duration) {
	s.mu.Lock()
	_ = s.h.RecordValue(min(max(d.Microseconds(), 1), time.Hour.Microseconds()))
	s.mu.Unlock()
}

// done records a completed request. One that was cut off at the end of the time is recorded with its waiting time.
func (m *meter) done(worker int, due, now time.Time, err error) {
	if due.Before(m.from) {
		return
	}
	s := &m.shards[worker%len(m.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done(now.Sub(due), err)
}

// done records a request with its duration. The caller holds the lock.
func (s *shard) done(took time.Duration, err error) {
	if err != nil {
		s.failed[reason(err)]++
		if !errors.Is(err, context.Canceled) {
			return
		}
	}
	_ = s.h.RecordValue(min(max(took.Microseconds(), 1), time.Hour.Microseconds()))
}

// unsent records a due request that could not be sent.
func (m *meter) unsent(due, now time.Time) {
	if due.Before(m.from) {
		return
	}
	m.waiting.Add(1)
	m.shards[0].record(now.Sub(due))
}

// reason is a short name for an error, for counting.
func reason(err error) string {
	var remote *hrpc.RemoteError
	var transport *hrpc.TransportError
	var status statusError
	switch {
	case errors.As(err, &remote):
		return remote.Class[strings.LastIndexByte(remote.Class, '.')+1:]
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "unanswered"
	case errors.As(err, &transport):
		return "connection: " + transport.Op
	}
	return err.Error()
}

// Latency is a distribution in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Latency{
		Count: h.TotalCount(),
		Mean:  round(h.Mean() / 1000),
		P50:   ms(h.ValueAtQuantile(50)),
		P90:   ms(h.ValueAtQuantile(90)),
		P99:   ms(h.ValueAtQuantile(99)),
		P999:  ms(h.ValueAtQuantile(99.9)),
		Max:   ms(h.Max()),
	}
}

// round drops digits beyond a number's precision.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 4-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Result is the result of one load, as `creel load` prints it.
type Result struct {
	Kind    string  `json:"kind"`
	Address string  `json:"address"`
	Loop    string  `json:"loop"` // open, or closed when no rate was given
	Rate    float64 `json:"rate"` // requested per second; 0 for a closed loop
	Seconds float64 `json:"seconds"`

	Answered int64            `json:"answered"`
	Unsent   int64            `json:"unsent"` // were due and could not be sent in time
	Failed   int64            `json:"failed"`
	Failures map[string]int64 `json:"failures,omitempty"`
	// PerSecond counts successful responses.
	PerSecond float64 `json:"per_second"`
	// Latency counts from a request's due time; in a closed loop from its sending.
	Latency Latency `json:"latency_ms"`

	Generator Generator    `json:"generator"`
	Servers   []ProcessUse `json:"servers,omitempty"`

	Nodes      *NodesResult `json:"nodes,omitempty"`
	Containers *AllocResult `json:"containers,omitempty"`
	REST       *RESTResult  `json:"rest,omitempty"`
}

// Generator is the cost of the generator itself. If the generator used up the machine, or lagged, the load measured
// itself.
type Generator struct {
	CPUSeconds float64 `json:"cpu_s"`
	Cores      float64 `json:"cores"`
	CPUMicros  float64 `json:"cpu_us_each"` // per answer
	// Lag is the delay of sent requests, for any reason.
	LagP99 float64 `json:"lag_p99_ms"`
	LagMax float64 `json:"lag_max_ms"`
}

// ProcessUse is a watched process's use during the load.
type ProcessUse struct {
	PID        int     `json:"pid"`
	CPUSeconds float64 `json:"cpu_s"`
	Cores      float64 `json:"cores"`
	CPUMicros  float64 `json:"cpu_us_each"`
	ResidentMB float64 `json:"resident_mb"`
}

// result summarises. weight is the number of items per answer.
func (m *meter) result(kind, address string, p Plan) *Result {
	r := &Result{
		Kind:     kind,
		Address:  address,
		Loop:     "open",
		Rate:     p.Rate,
		Failures: map[string]int64{},
		Unsent:   m.waiting.Load(),
	}
	if p.Rate == 0 {
		r.Loop = "closed"
	}
	all := newHistogram()
	for i := range m.shards {
		s := &m.shards[i]
		all.Merge(s.h)
		for why, n := range s.failed {
			r.Failures[why] += n
			r.Failed += n
		}
	}
	r.Latency = latencyOf(all)
	r.Answered = all.TotalCount() - r.Unsent - r.Failures["unanswered"]
	seconds := m.until.Sub(m.from).Seconds()
	r.Seconds = round(seconds)
	r.PerSecond = round(float64(r.Answered) / seconds)
	lag := latencyOf(m.lags.h)
	r.Generator, r.Servers = m.spent.each(float64(r.Answered), seconds)
	r.Generator.LagP99, r.Generator.LagMax = lag.P99, lag.Max
	return r
}

// Worst names the most frequent failures, for a message.
func (r *Result) Worst() string {
	names := slices.SortedFunc(maps.Keys(r.Failures), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Failures[b], r.Failures[a]), cmp.Compare(a, b))
	})
	return strings.Join(names[:min(3, len(names))], ", ")
}
