// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"testing"

	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

// members are loads of nodes that let routers see room.
func members(b *testing.B, trackers ...string) {
	b.Helper()
	for i, tracker := range trackers {
		mustLoad(
			b,
			"nodes",
			"--tracker",
			tracker,
			"--nodes",
			"100",
			"--first",
			fmt.Sprint(1000*i),
			"--period",
			"100ms",
			"--count",
			"300",
			"--duration",
			"1h",
		)
	}
}

// await waits until a router takes a submission.
func await(b *testing.B, r *daemon, client string, more ...string) {
	b.Helper()
	r.Await(b, "a submission through the router", func() bool {
		_, code, _ := load(
			b.Context(),
			b,
			append(
				[]string{"submit", "--client", client, "--count", "1", "--duration", "1h", "--unmanaged", "--cycle"},
				more...)...)
		return code == 0
	})
}

// federated starts two of creel's ResourceManagers, with journals, behind one router on a Redis, and waits until it
// accepts submissions. It also returns the addresses for nodes.
func federated(b *testing.B) (side, []string) {
	b.Helper()
	redis, store := federation.StartRedis(b)
	conf := hadoop.Conf{
		"creel.store.poll-interval":           "500ms",
		"creel.membership.heartbeat-interval": "500ms",
		"creel.membership.lease":              "30s",
		// The router acts for its clients.
		"hadoop.proxyuser." + username(b) + ".hosts":  "*",
		"hadoop.proxyuser." + username(b) + ".groups": "*",
	}
	var trackers []string
	beside := []int{redis.PID()}
	for i := range 2 {
		member := startRM(
			b,
			conf.With(hadoop.Conf{"yarn.resourcemanager.epoch": fmt.Sprint(1000 * (i + 1))}),
			"--subcluster",
			fmt.Sprintf("sc-%d", i+1),
			"--store",
			store,
		)
		trackers = append(trackers, member.Addresses["tracker"])
		beside = append(beside, member.PID())
	}
	const any = "127.0.0.1:0"
	router := startDaemon(
		b,
		"router",
		conf.With(
			hadoop.Conf{
				"yarn.router.clientrm.address": any,
				"yarn.router.rmadmin.address":  any,
				"yarn.router.webapp.address":   any,
			},
		),
		"--store",
		store,
	)
	ours := side{
		name: "creel", pid: router.PID(), beside: beside,
		client: router.Addresses["client"], web: router.Addresses["web"],
	}
	members(b, trackers...)
	await(b, router, ours.client)
	return ours, trackers
}

// embedded starts the same in one process, on the store in memory.
func embedded(b *testing.B) side {
	b.Helper()
	d := startDaemon(b, "up", queues(), "--any-port", "--subclusters", "2", "--nodes", "20", "--data", b.TempDir())
	ours := side{name: "creel", pid: d.PID(), client: d.Addresses["client"], web: d.Addresses["web"]}
	await(b, d, ours.client, "--user", username(b))
	return ours
}

// BenchmarkSubmissions measures how many submissions one router accepts, each claimed in the store and in the journal
// of its ResourceManager before it is answered, on either store; and the latency at half of the offered rate.
func BenchmarkSubmissions(b *testing.B) {
	overRedis := func(b *testing.B) side { s, _ := federated(b); return s }
	for _, store := range []struct {
		name  string
		start func(*testing.B) side
	}{{"redis", overRedis}, {"embedded", embedded}} {
		b.Run(store.name, func(b *testing.B) {
			s := store.start(b)
			for _, l := range []struct {
				name string
				args []string
			}{
				{"submit", []string{"submit", "--client", s.client, "--unmanaged", "--in-flight", "64"}},
				{"submit-2500-a-second", []string{"submit", "--client", s.client, "--unmanaged", "--in-flight", "1000", "--rate", "2500"}},
				{"report", []string{"report", "--client", s.client, "--in-flight", "128"}},
			} {
				b.Run(l.name, func(b *testing.B) {
					r := mustLoad(
						b,
						append(
							l.args,
							"--user",
							username(b),
							"--duration",
							"6s",
							"--warmup",
							"1s",
							"--pid",
							strconv.Itoa(s.pid),
						)...)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(r.PerSecond, "answered/s")
					b.ReportMetric(r.Latency.P50, "p50-ms")
					b.ReportMetric(r.Latency.P99, "p99-ms")
					if len(r.Servers) > 0 {
						b.ReportMetric(r.Servers[0].CPUMicros, "server-us")
					}
				})
			}
		})
	}
}

