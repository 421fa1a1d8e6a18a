// SPDX-License-Identifier: Apache-2.0

package health

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// requestBuckets are the upper bounds of latency buckets in seconds, as for RPC.
var requestBuckets = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}

// otherRoute is the label of requests without a route.
const otherRoute = "none"

// requestFigures are the metrics that Requests records, shared by all HTTP routers of a daemon.
type requestFigures struct {
	once     sync.Once
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// Requests measures the requests of a router; add it before the routes. It labels them by route, never by path, so
// that clients cannot add time series.
func (h *Health) Requests(next http.Handler) http.Handler {
	f := &h.requests
	f.once.Do(func() {
		f.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "creel_http_request_duration_seconds", Buckets: requestBuckets,
			Help: "Time from a request's headers to the end of its answer.",
		}, []string{"method", "route", "code"})
		f.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "creel_http_requests_in_flight", Help: "Requests that wait for the end of their answer.",
		})
		h.Register(f.seconds)
		h.Register(f.inFlight)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		f.inFlight.Inc()
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			f.inFlight.Dec()
			route := otherRoute
			if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" {
				route = c.RoutePattern()
			}
			f.seconds.WithLabelValues(methodOf(r.Method), route, class(answer.Status())).
				Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(answer, r)
	})
}

// methodOf returns a method as a label: an HTTP method, or "other".
func methodOf(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions,
		http.MethodPatch:
		return m
	}
	return "other"
}

// class returns a status as a label: "2xx".
func class(status int) string {
	if status == 0 {
		status = http.StatusOK // no status was written
	}
	return strconv.Itoa(status/100) + "xx"
}
