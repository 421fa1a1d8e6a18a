// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count opportunistic containers apart from guaranteed ones.
func TestMetricsCountOpportunisticContainers(t *testing.T) {
	c := rm.Defaults()
	o := opportunistic.Defaults()
	c.Volatile, c.ClusterTimestamp, c.Opportunistic = true, 1, &o
	m, err := rm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	node := creel.NodeID{Host: "n1", Port: 1}
	if _, err := m.RegisterNode(now, &rm.RegisterNode{ID: node, Resource: creel.NewResource(4096, 4)}); err != nil {
		t.Fatal(err)
	}
	m.NodeHeartbeat(now, &rm.NodeReport{ID: node, Utilization: &rm.NodeUse{QueueLength: 6, QueueCapacity: 9}})
	id := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
	if err := m.Submit(now, &rm.Submission{ID: id.Application, User: "u", Queue: "default", Unmanaged: true}); err != nil {
		t.Fatal(err)
	}
	m.Actions(nil)
	if _, err := m.RegisterAM(now, &rm.RegisterAM{Attempt: id, Host: "am"}); err != nil {
		t.Fatal(err)
	}
	one := rm.Ask{Priority: 1, Resource: creel.NewResource(1024, 1), Count: 1, ExecutionType: creel.Opportunistic}
	var asks []rm.Ask
	for i, place := range []string{"n1", "/default-rack", "*"} {
		one.AllocationRequestID, one.Count = int64(i), 1
		one.ResourceName = place
		asks = append(asks, one)
		one.ResourceName = "*"
		asks = append(asks, one)
	}
	out, err := m.Allocate(now, id, &rm.AllocateRequest{Asks: asks})
	if err != nil || len(out.Granted) != 3 {
		t.Fatal(len(out.Granted), err)
	}
	third := out.Granted[2].ID // the answer's memory is reused
	if _, err := m.Allocate(now, id, &rm.AllocateRequest{
		ResponseID: 1, Release: []creel.ContainerID{out.Granted[0].ID},
		Updates: []rm.Update{{Container: out.Granted[1].ID, Kind: rm.Promote}},
		Placed: []rm.PlacedContainer{{
			ID: creel.NewContainerID(id, 0, -1), Node: node, Resource: creel.NewResource(1024, 1),
		}},
	}); err != nil {
		t.Fatal(err)
	}
	m.NodeHeartbeat(now, &rm.NodeReport{ID: node, ResponseID: 1, Containers: []rm.ContainerStatus{
		{ID: creel.NewContainerID(id, 0, -1), State: creel.ContainerRunning, Waiting: true},
		{ID: third, State: creel.ContainerComplete, ExitStatus: opportunistic.ExitKilled,
			Diagnostics: "Container Killed to make room for Guaranteed Container.\n"},
	}})
	r := prometheus.NewRegistry()
	r.MustRegister(newSubclusterFigures(func(_ context.Context, f func(*rm.Machine, time.Time)) error {
		f(m, now)
		return nil
	}))
	found, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range found {
		for _, x := range family.GetMetric() {
			name := family.GetName()
			for _, l := range x.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = x.GetCounter().GetValue() + x.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"creel_rm_opportunistic_containers":                1,
		"creel_rm_opportunistic_waiting_containers":        1,
		"creel_rm_opportunistic_killed_total room":         1,
		"creel_rm_opportunistic_killed_total queue_full":   0,
		"creel_rm_opportunistic_killed_total queue_limit":  0,
		"creel_rm_opportunistic_granted_total node":        1,
		"creel_rm_opportunistic_granted_total rack":        1,
		"creel_rm_opportunistic_granted_total any":         1,
		"creel_rm_opportunistic_granted_total nodemanager": 1,
		"creel_rm_opportunistic_released_total":            2,
		"creel_rm_opportunistic_updates_total promotion":   1,
		"creel_rm_opportunistic_updates_total demotion":    0,
		"creel_rm_opportunistic_queue_limit":               6,
		"creel_rm_containers allocated":                    1, // the promoted one
	} {
		if v, is := got[name]; !is || v != want {
			t.Errorf("%s is %v (%t), want %v", name, v, is, want)
		}
	}
}

func TestOpportunisticSettingsAreRead(t *testing.T) {
	load := func(set map[string]string) (*opportunistic.Config, error) {
		defines := []string{"creel.subcluster.id=sc-1"}
		for key, value := range set {
			defines = append(defines, key+"="+value)
		}
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: defines})
		if err != nil {
			t.Fatal(err)
		}
		c, err := machineConfig(s)
		return c.Opportunistic, err
	}
	if c, err := load(nil); c != nil || err != nil {
		t.Errorf("by default %+v, %v", c, err)
	}
	const queuing = "yarn.resourcemanager.nm-container-queuing."
	on := map[string]string{"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"}
	if c, err := load(on); err != nil || c == nil || *c != opportunistic.Defaults() {
		t.Errorf("enabled: %+v, %v", c, err)
	}
	on["yarn.resourcemanager.opportunistic-container-allocation.nodes-used"] = "7"
	on["yarn.resourcemanager.opportunistic.max.container-allocation.per.am.heartbeat"] = "3"
	on[queuing+"sorting-nodes-interval-ms"] = "2500"
	on[queuing+"load-comparator"] = "queue_length_then_resources"
	on[queuing+"queue-limit-stdev"] = "2.5f"
	on[queuing+"min-queue-length"], on[queuing+"max-queue-length"] = "1", "2"
	on[queuing+"min-queue-wait-time-ms"], on[queuing+"max-queue-wait-time-ms"] = "3", "4"
	want := opportunistic.Config{
		Comparator: opportunistic.QueueLengthThenResources, Period: 2500 * time.Millisecond, NodesUsed: 7, PerCall: 3,
		Sigma: 2.5, Lengths: opportunistic.Range{Min: 1, Max: 2}, Waits: opportunistic.Range{Min: 3, Max: 4},
	}
	if c, err := load(on); err != nil || *c != want {
		t.Errorf("set: %+v, %v", c, err)
	}
	on[queuing+"max-queue-length"] = "0"
	if _, err := load(on); err == nil {
		t.Error("a largest limit below the least one was accepted")
	}
}

// The ResourceManager serves NodeManagers that place containers only if the setting asks for it, and refuses it without
// opportunistic allocation.
func TestDistributedSchedulingIsServedBySetting(t *testing.T) {
	const opportunistic = "yarn.resourcemanager.opportunistic-container-allocation.enabled"
	for _, c := range []struct {
		defines       []string
		serves, fails bool
	}{
		{nil, false, false},
		{[]string{opportunistic + "=true"}, false, false},
		{[]string{opportunistic + "=true", distributedScheduling + "=true"}, true, false},
		{[]string{distributedScheduling + "=true"}, false, true},
	} {
		config, err := RMSettings(minimal(t, c.defines...), nil)
		if (err != nil) != c.fails || config.Ports.Distributed != c.serves {
			t.Errorf("%q: serves %v, error %v", c.defines, config.Ports.Distributed, err)
		}
	}
}
