// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
)

// side is one of the two that are compared.
type side struct {
	name                       string
	pid                        int
	client, scheduler, tracker string
	web                        string
	beside                     []int // processes that serve with it: Redis, ResourceManagers
}

// turns of each side, in alternation. The last is reported: Java's compiler has
// then seen the calls.
const turns = 2

// compare runs the same load on creel's server and on Hadoop's and reports both. each returns the measured number and
// the server's processor time per unit.
func compare(
	b *testing.B,
	ours, theirs side,
	each func(r result) (perSecond, micros float64),
	args func(s side) []string,
) {
	b.Helper()
	var last [2]result
	for range turns {
		for i, s := range []side{ours, theirs} {
			all := append(args(s), "--pid", strconv.Itoa(s.pid))
			r, code, message := load(b.Context(), b, all...)
			if code != 0 {
				b.Logf("%s: creel load %s: code %d: %s %v", s.name, strings.Join(all, " "), code, message, r.Failures)
			}
			last[i] = r
		}
	}
	b.ReportMetric(0, "ns/op")
	var rate, cpu [2]float64
	for i, s := range []side{ours, theirs} {
		r := last[i]
		rate[i], cpu[i] = each(r)
		b.ReportMetric(rate[i], s.name+"/s")
		b.ReportMetric(cpu[i], s.name+"-us")
		line := fmt.Sprintf(
			"| %s | %s | %.0f | %.1f | %.2f | %.1f | %.2f | %d |",
			strings.TrimPrefix(b.Name(), "Benchmark"),
			s.name,
			rate[i],
			cpu[i],
			r.Latency.P50,
			r.Latency.P99,
			r.Generator.Cores,
			r.Failed+r.Unsent,
		)
		if len(r.Servers) > 0 {
			line += fmt.Sprintf(" %.2f | %.0f |", r.Servers[0].Cores, r.Servers[0].ResidentMB)
		}
		if r.Containers != nil {
			line += fmt.Sprintf(" ask to grant p50 %.2f p99 %.1f ms |", r.Containers.Grant.P50, r.Containers.Grant.P99)
		}
		fmt.Println(line)
	}
	if rate[1] > 0 && cpu[0] > 0 {
		b.ReportMetric(rate[0]/rate[1], "x-rate")
		b.ReportMetric(cpu[1]/cpu[0], "x-cpu")
	}
}

func answers(r result) (float64, float64) {
	if len(r.Servers) == 0 {
		return r.PerSecond, 0
	}
	return r.PerSecond, r.Servers[0].CPUMicros
}

func containers(r result) (float64, float64) {
	if r.Containers == nil {
		return 0, 0
	}
	return r.Containers.PerSecond, r.Containers.CPUMicros
}

// bounds of each turn.
var bounds = []string{"--duration", "6s", "--warmup", "2s"}

func with(kind string, more ...string) []string {
	return append(append([]string{kind}, bounds...), more...)
}

