// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// check is one line of /readyz?verbose.
type check struct {
	name string
	ok   func() error
}

// health answers /livez, /readyz, /metrics and /version on a daemon's web port.
type health struct {
	ready    atomic.Bool
	checks   []check
	registry *prometheus.Registry
}

func newHealth() *health {
	h := &health{registry: prometheus.NewRegistry()}
	h.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return h
}

// mount puts the four on a router.
func (h *health) mount(r chi.Router) {
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", h.readyz)
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(readBuild()) // an error here is the client's going away
	})
	r.Handle("/metrics", promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{}))
}

func (h *health) readyz(w http.ResponseWriter, r *http.Request) {
	status, text := http.StatusOK, ""
	if !h.ready.Load() {
		status = http.StatusServiceUnavailable
		text += "[-] serving: starting or stopping\n"
	} else {
		text += "[+] serving\n"
	}
	for _, c := range h.checks {
		if err := c.ok(); err != nil {
			status = http.StatusServiceUnavailable
			text += fmt.Sprintf("[-] %s: %v\n", c.name, err)
		} else {
			text += fmt.Sprintf("[+] %s\n", c.name)
		}
	}
	w.WriteHeader(status)
	if _, verbose := r.URL.Query()["verbose"]; verbose || status != http.StatusOK {
		fmt.Fprint(w, text)
	} else {
		fmt.Fprintln(w, "ok")
	}
}

// gauge publishes a figure that is read when it is scraped.
func (h *health) gauge(name, help string, f func() float64) {
	h.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
}

// counter publishes a running total that is read when it is scraped.
func (h *health) counter(name, help string, f func() float64) {
	h.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f))
}

// webServer listens at once, so that its port is known, and serves in run.
func webServer(address string, handler http.Handler) (bound string, run func(ctx context.Context) error, err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("web port: %w", err)
	}
	server := &http.Server{
		Handler:           identify(handler),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	return l.Addr().String(), func(ctx context.Context) error {
		stopped := context.AfterFunc(ctx, func() {
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if server.Shutdown(drain) != nil {
				server.Close()
			}
		})
		defer stopped()
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}
