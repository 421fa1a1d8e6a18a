// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/router/apps"
)

// appFigures exports the federation's applications by queue, as pages and /api/v1 count them.
type appFigures struct {
	tallies func(ctx context.Context) []apps.QueueTally
}

var (
	fedApplications = figure("applications", "Applications of a leaf queue in all members, each at its home. One that "+
		"has no AM or asks that are not granted is waiting, others are running.", "queue", "state")
	fedOldestWait = figure("applications_oldest_wait_seconds", "Age of the oldest wait of a leaf queue's "+
		"applications; 0 if none waits. Of Hadoop's ResourceManagers it has those without an AM.", "queue")
)

// tallyWait bounds the wait of a scrape for members that publish no changes.
const tallyWait = time.Second

// addApplications adds the task that keeps the list of applications, its metrics, and its part of the history.
func (r *Router) addApplications(list *apps.List) {
	r.Server.WaitingBy(list.Waiting)
	r.Add("applications", list.Run)
	r.Health.Register(appFigures{func(ctx context.Context) []apps.QueueTally {
		ctx, cancel := context.WithTimeout(ctx, tallyWait)
		defer cancel()
		return list.Tallies(ctx, r.Watcher.View())
	}})
}

// Describe implements prometheus.Collector.
func (appFigures) Describe(out chan<- *prometheus.Desc) {
	out <- fedApplications
	out <- fedOldestWait
}

// Collect implements prometheus.Collector. It exports nothing before the first list.
func (f appFigures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, t := range f.tallies(context.Background()) {
		gauge(fedApplications, float64(t.Running), string(t.Queue), "running")
		gauge(fedApplications, float64(t.Waiting), string(t.Queue), "waiting")
		gauge(fedOldestWait, t.OldestWait.Seconds(), string(t.Queue))
	}
}
