// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/redis"
)

// countedStore is a store on Redis with metrics of its operations. The in-memory store has none, because its
// operations are function calls.
type countedStore struct {
	*redis.Store
	figures *storeFigures
}

// storeFigures are shared by all daemons of a process that use the same store.
type storeFigures struct{ took *prometheus.HistogramVec }

func newStoreFigures() *storeFigures {
	return &storeFigures{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "creel_store_operation_duration_seconds",
		Help:    "State store operations including repeats, by result: ok, refused (by the server), unavailable.",
		Buckets: []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10},
	}, []string{"operation", "result"})}
}

func (f *storeFigures) observe(operation string, took time.Duration, err error) {
	result := "refused"
	switch {
	case err == nil, errors.Is(err, goredis.Nil):
		result = "ok"
	case errors.Is(err, creel.ErrUnavailable):
		result = "unavailable"
	}
	f.took.WithLabelValues(operation, result).Observe(took.Seconds())
}
