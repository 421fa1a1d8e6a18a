// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// A queue is guaranteed half of the federation. All its demand is in one of two members, where another queue uses
// everything. The queue gets the part above the other's half there. Most of that half is in the other member, where
// nothing is preempted. When the rebalancer is gone, or plans are paused, the configured capacities apply again.
func TestQueueRecoversFederationGuaranteeInOneMember(t *testing.T) {
	const each, memory = 512, 8192
	const prefix = "yarn.resourcemanager.monitor.capacity.preemption."
	f := startSimulation(t, 2, memory, hadoop.Conf{
		"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
		"yarn.resourcemanager.scheduler.monitor.enable":       "true",
		prefix + "monitoring_interval":                        "200",
		prefix + "max_wait_before_kill":                       "400",
		prefix + "total_preemption_per_round":                 "1",
		prefix + "natural_termination_factor":                 "1",
	})
	f.startRebalancer(t)
	one, two := f.Subclusters[0], f.Subclusters[1]
	for _, s := range []*Subcluster{one, two} {
		for range memory / each {
			submitSleep(t, s.Addresses.Web, "other", each)
		}
	}
	if process.Poll(nil, func() bool {
		return queueOf(t, one, "other").ResourcesUsed.Memory+queueOf(t, two, "other").ResourcesUsed.Memory == 2*memory
	}) != nil {
		t.Fatal("the members are not full")
	}
	f.applyTree(t, "queues:\n- {queue: root.default, guarantee: {memory: 8192}}\n- {queue: root.other, guarantee: {memory: 8192}}\n")
	configured := queueOf(t, one, "default")
	began := time.Now()
	for range memory / each {
		submitSleep(t, one.Addresses.Web, "default", each)
	}
	// But for the tenth by which the other may be above its part before it loses any.
	const enough = memory * 85 / 100
	if process.Poll(nil, func() bool { return queueOf(t, one, "default").ResourcesUsed.Memory >= enough }) != nil {
		t.Fatalf("it has %+v of %d MB", queueOf(t, one, "default"), memory)
	}
	q := queueOf(t, one, "default")
	t.Logf("%d of %d MB after %.1f s; configured are %.0f%% of the member, the plan gives %.0f%%",
		q.ResourcesUsed.Memory, memory, time.Since(began).Seconds(), q.AbsoluteCapacity, q.Planned.AbsoluteCapacity)
	if q.AbsoluteCapacity != configured.AbsoluteCapacity || q.Planned.AbsoluteCapacity < 80 {
		t.Errorf("configured %v, then %+v with %+v planned", configured.AbsoluteCapacity, q, q.Planned)
	}
	if n := metric(t, two.Addresses.Web, "creel_rm_preempted_containers_total"); n > 0 {
		t.Errorf("%v containers are taken back in the other member", n)
	}
	if n := metric(t, one.Addresses.Web, "creel_planned_queues"); n < 2 {
		t.Errorf("%v queues are planned", n)
	}
	text := ""
	if process.Poll(nil, func() bool {
		text = f.operate(t, "rebalancer", "why", "root.default")
		return strings.Contains(text, "sc-1 guarantees it memory ")
	}) != nil {
		t.Errorf("creel rebalancer why says\n%s", text)
	}
	if text := f.operate(t, "rebalancer", "history", "-o", "json"); !strings.Contains(text, `"capacity": "sc-1 `) {
		t.Errorf("creel rebalancer history says\n%s", text)
	}
	f.operate(t, "rebalancer", "pause", "--reason", "test")
	if process.Poll(nil, func() bool { return queueOf(t, one, "default").Planned == nil }) != nil {
		t.Errorf("plans are paused, and in force is %+v", queueOf(t, one, "default").Planned)
	}
}