// BenchmarkRM compares ResourceManagers.
func BenchmarkRM(b *testing.B) {
	// Hadoop's at its best setting: it places asynchronously, many containers
	// at each heartbeat of a node, and keeps nothing on disk.
	h := hadoop.StartRM(b, hadoop.RM{HeapMB: 4096, Conf: queues().With(hadoop.Conf{
		"yarn.scheduler.capacity.schedule-asynchronously.enable":                   "true",
		"yarn.scheduler.capacity.schedule-asynchronously.maximum-threads":          "1",
		"yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": "100",
		"yarn.scheduler.capacity.per-node-heartbeat.multiple-assignments-enabled":  "true",
	})})
	theirs := side{
		name:      "hadoop",
		pid:       h.PID(),
		client:    h.Addresses.Client,
		scheduler: h.Addresses.Scheduler,
		tracker:   h.Addresses.Tracker,
		web:       h.Addresses.Web,
	}
	c := startRM(b, nil)
	ours := side{
		name:      "creel",
		pid:       c.PID(),
		client:    c.Addresses["client"],
		scheduler: c.Addresses["scheduler"],
		tracker:   c.Addresses["tracker"],
		web:       c.Addresses["web"],
	}
	fmt.Println(
		"| load | of | a second | server us CPU each | p50 ms | p99 ms | generator's cores | lost | server's cores | MB |",
	)

	run := func(name string, each func(result) (float64, float64), args func(s side) []string) {
		b.Run(name, func(b *testing.B) { compare(b, ours, theirs, each, args) })
	}
	run(
		"submit-cycle",
		answers,
		func(s side) []string { return with("submit", "--client", s.client, "--cycle", "--in-flight", "64") },
	)
	run("report", answers, func(s side) []string { return with("report", "--client", s.client, "--in-flight", "128") })
	run("list-of-1000", answers, func(s side) []string {
		return with("report", "--client", s.client, "--call", "list", "--applications", "1000", "--in-flight", "16")
	})
	for _, page := range []string{"info", "metrics", "scheduler", "apps"} {
		run(
			"rest-"+page,
			answers,
			func(s side) []string { return with("rest", "http://"+s.web+"/ws/v1/cluster/"+page) },
		)
	}
	run("rest-nodes-1000", answers, func(s side) []string {
		if _, code, message := load(
			b.Context(),
			b,
			"nodes",
			"--tracker",
			s.tracker,
			"--nodes",
			"1000",
			"--count",
			"1000",
		); code != 0 {
			b.Fatal(message)
		}
		return with("rest", "http://"+s.web+"/ws/v1/cluster/nodes")
	})
	run("heartbeats-5000-nodes", answers, func(s side) []string {
		return with("nodes", "--tracker", s.tracker, "--nodes", "5000", "--period", "0s", "--in-flight", "512")
	})
	run("heartbeats-20000-a-second", answers, func(s side) []string {
		return with("nodes", "--tracker", s.tracker, "--nodes", "5000", "--period", "250ms")
	})
	run("containers", containers, func(s side) []string {
		return with(
			"alloc",
			append(
				addressFlags(s.client, s.scheduler, s.tracker),
				"--nodes",
				"5000",
				"--node-period",
				"1s",
				"--masters",
				"100",
				"--wave",
				"10",
			)...)
	})
	run("containers-2000-a-second", containers, func(s side) []string {
		return with(
			"alloc",
			append(
				addressFlags(s.client, s.scheduler, s.tracker),
				"--nodes",
				"5000",
				"--node-period",
				"1s",
				"--masters",
				"100",
				"--wave",
				"10",
				"--rate",
				"2000",
				"--hold",
				"100ms",
			)...)
	})
	run("containers-30000-a-second", containers, func(s side) []string {
		return with(
			"alloc",
			append(
				addressFlags(s.client, s.scheduler, s.tracker),
				"--nodes",
				"5000",
				"--node-period",
				"1s",
				"--masters",
				"100",
				"--wave",
				"10",
				"--rate",
				"30000",
				"--hold",
				"100ms",
			)...)
	})
	run("submit", answers, func(s side) []string { return with("submit", "--client", s.client, "--in-flight", "512") })
}

// many starts a ResourceManager and fills it.
func many(ctx context.Context, b *testing.B, n int, bounds ...string) (c *daemon, ended <-chan result) {
	b.Helper()
	c = startRM(b, fixedPorts(b))
	return c, fill(ctx, b, c, n, bounds...)
}

// fill submits 10,000 applications. The AMs of a load hold 30 containers on each of n nodes, which send heartbeats with
// them each second. The load continues until ctx ends, or for the given duration.
func fill(ctx context.Context, b *testing.B, c *daemon, n int, bounds ...string) (ended <-chan result) {
	b.Helper()
	const ams = 100
	mustLoad(
		b,
		"submit",
		"--client",
		c.Addresses["client"],
		"--unmanaged",
		"--count",
		strconv.Itoa(10_000-ams),
		"--duration",
		"1h",
		"--in-flight",
		"512",
	)
	out := make(chan result, 1)
	go func() {
		r, _, _ := load(
			ctx,
			b,
			append(append([]string{
				"alloc",
				"--nodes",
				strconv.Itoa(n),
				"--node-period",
				"1s",
				"--masters",
				strconv.Itoa(ams),
				"--wave",
				"1",
				"--rate",
				"100",
				"--held",
				strconv.Itoa(30 * n),
				"--run",
				"--pid",
				strconv.Itoa(c.PID()),
			}, addressFlags(c.Addresses["client"], c.Addresses["scheduler"], c.Addresses["tracker"])...), bounds...)...)
		out <- r
	}()
	return out
}

