// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

const (
	benchAsks   = 10_000
	benchWarm   = 20 // rounds: 200,000 allocations
	benchRounds = 10
)

// BenchmarkBesideHadoop places 10,000 equal asks of two queues in our machine
// and, in the same run, in Hadoop's schedulers: called in process, after 200,000
// allocations of warm-up, with logs off and as many containers a node update as
// fit. Figures are of processor time of the placing alone.
func BenchmarkBesideHadoop(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("nodes=%d/creel", nodes), func(b *testing.B) {
			for b.Loop() {
				rate(b, benchOurs(b, nodes))
			}
		})
		for _, scheduler := range []string{"capacity", "fair"} {
			b.Run(fmt.Sprintf("nodes=%d/hadoop-%s", nodes, scheduler), func(b *testing.B) {
				for b.Loop() {
					rate(b, benchHadoop(b, nodes, scheduler))
				}
			})
		}
	}
}

func rate(b *testing.B, spent time.Duration) {
	b.ReportMetric(float64(benchAsks*benchRounds)/spent.Seconds(), "alloc/cpu-s")
	b.ReportMetric(0, "ns/op")
}

func benchHadoop(b *testing.B, nodes int, scheduler string) time.Duration {
	dir := b.TempDir()
	conf := queueConf(`
root.queues = a,b
root.a.capacity = 50
root.a.maximum-capacity = 100
root.a.user-limit-factor = 10
root.b.capacity = 50
root.b.maximum-capacity = 100
root.b.user-limit-factor = 10
maximum-am-resource-percent = 1
node-locality-delay = -1
per-node-heartbeat.maximum-offswitch-assignments = 1000
resource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator
yarn.scheduler.fair.assignmultiple = true
yarn.scheduler.fair.dynamic.max.assign = false
yarn.scheduler.fair.max.assign = -1`)
	file := filepath.Join(dir, "fair-scheduler.xml")
	conf = conf.With(hadoop.Conf{
		"yarn.resourcemanager.scheduler.class": map[string]string{"capacity": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler", "fair": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"}[scheduler],
		"yarn.scheduler.fair.allocation.file":  file,
	})
	if err := os.WriteFile(file, []byte(`<allocations><queue name="a"/><queue name="b"/>`+
		`<defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy></allocations>`), 0o600); err != nil {
		b.Fatal(err)
	}
	last := inProcess(b, dir, conf, "java/SchedulerBench.java", nodes, benchAsks, benchWarm, benchRounds)
	var n, ns int64
	if _, err := fmt.Sscanf(last, "allocations %d nanoseconds %d", &n, &ns); err != nil || n != benchAsks*benchRounds {
		b.Fatalf("%v: %s", err, last)
	}
	return time.Duration(ns)
}

// inProcess runs a Java program that has Hadoop's ResourceManager within it, with logs off, and returns its last
// line.
func inProcess(b *testing.B, dir string, conf hadoop.Conf, program string, args ...any) string {
	b.Helper()
	conf = conf.With(hadoop.Conf{
		"yarn.scheduler.maximum-allocation-mb":                            "131072",
		"yarn.resourcemanager.placement-constraints.handler":              "disabled",
		"yarn.nm.liveness-monitor.expiry-interval-ms":                     "3600000",
		"yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": "3600000",
		"hadoop.tmp.dir": dir,
	})
	for _, service := range []string{"address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address"} {
		conf["yarn.resourcemanager."+service] = "127.0.0.1:0"
	}
	conf.Write(b, dir)
	if err := os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte("log4j.rootLogger=OFF\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	line := []string{
		"-XX:+UseSerialGC", "-Xmx1500m", "-Djava.net.preferIPv4Stack=true", "--add-opens=java.base/java.lang=ALL-UNNAMED",
		"-cp", dir + ":" + hadoop.Jars(b, hadoop.V342) + "/*", program,
	}
	for _, a := range args {
		line = append(line, fmt.Sprint(a))
	}
	cmd := exec.CommandContext(b.Context(), hadoop.Java(b), line...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	return lastLine(string(out))
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func benchOurs(b *testing.B, nodes int) time.Duration {
	c := rm.Defaults()
	c.ClusterTimestamp, c.Volatile, c.MaxAllocation = 1, true, creel.NewResource(128<<10, 128)
	c.Queues.Calculator = queues.Dominant
	c.Queues.Root.Children = []queues.Queue{
		{
			Name:         "a",
			Capacity:     queues.PercentOf(50),
			MaxCapacity:  queues.PercentOf(100),
			UserFactor:   10,
			MaxAMPercent: 1,
		},
		{
			Name:         "b",
			Capacity:     queues.PercentOf(50),
			MaxCapacity:  queues.PercentOf(100),
			UserFactor:   10,
			MaxAMPercent: 1,
		},
	}
	m, err := rm.New(c)
	if err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		id := creel.NodeID{Host: fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), Port: 1}
		if _, err := m.RegisterNode(
			start,
			&rm.RegisterNode{ID: id, HTTPPort: 1, Resource: creel.NewResource(128<<10, 128)},
		); err != nil {
			b.Fatal(err)
		}
	}
	ids := []creel.AttemptID{}
	for i, q := range []string{"root.a", "root.b"} {
		app := creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}
		id := creel.AttemptID{Application: app, Attempt: 1}
		if err := m.Submit(start, &rm.Submission{ID: app, User: "u", Queue: q, Unmanaged: true}); err != nil {
			b.Fatal(err)
		}
		m.Actions(nil)
		if _, err := m.RegisterAM(start, &rm.RegisterAM{Attempt: id}); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, id)
	}
	responses := make([]int32, nodes)
	var spent time.Duration
	response := map[creel.AttemptID]int32{}
	call := func(id creel.AttemptID, r rm.AllocateRequest) *rm.Answer {
		r.ResponseID = response[id]
		out, err := m.Allocate(start, id, &r)
		if err != nil {
			b.Fatal(err)
		}
		response[id] = out.ResponseID
		return out
	}
	for round := range benchWarm + benchRounds {
		for _, id := range ids {
			began := cpuTime(b)
			out := call(
				id,
				rm.AllocateRequest{
					Asks: []rm.Ask{
						{Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: benchAsks / 2},
					},
				},
			)
			if round >= benchWarm {
				spent += cpuTime(b) - began
			}
			if len(out.Granted) != benchAsks/2 {
				b.Fatal(len(out.Granted))
			}
			var have []creel.ContainerID
			for _, g := range out.Granted {
				have = append(have, g.ID)
			}
			call(id, rm.AllocateRequest{Release: have})
		}
		for i := range nodes { // nodes learn of the releases
			id := creel.NodeID{Host: fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), Port: 1}
			responses[i] = m.NodeHeartbeat(start, &rm.NodeReport{ID: id, ResponseID: responses[i]}).ResponseID
		}
	}
	return spent
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
