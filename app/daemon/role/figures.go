// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

func figure(name, help string, by ...string) *prometheus.Desc {
	return prometheus.NewDesc("creel_"+name, help, by, nil)
}

// viewFigures exports metrics of a router's or proxy's view of the federation.
type viewFigures struct{ of *watch.Watcher }

var (
	membersByState = figure("members", "Members of the federation by state.", "state")
	viewAge        = figure("view_age_seconds", "Time since the state store was last read well, in which this process ran.")
	viewFrozen     = figure("view_frozen", "1 while all members are silent together, and the view is as it was before.")
	policyVersion  = figure("policies_version", "The newest version among the policies in force.")
)

// Describe implements prometheus.Collector.
func (viewFigures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{membersByState, viewAge, viewFrozen, policyVersion} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Without a view it exports nothing.
func (f viewFigures) Collect(out chan<- prometheus.Metric) {
	v := f.of.View()
	age, ok := f.of.Age()
	if v == nil || !ok {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := map[subcluster.State]int{}
	for i := range v.Members {
		count[v.Members[i].State]++
	}
	for _, s := range []subcluster.State{
		subcluster.StateActive, subcluster.StateDraining, subcluster.StateSuspect, subcluster.StateLost,
		subcluster.StateDeregistered,
	} {
		gauge(membersByState, float64(count[s]), s.String())
	}
	gauge(viewAge, age.Seconds())
	frozen := 0.0
	if v.Freeze != nil {
		frozen = 1
	}
	gauge(viewFrozen, frozen)
	var newest int64
	for _, p := range v.Policies.All() {
		newest = max(newest, p.Version)
	}
	gauge(policyVersion, float64(newest))
}

// breakerFigures exports the breakers that are open, by member and kind of call.
type breakerFigures struct{ of *remote.Pool }

var breakerState = figure("breaker_state", "1 for the state of the breaker of a member's calls: closed, half-open, open.",
	"subcluster", "calls", "state")

// Describe implements prometheus.Collector.
func (breakerFigures) Describe(out chan<- *prometheus.Desc) { out <- breakerState }

// Collect implements prometheus.Collector.
func (f breakerFigures) Collect(out chan<- prometheus.Metric) {
	f.of.Breakers(func(id creel.SubclusterID, k remote.Kind, state string) {
		for _, s := range [...]string{"closed", "half-open", "open"} {
			is := 0.0
			if s == state {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(breakerState, prometheus.GaugeValue, is, string(id), k.String(), s)
		}
	})
}

// waitFigures exports the times between requests for containers and their grants.
type waitFigures struct {
	desc *prometheus.Desc
	of   func() waitstats.Histogram
}

// Describe implements prometheus.Collector.
func (f waitFigures) Describe(out chan<- *prometheus.Desc) { out <- f.desc }

// Collect implements prometheus.Collector.
func (f waitFigures) Collect(out chan<- prometheus.Metric) {
	h := f.of()
	out <- waitMetric(f.desc, &h)
}

func waitMetric(d *prometheus.Desc, h *waitstats.Histogram) prometheus.Metric {
	count, sum, by := h.Buckets()
	return prometheus.MustNewConstHistogram(d, count, sum, by)
}

var proxyWaits = figure("proxy_grant_wait_seconds",
	"From an AM's ask to the grant of each container, by any member. An ask that is raised while it waits counts from the mean.")

// subclusterFigures exports metrics of a ResourceManager's subcluster. Each scrape reads them from its state machine.
type subclusterFigures struct {
	query func(context.Context, func(m *rm.Machine, now time.Time)) error
}

func newSubclusterFigures(
	query func(context.Context, func(m *rm.Machine, now time.Time)) error,
) prometheus.Collector {
	return subclusterFigures{query}
}

var (
	rmApplications = figure("rm_applications", "Applications by state; those that ended count since the start.", "state")
	rmNodes        = figure("rm_nodes", "Nodes by state.", "state")
	rmContainers   = figure("rm_containers", "Containers: allocated, reserved, pending.", "state")
	rmMemory       = figure("rm_memory_bytes", "Memory of the subcluster: total, used, reserved, pending.", "kind")
	rmVCores       = figure("rm_vcores", "Cores of the subcluster: total, used, reserved, pending.", "kind")
	rmQueueMemory  = figure("rm_queue_memory_bytes", "Memory of a queue: guaranteed, used, pending.", "queue", "kind")
	rmWaits        = figure("rm_grant_wait_seconds",
		"From an ask to the grant of each container but AMs' own. An ask that is raised while it waits counts from the mean.")
	rmQueueApps = figure("rm_queue_applications",
		"Applications of a queue in one member, as YARN counts them: active (with an AM), pending (without).",
		"queue", "state")
	rmQueueLost = figure("rm_queue_preempted_containers_total",
		"Containers taken back from a queue and those below it.", "queue")
	rmQueueLostMemory = figure("rm_queue_preempted_byte_seconds_total",
		"The memory of these times how long they had run: work that was lost.", "queue")
	rmOpportunistic = figure("rm_opportunistic_containers",
		"Opportunistic containers on nodes; no other metric of containers has them.")
	rmOpportunisticGrants = figure("rm_opportunistic_granted_total",
		"Opportunistic containers granted: on a named host (node), on a named rack (rack), elsewhere (any), by a NodeManager (nodemanager).", "place")
	rmOpportunisticLent = figure("rm_opportunistic_lent_total",
		"Opportunistic containers granted on resources that others had allocated and did not use.")
	rmOpportunisticEnds    = figure("rm_opportunistic_released_total", "Opportunistic containers that ended.")
	rmOpportunisticWaiting = figure("rm_opportunistic_waiting_containers",
		"Opportunistic containers that wait in queues of nodes, or are paused there.")
	rmOpportunisticKills = figure("rm_opportunistic_killed_total",
		"Opportunistic containers that nodes killed: for guaranteed ones (room), at a full queue (queue_full), "+
			"above a lowered limit (queue_limit), and for the node's use (use).", "reason")
	rmOpportunisticUpdates = figure("rm_opportunistic_updates_total",
		"Containers that were promoted to guaranteed ones, or demoted to opportunistic ones.", "kind")
	rmOpportunisticLimit = figure("rm_opportunistic_queue_limit",
		"The limit for each node's queue, in containers; -1 if it is a time, 0 if no opportunistic container is allocated.")
	rmQueueLostCores = figure("rm_queue_preempted_vcore_seconds_total", "The same of their cores.", "queue")
)

// Describe implements prometheus.Collector.
func (subclusterFigures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		rmApplications, rmNodes, rmContainers, rmMemory, rmVCores, rmQueueMemory, rmQueueApps, rmWaits,
		rmQueueLost, rmQueueLostMemory, rmQueueLostCores,
		rmOpportunistic, rmOpportunisticGrants, rmOpportunisticEnds, rmOpportunisticUpdates, rmOpportunisticLimit,
		rmOpportunisticWaiting, rmOpportunisticKills, rmOpportunisticLent,
	} {
		out <- d
	}
}

// scrapeTime limits a scrape's wait for the machine.
const scrapeTime = 5 * time.Second

// Collect implements prometheus.Collector. It exports nothing if the machine does not answer in time.
func (f subclusterFigures) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	var cluster rm.ClusterView
	var queues []rm.QueueView
	var lent rm.OpportunisticCounts
	if f.query(ctx, func(m *rm.Machine, _ time.Time) {
		cluster = m.Cluster()
		lent, _ = m.Opportunistic()
		for q := range m.Queues {
			queues = append(queues, q)
		}
	}) != nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	const mb = 1 << 20
	for state, n := range map[string]int64{
		"pending": cluster.AppsPending, "running": cluster.AppsRunning, "finished": cluster.AppsCompleted,
		"failed": cluster.AppsFailed, "killed": cluster.AppsKilled,
	} {
		gauge(rmApplications, float64(n), state)
	}
	for s := creel.NodeNew; s <= creel.NodeShutdown; s++ {
		gauge(rmNodes, float64(cluster.Nodes[s]), s.String())
	}
	for state, n := range map[string]int32{
		"allocated": cluster.Containers, "reserved": cluster.ReservedContainers, "pending": cluster.PendingContainers,
	} {
		gauge(rmContainers, float64(n), state)
	}
	out <- waitMetric(rmWaits, &cluster.Waits)
	collectOpportunistic(out, &lent)
	for kind, r := range map[string]creel.Resource{
		"total": cluster.Total, "used": cluster.Used, "reserved": cluster.Reserved, "pending": cluster.Pending,
	} {
		gauge(rmMemory, float64(r.MemoryMB)*mb, kind)
		gauge(rmVCores, float64(r.VCores), kind)
	}
	for i := range queues {
		q := &queues[i]
		for kind, r := range map[string]creel.Resource{
			"guaranteed": q.Guaranteed, "used": q.Used, "pending": q.Pending,
		} {
			gauge(rmQueueMemory, float64(r.MemoryMB)*mb, string(q.Path), kind)
		}
		gauge(rmQueueApps, float64(q.ActiveApps), string(q.Path), "active")
		gauge(rmQueueApps, float64(q.PendingApps), string(q.Path), "pending")
		for d, v := range map[*prometheus.Desc]float64{
			rmQueueLost:       float64(q.ContainersPreempted),
			rmQueueLostMemory: float64(q.PreemptedSeconds.MemoryMB) * mb,
			rmQueueLostCores:  float64(q.PreemptedSeconds.VCores),
		} {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, string(q.Path))
		}
	}
}

func collectOpportunistic(out chan<- prometheus.Metric, v *rm.OpportunisticCounts) {
	total := func(d *prometheus.Desc, value int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	out <- prometheus.MustNewConstMetric(rmOpportunistic, prometheus.GaugeValue, float64(v.Containers))
	out <- prometheus.MustNewConstMetric(rmOpportunisticWaiting, prometheus.GaugeValue, float64(v.Waiting))
	for i, n := range v.Killed {
		total(rmOpportunisticKills, n, opportunistic.Kill(i).String())
	}
	out <- prometheus.MustNewConstMetric(rmOpportunisticLimit, prometheus.GaugeValue, float64(v.Limit.Length))
	total(rmOpportunisticGrants, v.NodeLocal, "node")
	total(rmOpportunisticGrants, v.OnRack, "rack")
	total(rmOpportunisticGrants, v.Elsewhere, "any")
	total(rmOpportunisticGrants, v.Placed, "nodemanager")
	total(rmOpportunisticLent, v.Lent)
	total(rmOpportunisticEnds, v.Released)
	total(rmOpportunisticUpdates, v.Promoted, "promotion")
	total(rmOpportunisticUpdates, v.Demoted, "demotion")
}