// BenchmarkMany measures the size of a large cluster: 10,000 nodes, 300,000 containers and 10,000 applications; and
// 50,000 nodes that send heartbeats each second.
func BenchmarkMany(b *testing.B) {
	b.Run("nodes=10000/containers=300000/applications=10000", func(b *testing.B) {
		for range b.N {
			c, ended := many(b.Context(), b, 10_000, "--duration", "20s", "--warmup", "5s")
			r := <-ended
			if len(r.Servers) == 0 || r.Containers == nil || r.Containers.Granted == 0 {
				b.Fatalf("the load did not run: %+v", r)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(r.Servers[0].ResidentMB, "MB")
			b.ReportMetric(r.Servers[0].Cores, "server-cores")
			b.ReportMetric(r.Generator.Cores, "generator-cores")
			b.ReportMetric(r.Containers.NodeHeartbeats.P99, "ms-beat-p99")
			b.ReportMetric(float64(r.Containers.HeartbeatsLost), "beats-lost")
			c.Kill()
		}
	})
	b.Run("nodes=50000", func(b *testing.B) {
		for range b.N {
			c := startRM(b, nil)
			r, code, message := load(
				b.Context(),
				b,
				"nodes",
				"--tracker",
				c.Addresses["tracker"],
				"--nodes",
				"50000",
				"--period",
				"1s",
				"--duration",
				"20s",
				"--warmup",
				"8s",
				"--pid",
				strconv.Itoa(c.PID()),
			)
			if len(r.Servers) == 0 {
				b.Fatalf("code %d: %s", code, message)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(r.PerSecond, "beats/s")
			b.ReportMetric(r.Servers[0].ResidentMB, "MB")
			b.ReportMetric(r.Servers[0].Cores, "server-cores")
			b.ReportMetric(r.Generator.Cores, "generator-cores")
			b.ReportMetric(r.Latency.P50, "ms-p50")
			b.ReportMetric(r.Latency.P99, "ms-p99")
			b.ReportMetric(float64(r.Failed+r.Unsent), "lost")
			c.Kill()
		}
	})
}

// BenchmarkTakeover kills a ResourceManager that has 10,000 nodes, 300,000
// running containers and 10,000 applications, while the nodes go on with their heartbeats, and times
// from the start of its successor's process to an application's report, to the
// first node, and to all nodes and containers.
func BenchmarkTakeover(b *testing.B) {
	const nodes = 10_000
	ctx, stop := context.WithCancel(b.Context())
	c, ended := many(ctx, b, nodes, "--duration", "1h")
	defer func() { stop(); <-ended }()
	web := "http://" + c.Addresses["web"] + "/ws/v1/cluster/"
	whole := func() bool {
		m, ok := clusterMetrics(web)
		return ok && m.ActiveNodes == nodes && m.ContainersAllocated >= 30*nodes
	}
	// Its own waves come after the held containers; a load that loses its ResourceManager before them gives up.
	c.Await(b, "all nodes, all containers and the load", func() bool {
		m, ok := clusterMetrics(web)
		return ok && m.ActiveNodes == nodes && m.ContainersAllocated > 30*nodes
	})
	some := anApplication(b, web)
	var report, node, all time.Duration
	for range b.N {
		c.Kill()
		began := time.Now()
		c.start(b)
		var app any
		c.Await(b, "a report", func() bool { return get(web+"apps/"+some, &app) })
		report += time.Since(began)
		c.Await(b, "a node", func() bool { m, ok := clusterMetrics(web); return ok && m.ActiveNodes > 0 })
		node += time.Since(began)
		c.Await(b, "all nodes and containers", whole)
		all += time.Since(began)
	}
	b.ReportMetric(0, "ns/op")
	for name, d := range map[string]time.Duration{"ms-to-report": report, "ms-to-first-node": node, "ms-to-all-containers": all} {
		b.ReportMetric(float64(d.Milliseconds())/float64(b.N), name)
	}
}

// anApplication returns the id of an application that a ResourceManager has.
func anApplication(b *testing.B, web string) string {
	b.Helper()
	var list struct {
		Apps struct {
			App []struct {
				ID string `json:"id"`
			} `json:"app"`
		} `json:"apps"`
	}
	if !get(web+"apps?limit=1", &list) || len(list.Apps.App) != 1 {
		b.Fatal("no application to ask for")
	}
	return list.Apps.App[0].ID
}

type metrics struct {
	ActiveNodes         int `json:"activeNodes"`
	ContainersAllocated int `json:"containersAllocated"`
}

func clusterMetrics(web string) (metrics, bool) {
	var m struct {
		ClusterMetrics metrics `json:"clusterMetrics"`
	}
	ok := get(web+"metrics", &m)
	return m.ClusterMetrics, ok
}

// get reads a document; false when there is none yet.
func get(url string, into any) bool {
	answer, err := http.Get(url)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) == nil
}
