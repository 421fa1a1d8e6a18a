// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/pauseclock"
)

// newClock returns the clock of the time in which a daemon runs, and adds the task that advances it.
func newClock(s *daemon.Service, log *slog.Logger) *pauseclock.Clock {
	c := pauseclock.NewClock(time.Now, log)
	s.Add("clock", c.Run)
	countPauses(s.Health, c.Paused)
	return c
}

// countPauses adds the metric of the time in which a daemon did not run.
func countPauses(h *health.Health, paused func() time.Duration) {
	h.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "creel_process_paused_seconds_total",
		Help: "Time in which this process did not run; it ignores missed heartbeats of that time.",
	}, func() float64 { return paused().Seconds() }))
}
