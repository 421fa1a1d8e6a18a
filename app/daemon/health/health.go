// SPDX-License-Identifier: Apache-2.0

// Package health serves the monitoring endpoints of a daemon's web port: liveness, readiness, metrics and version.
package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/creelrm/creel/app/daemon/build"
	"github.com/creelrm/creel/internal/httpguard"
)

// Health is the health of one daemon. Checks and metrics are added before it is mounted.
type Health struct {
	ready    atomic.Bool
	checks   []check
	depends  []dependency
	registry *prometheus.Registry
	requests requestFigures
}

// State is the state of a dependency.
type State struct {
	Text string // as text, with its age
	Warn bool   // it works, but an operator should check it
	Err  error  // why the daemon cannot do all its tasks; nil if it can
}

// dependency is one line of /readyz?verbose that plain /readyz ignores.
type dependency struct {
	name string
	look func() State
}

// check is one line of /readyz?verbose.
type check struct {
	name string
	ok   func() error
}

// New returns a Health that is not ready, with the metrics of the Go runtime and of the process.
func New() *Health {
	h := &Health{registry: prometheus.NewRegistry()}
	is := build.Read()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "creel_build_info", Help: "Always 1; the labels are the version, the commit and the Go version.",
		ConstLabels: prometheus.Labels{"version": is.Version, "commit": is.Commit, "go": is.Go},
	})
	info.Set(1)
	h.registry.MustRegister(
		info,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return h
}

// SetReady is called when the daemon starts and stops serving.
func (h *Health) SetReady(ready bool) { h.ready.Store(ready) }

// Check adds a condition of readiness; ok must not block.
func (h *Health) Check(name string, ok func() error) { h.checks = append(h.checks, check{name, ok}) }

// Depend adds a dependency to /readyz?verbose, which reports it and fails with it. Plain /readyz ignores it: while
// the store is unhealthy, a daemon still serves the data that it has. A load balancer should not remove all daemons
// at once. look must not block.
func (h *Health) Depend(name string, look func() State) {
	h.depends = append(h.depends, dependency{name, look})
}

// Register adds metrics to /metrics. It panics on a duplicate name.
func (h *Health) Register(c prometheus.Collector) { h.registry.MustRegister(c) }

// RegisterOf is Register with labels on all metrics. An empty value means no label.
func (h *Health) RegisterOf(labels prometheus.Labels, c prometheus.Collector) {
	prometheus.WrapRegistererWith(labels, h.registry).MustRegister(c)
}

// Gauge adds a metric that is read at each scrape.
func (h *Health) Gauge(name, help string, f func() float64) {
	h.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
}

// Counter adds a running total that is read at each scrape.
func (h *Health) Counter(name, help string, f func() int64) {
	h.Register(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help},
		func() float64 { return float64(f()) },
	))
}

// Mount adds /livez, /readyz, /version and /metrics to a router, and /prom, the path of Hadoop's daemons for metrics.
func (h *Health) Mount(r chi.Router) {
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", h.readyz)
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(build.Read()) // an error means that the client has gone
	})
	// Only GET: with a HEAD route of /metrics, chi's GetHead would consider HEAD of a subrouter's own /metrics, such
	// as /ws/v1/cluster/metrics, to have a handler.
	figures := promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{})
	r.Method(http.MethodGet, "/metrics", figures)
	r.Handle("/prom", httpguard.Reading(figures))
}

// Line is one line of /readyz?verbose.
type Line struct {
	Name string
	State
}

// Lines returns the conditions of readiness, then the dependencies.
func (h *Health) Lines() (conditions, dependencies []Line) {
	var serving error
	if !h.ready.Load() {
		serving = errNotServing
	}
	conditions = append(conditions, Line{"serving", State{Err: serving}})
	for _, c := range h.checks {
		conditions = append(conditions, Line{c.name, State{Err: c.ok()}})
	}
	for _, d := range h.depends {
		dependencies = append(dependencies, Line{d.name, d.look()})
	}
	return conditions, dependencies
}

func (h *Health) readyz(w http.ResponseWriter, r *http.Request) {
	var text strings.Builder
	status := http.StatusOK
	lines, dependencies := h.Lines()
	_, verbose := r.URL.Query()["verbose"]
	if verbose {
		lines = append(lines, dependencies...)
	}
	for _, l := range lines {
		switch {
		case l.Err != nil:
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&text, "[-] %s: %v\n", l.Name, l.Err)
		case l.Warn:
			fmt.Fprintf(&text, "[!] %s: %s\n", l.Name, l.Text)
		case l.Text != "":
			fmt.Fprintf(&text, "[+] %s: %s\n", l.Name, l.Text)
		default:
			fmt.Fprintf(&text, "[+] %s\n", l.Name)
		}
	}
	w.WriteHeader(status)
	if verbose || status != http.StatusOK {
		fmt.Fprint(w, text.String())
		return
	}
	fmt.Fprintln(w, "ok")
}

var errNotServing = fmt.Errorf("starting or stopping")