// BenchmarkSubmissionsOfTwo measures the cost of a change for a submission on Redis: this build and the one at
// CREEL_BENCH_BASE (this one again where it is not set: the control), a whole federation each, load in turns. It
// reports medians of the ratios of a turn to the one before it: of rates with 64 in flight, and of the processor time
// of Redis, both ResourceManagers and the router for one submission.
//
//	git worktree add /tmp/base COMMIT && (cd /tmp/base && go build -o /tmp/creel.base ./cmd/creel)
//	CREEL_BENCH_BASE=/tmp/creel.base go test ./e2e/load -run '^$' -bench SubmissionsOfTwo -benchtime 1x
func BenchmarkSubmissionsOfTwo(b *testing.B) {
	now := rm.Binary(b)
	sides := make([]side, 2) // base, and this
	for i, binary := range []string{cmp.Or(os.Getenv("CREEL_BENCH_BASE"), now), now} {
		b.Setenv("CREEL_BINARY", binary)
		sides[i], _ = federated(b)
	}
	const pairs = 20
	var rates, cpus, redis, routers [2][]float64
	for range pairs {
		for i, s := range sides {
			args := []string{
				"submit", "--client", s.client, "--unmanaged", "--in-flight", "64", "--user", username(b),
				"--duration", "2s", "--warmup", "300ms", "--pid", strconv.Itoa(s.pid),
			}
			for _, pid := range s.beside {
				args = append(args, "--pid", strconv.Itoa(pid))
			}
			r := mustLoad(b, args...)
			all := 0.0
			for _, server := range r.Servers {
				all += server.CPUMicros
			}
			rates[i], cpus[i] = append(rates[i], r.PerSecond), append(cpus[i], all)
			routers[i], redis[i] = append(routers[i], r.Servers[0].CPUMicros), append(redis[i], r.Servers[1].CPUMicros)
		}
	}
	ratio := func(of [2][]float64) float64 {
		var out []float64
		for i := range of[0] {
			out = append(out, of[1][i]/of[0][i])
		}
		return median(out)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rates[0]), "base/s")
	b.ReportMetric(median(rates[1]), "this/s")
	b.ReportMetric(ratio(rates), "x-rate")
	b.ReportMetric(median(cpus[0]), "base-us")
	b.ReportMetric(median(cpus[1]), "this-us")
	b.ReportMetric(ratio(cpus), "x-cpu")
	b.ReportMetric(ratio(routers), "x-router-cpu")
	b.ReportMetric(ratio(redis), "x-redis-cpu")
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// BenchmarkRouter compares routers over two ResourceManagers each: ours with
// Redis, Hadoop's with ZooKeeper.
func BenchmarkRouter(b *testing.B) {
	ours, theirs, _ := beside(b)
	run := func(name string, args func(s side) []string) {
		b.Run(name, func(b *testing.B) { compare(b, ours, theirs, answers, args) })
	}
	run("submit-cycle", func(s side) []string {
		return with("submit", "--client", s.client, "--unmanaged", "--cycle", "--in-flight", "64")
	})
	run(
		"submit",
		func(s side) []string { return with("submit", "--client", s.client, "--unmanaged", "--in-flight", "64") },
	)
	run("report", func(s side) []string { return with("report", "--client", s.client, "--in-flight", "128") })
	run("nodes", func(s side) []string {
		return with("report", "--client", s.client, "--call", "nodes", "--in-flight", "8")
	})
	run("rest-metrics", func(s side) []string {
		return with("rest", "http://"+s.web+"/ws/v1/cluster/metrics", "--connections", "8")
	})
}

