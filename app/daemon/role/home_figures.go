// SPDX-License-Identifier: Apache-2.0

package role

import "github.com/prometheus/client_golang/prometheus"

// homeFigures exports a router's memory of homes. If it stays full, raise creel.router.home-cache: each call about
// another application costs a read of the state store.
type homeFigures struct{ remembered func() (n, bound int) }

var (
	rememberedHomes = figure("router_remembered_homes", "Applications whose home this router remembers.")
	mostHomes       = figure("router_remembered_homes_limit", "Greatest number of remembered homes "+
		"(creel.router.home-cache). Beyond it the least recently used is forgotten, and read from the store again.")
)

// Describe implements prometheus.Collector.
func (homeFigures) Describe(out chan<- *prometheus.Desc) {
	out <- rememberedHomes
	out <- mostHomes
}

// Collect implements prometheus.Collector.
func (f homeFigures) Collect(out chan<- prometheus.Metric) {
	n, bound := f.remembered()
	out <- prometheus.MustNewConstMetric(rememberedHomes, prometheus.GaugeValue, float64(n))
	out <- prometheus.MustNewConstMetric(mostHomes, prometheus.GaugeValue, float64(bound))
}
