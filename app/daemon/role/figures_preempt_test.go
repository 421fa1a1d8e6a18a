// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/prometheus/client_golang/prometheus"
)

// Losses of a queue are counted for it and its ancestors, as containers and as work: root.a loses two containers of 1
// GiB, which ran for 3 s, to root.b.
func TestMetricsCountPreemptionByQueue(t *testing.T) {
	c := rm.Defaults()
	c.Volatile, c.ClusterTimestamp = true, 1
	c.Queues.Preemption = queues.Preemption{
		On: true, Interval: time.Second, Wait: 2 * time.Second, PerRound: 1, Termination: 1,
	}
	c.Queues.Root.Children = nil
	for _, name := range []string{"a", "b"} {
		c.Queues.Root.Children = append(c.Queues.Root.Children, queues.Queue{
			Name: name, Capacity: queues.WeightOf(1), UserFactor: -1, MaxAMPercent: 1,
		})
	}
	m, err := rm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := m.RegisterNode(now, &rm.RegisterNode{
		ID: creel.NodeID{Host: "n1", Port: 1}, Resource: creel.NewResource(4096, 4),
	}); err != nil {
		t.Fatal(err)
	}
	for i, queue := range []string{"root.a", "root.b"} {
		id := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}, Attempt: 1}
		if err := m.Submit(now, &rm.Submission{ID: id.Application, User: "u", Queue: queue, Unmanaged: true}); err != nil {
			t.Fatal(err)
		}
		m.Actions(nil)
		if _, err := m.RegisterAM(now, &rm.RegisterAM{Attempt: id, Host: "am"}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Allocate(now, id, &rm.AllocateRequest{Asks: []rm.Ask{{
			Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: int32(4 - 2*i),
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		now = now.Add(time.Second)
		m.Tick(now)
		m.Actions(nil)
	}
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
			for _, l := range x.GetLabel() {
				if l.GetName() == "queue" && x.GetCounter() != nil {
					got[family.GetName()+" "+l.GetValue()] = x.GetCounter().GetValue()
				}
			}
		}
	}
	for name, want := range map[string]float64{
		"creel_rm_queue_preempted_containers_total root":      2,
		"creel_rm_queue_preempted_containers_total root.a":    2,
		"creel_rm_queue_preempted_containers_total root.b":    0,
		"creel_rm_queue_preempted_byte_seconds_total root.a":  2 * 3 << 30,
		"creel_rm_queue_preempted_vcore_seconds_total root.a": 2 * 3,
	} {
		if v, told := got[name]; !told || v != want {
			t.Errorf("%s is %v (%t), not %v", name, v, told, want)
		}
	}
}
