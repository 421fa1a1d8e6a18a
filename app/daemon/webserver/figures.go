// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/internal/ratelog"
)

// Figures counts the connections of a web port that were closed early. It is a prometheus.Collector.
type Figures struct {
	refusedCount, slowCount atomic.Uint64
	refusedLine, slowLine   ratelog.Line

	refusedDesc, slowDesc *prometheus.Desc
}

// NewFigures returns figures with zero counts.
func NewFigures() *Figures {
	return &Figures{
		refusedDesc: prometheus.NewDesc("creel_http_connections_refused_total",
			"Connections above a limit.", nil, nil),
		slowDesc: prometheus.NewDesc("creel_http_connections_slow_total",
			"Connections closed because a request did not arrive in time.", nil, nil),
	}
}

// Describe is a prometheus.Collector's.
func (f *Figures) Describe(out chan<- *prometheus.Desc) { out <- f.refusedDesc; out <- f.slowDesc }

// Collect is a prometheus.Collector's.
func (f *Figures) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(f.refusedDesc, prometheus.CounterValue, float64(f.refusedCount.Load()))
	out <- prometheus.MustNewConstMetric(f.slowDesc, prometheus.CounterValue, float64(f.slowCount.Load()))
}

// refused counts a connection above a limit.
func (f *Figures) refused(c *conn, why string) {
	f.refusedCount.Add(1)
	if count, write := f.refusedLine.Happened(time.Now()); write {
		slog.Warn("web port: rejected connections above a limit",
			"address", c.l.Addr().String(), "count", count, "last_from", c.from.String(), "why", why,
			"try", "find the client; creel.http.max-connections and -per-address permit more")
	}
}

// tooSlow counts a connection closed because its request did not arrive in time.
func (f *Figures) tooSlow(c *conn, why string) {
	f.slowCount.Add(1)
	if count, write := f.slowLine.Happened(time.Now()); write {
		slog.Warn("web port: closed slow connections",
			"address", c.l.Addr().String(), "count", count, "last_from", c.from.String(), "why", why,
			"try", "find out which client that is, and block unknown clients from the port")
	}
}
