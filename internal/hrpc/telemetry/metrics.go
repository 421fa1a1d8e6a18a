// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"sort"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/hrpc"
)

// buckets are the upper bounds of latencies, in seconds. They range from an answer from memory to one that waited for
// another cluster.
var buckets = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}

// Metrics counts the calls of one server's methods with a few atomic additions per call. A scrape reads the counters.
// It is a prometheus.Collector.
type Metrics struct {
	methods map[name]*method // fixed at creation, so that no client can add to it
	other   *method          // raw methods that are served under any name
	server  func() hrpc.Stats

	seconds, failed, inFlight *prometheus.Desc
	stats                     []stat
}

type name struct{ protocol, method string }

type method struct {
	name
	inFlight atomic.Int64
	failed   atomic.Uint64
	nanos    atomic.Int64
	counts   []atomic.Uint64 // one for each bucket, and one above the last
}

type stat struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(hrpc.Stats) float64
}

// NewMetrics makes the counters of the services' methods. The label door contains port, the name of the port that
// serves them. Call Server before the first scrape to include the server's own metrics.
func NewMetrics(port string, services []hrpc.Service) *Metrics {
	labels := prometheus.Labels{"door": port}
	desc := func(name, help string, by ...string) *prometheus.Desc {
		return prometheus.NewDesc("creel_rpc_"+name, help, by, labels)
	}
	m := &Metrics{
		methods:  map[name]*method{},
		other:    newMethod(name{"other", "other"}),
		seconds:  desc("call_duration_seconds", "Time from a call's dispatch to its answer.", "protocol", "method"),
		failed:   desc("calls_failed_total", "Calls answered with an error.", "protocol", "method"),
		inFlight: desc("calls_in_flight", "Calls that wait for their answer.", "protocol", "method"),
	}
	for _, s := range services {
		for n := range s.Methods {
			key := name{s.Protocol, n}
			m.methods[key] = newMethod(key)
		}
	}
	gauge := func(name, help string, read func(hrpc.Stats) float64) {
		m.stats = append(m.stats, stat{desc(name, help), prometheus.GaugeValue, read})
	}
	counter := func(name, help string, read func(hrpc.Stats) float64) {
		m.stats = append(m.stats, stat{desc(name, help), prometheus.CounterValue, read})
	}
	gauge("connections", "Open connections.", func(s hrpc.Stats) float64 { return float64(s.Connections) })
	gauge(
		"request_memory_bytes",
		"Held of large requests.",
		func(s hrpc.Stats) float64 { return float64(s.RequestBytes) },
	)
	gauge(
		"reply_queue_bytes",
		"Answers queued for clients that do not read.",
		func(s hrpc.Stats) float64 { return float64(s.ReplyBytes) },
	)
	counter(
		"connections_accepted_total",
		"Connections since the start.",
		func(s hrpc.Stats) float64 { return float64(s.Accepted) },
	)
	counter(
		"connections_refused_total",
		"Connections above a limit.",
		func(s hrpc.Stats) float64 { return float64(s.Refused) },
	)
	counter(
		"connections_slow_total",
		"Connections closed because a request did not arrive in time.",
		func(s hrpc.Stats) float64 { return float64(s.Slow) },
	)
	counter(
		"auth_failed_total",
		"Handshakes refused as unauthorized.",
		func(s hrpc.Stats) float64 { return float64(s.AuthFailed) },
	)
	counter("calls_total", "Calls dispatched.", func(s hrpc.Stats) float64 { return float64(s.Calls) })
	counter("calls_busy_total", "Calls refused above a limit.", func(s hrpc.Stats) float64 { return float64(s.Busy) })
	counter(
		"received_bytes_total",
		"Bytes read from connections.",
		func(s hrpc.Stats) float64 { return float64(s.BytesIn) },
	)
	return m
}

func newMethod(n name) *method {
	return &method{name: n, counts: make([]atomic.Uint64, len(buckets)+1)}
}

// Server adds the metrics of a server to those of its methods.
func (m *Metrics) Server(stats func() hrpc.Stats) { m.server = stats }

// Interceptor counts calls.
func (m *Metrics) Interceptor() hrpc.Interceptor {
	return func(
		_ context.Context,
		call *hrpc.Call,
		_ proto.Message,
	) (context.Context, func(proto.Message, error), error) {
		of := m.methods[name{call.Protocol, call.Method}]
		if of == nil {
			of = m.other
		}
		of.inFlight.Add(1)
		began := time.Now()
		return nil, func(_ proto.Message, err error) {
			of.inFlight.Add(-1)
			if err != nil {
				of.failed.Add(1)
			}
			took := time.Since(began)
			of.nanos.Add(int64(took))
			of.counts[sort.SearchFloat64s(buckets, took.Seconds())].Add(1)
		}, nil
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.seconds
	out <- m.failed
	out <- m.inFlight
	for _, s := range m.stats {
		out <- s.desc
	}
}

// Collect implements prometheus.Collector. Methods without calls are omitted.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, of := range m.methods {
		m.collect(of, out)
	}
	m.collect(m.other, out)
	if m.server == nil {
		return
	}
	now := m.server()
	for _, s := range m.stats {
		out <- prometheus.MustNewConstMetric(s.desc, s.kind, s.read(now))
	}
}

func (m *Metrics) collect(of *method, out chan<- prometheus.Metric) {
	below, total := make(map[float64]uint64, len(buckets)), uint64(0)
	for i := range of.counts {
		total += of.counts[i].Load()
		if i < len(buckets) {
			below[buckets[i]] = total
		}
	}
	waiting := of.inFlight.Load()
	if total == 0 && waiting == 0 {
		return
	}
	sum := time.Duration(of.nanos.Load()).Seconds()
	out <- prometheus.MustNewConstHistogram(m.seconds, total, sum, below, of.protocol, of.name.method)
	out <- prometheus.MustNewConstMetric(
		m.failed,
		prometheus.CounterValue,
		float64(of.failed.Load()),
		of.protocol,
		of.name.method,
	)
	out <- prometheus.MustNewConstMetric(
		m.inFlight,
		prometheus.GaugeValue,
		float64(waiting),
		of.protocol,
		of.name.method,
	)
}