// BenchmarkRouterPages compares the answers of the federations of BenchmarkRouter with 1,000 nodes and 1,000 running
// applications: the documents of the REST API and the lists of the client protocol, each with 8 in flight, after 15 s
// of requests for each of them.
func BenchmarkRouterPages(b *testing.B) {
	ours, theirs, trackers := beside(b)
	for i, tracker := range trackers { // of the first two ours, then theirs; 100 nodes are there
		mustLoad(b, "nodes", "--tracker", tracker, "--nodes", "400", "--first", fmt.Sprint(1000*(i%2)+100),
			"--period", "100ms", "--count", "1200", "--duration", "1h")
	}
	for _, s := range []side{ours, theirs} {
		mustLoad(b, "submit", "--client", s.client, "--unmanaged", "--in-flight", "16", "--count", "1000", "--duration", "1h")
	}
	asked := []struct {
		name string
		args func(side) []string
	}{
		{"rest-apps", func(s side) []string { return page(s, "apps") }},
		{"rest-nodes", func(s side) []string { return page(s, "nodes") }},
		{"rest-scheduler", func(s side) []string { return page(s, "scheduler") }},
		{"rest-metrics", func(s side) []string { return page(s, "metrics") }},
		{"list", func(s side) []string {
			return []string{"report", "--client", s.client, "--call", "list", "--applications", "1", "--in-flight", "8"}
		}},
		{"nodes", func(s side) []string {
			return []string{"report", "--client", s.client, "--call", "nodes", "--in-flight", "8"}
		}},
	}
	for _, a := range asked {
		for _, s := range []side{ours, theirs} {
			_, _, _ = load(b.Context(), b, append(a.args(s), "--duration", "15s")...)
		}
	}
	for _, a := range asked {
		b.Run(a.name, func(b *testing.B) {
			compare(b, ours, theirs, answers, func(s side) []string { return append(a.args(s), bounds...) })
		})
	}
}

func page(s side, name string) []string {
	return []string{"rest", "http://" + s.web + "/ws/v1/cluster/" + name, "--connections", "8"}
}

// username returns the user that the daemons run as.
func username(b *testing.B) string {
	u, err := user.Current()
	if err != nil {
		b.Fatal(err)
	}
	return u.Username
}

// beside starts two of creel's ResourceManagers with Redis behind a router, and two of Hadoop's with ZooKeeper behind
// Hadoop's Router, and prints the head of the table; trackers are the addresses for nodes, creel's first.
func beside(b *testing.B) (ours, theirs side, trackers []string) {
	b.Helper()
	ours, trackers = federated(b)
	var hadoops []string
	_, address := hadoop.StartZooKeeper(b)
	shared := hadoop.Federation(address)
	for i := range 2 {
		rm := hadoop.StartRM(
			b,
			hadoop.RM{Name: fmt.Sprintf("rm%d", i+1), HeapMB: 1024, Conf: queues().With(shared, hadoop.Conf{
				"yarn.resourcemanager.cluster-id": fmt.Sprintf(
					"sc-%d",
					i+1,
				),
				"yarn.resourcemanager.epoch": fmt.Sprint(1000 * (i + 1)),
			})},
		)
		hadoops = append(hadoops, rm.Addresses.Tracker)
	}
	h := hadoop.StartRouter(b, hadoop.Router{HeapMB: 2048, Conf: shared.With(hadoop.RouterPipelines())})
	theirs = side{name: "hadoop", pid: h.PID(), client: h.Addresses.Client, web: h.Addresses.Web}
	members(b, hadoops...)
	h.Await(b, "a submission through Hadoop's Router", func() bool {
		_, code, _ := load(
			b.Context(),
			b,
			"submit",
			"--client",
			theirs.client,
			"--count",
			"1",
			"--duration",
			"1h",
			"--unmanaged",
			"--cycle",
		)
		return code == 0
	})
	fmt.Println(
		"| load | of | a second | server us CPU each | p50 ms | p99 ms | generator's cores | lost | server's cores | MB |",
	)
	return ours, theirs, append(trackers, hadoops...)
}
