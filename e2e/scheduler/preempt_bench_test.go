// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

const (
	preemptNodes  = 500
	preemptQueues = 1000
	preemptEach   = 128 * preemptNodes / (preemptQueues / 2) // containers of a queue that has some
)

// BenchmarkPreemptBesideHadoop measures one round of preemption over 1,000 queues of which each second one has twice
// its guarantee, with 64,000 containers on 500 nodes, in creel's machine and in CapacityScheduler's policy, called in
// process. Either there is no demand, or each of the other queues asks for all of its guarantee. Both only observe,
// so that all rounds are alike. The numbers are processor time.
func BenchmarkPreemptBesideHadoop(b *testing.B) {
	for _, asking := range []bool{false, true} {
		name := map[bool]string{false: "nobody-asks", true: "all-ask"}[asking]
		warm, rounds := 300, 300
		if asking {
			warm, rounds = 100, 50
		}
		report := func(b *testing.B, spent time.Duration, victims int) {
			b.ReportMetric(spent.Seconds()*1000/float64(rounds), "cpu-ms/round")
			b.ReportMetric(float64(victims), "victims")
			b.ReportMetric(0, "ns/op")
			if want := map[bool]int{true: preemptEach / 2 * preemptQueues / 2}[asking]; victims < want*99/100 || victims > want {
				b.Fatalf("%d victims, want %d", victims, want)
			}
		}
		b.Run(name+"/creel", func(b *testing.B) {
			for b.Loop() {
				times := map[bool]int{true: 1, false: 1000}[asking] // one of creel's rounds is too short for the clock
				spent, victims := preemptOurs(b, asking, times*warm, times*rounds)
				report(b, spent/time.Duration(times), victims)
			}
		})
		b.Run(name+"/hadoop", func(b *testing.B) {
			for b.Loop() {
				spent, victims := preemptHadoop(b, asking, warm, rounds)
				report(b, spent, victims)
			}
		})
	}
}

func preemptHadoop(b *testing.B, asking bool, warm, rounds int) (time.Duration, int) {
	var names []string
	var text strings.Builder
	for i := range preemptQueues {
		q := fmt.Sprintf("q%d", i)
		names = append(names, q)
		fmt.Fprintf(&text, "root.%s.capacity = 1w\nroot.%s.user-limit-factor = 2000\n", q, q)
	}
	conf := queueConf("root.queues = " + strings.Join(names, ",") + "\n" + text.String() + `
maximum-am-resource-percent = 1
node-locality-delay = -1
per-node-heartbeat.maximum-offswitch-assignments = 1000
resource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator`).With(hadoop.Conf{
		"yarn.resourcemanager.scheduler.class":       "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
		monitorPrefix + "observe_only":               "true",
		monitorPrefix + "total_preemption_per_round": "1",
		monitorPrefix + "natural_termination_factor": "1",
		// Without its monitor no queue may lose anything; its own rounds are days apart.
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		monitorPrefix + "monitoring_interval":           "1000000000",
	})
	last := inProcess(b, b.TempDir(), conf, "java/PreemptionBench.java", preemptNodes, preemptQueues, asking, warm, rounds)
	var n, victims int
	var ns int64
	if _, err := fmt.Sscanf(last, "rounds %d victims %d nanoseconds %d", &n, &victims, &ns); err != nil || n != rounds {
		b.Fatalf("%v: %s", err, last)
	}
	return time.Duration(ns), victims
}

func preemptOurs(b *testing.B, asking bool, warm, rounds int) (time.Duration, int) {
	c := rm.Defaults()
	c.ClusterTimestamp, c.Volatile, c.MaxAllocation = 1, true, creel.NewResource(128<<10, 128)
	c.Queues.Calculator = queues.Dominant
	c.Queues.Preemption = queues.Preemption{
		On: true, ObserveOnly: true, Interval: time.Second, Wait: 15 * time.Second, PerRound: 1, IgnoredOver: 0.1, Termination: 1,
	}
	c.Queues.Root.Children = nil
	for i := range preemptQueues {
		c.Queues.Root.Children = append(c.Queues.Root.Children, queues.Queue{
			Name: fmt.Sprintf("q%d", i), Capacity: queues.WeightOf(1), UserFactor: 2000, MaxAMPercent: 1,
		})
	}
	m, err := rm.New(c)
	if err != nil {
		b.Fatal(err)
	}
	for i := range preemptNodes {
		id := creel.NodeID{Host: fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), Port: 1}
		if _, err := m.RegisterNode(
			start, &rm.RegisterNode{ID: id, HTTPPort: 1, Resource: creel.NewResource(128<<10, 128)},
		); err != nil {
			b.Fatal(err)
		}
	}
	ask := func(i int, count int32) int {
		id := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}, Attempt: 1}
		if err := m.Submit(start, &rm.Submission{
			ID: id.Application, User: "u", Queue: fmt.Sprintf("root.q%d", i), Unmanaged: true,
		}); err != nil {
			b.Fatal(err)
		}
		m.Actions(nil)
		if _, err := m.RegisterAM(start, &rm.RegisterAM{Attempt: id}); err != nil {
			b.Fatal(err)
		}
		out, err := m.Allocate(start, id, &rm.AllocateRequest{Asks: []rm.Ask{
			{Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: count},
		}})
		if err != nil {
			b.Fatal(err)
		}
		return len(out.Granted)
	}
	for i := 0; i < preemptQueues; i += 2 {
		if n := ask(i, preemptEach); n != preemptEach {
			b.Fatalf("%d of %d containers", n, preemptEach)
		}
	}
	for i := 1; asking && i < preemptQueues; i += 2 {
		ask(i, preemptEach/2)
	}
	var began time.Duration
	now := start
	for i := range warm + rounds {
		if i == warm {
			began = cpuTime(b)
		}
		now = now.Add(time.Second)
		m.Tick(now)
	}
	spent := cpuTime(b) - began
	plan, err := m.PlanPreemption("root")
	if err != nil {
		b.Fatal(err)
	}
	return spent, len(plan.Victims)
}
