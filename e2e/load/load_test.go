// SPDX-License-Identifier: Apache-2.0

package load

import (
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

func TestMain(m *testing.M) { rm.Main(m) }

// activeNodes returns a ResourceManager's number of active nodes.
func activeNodes(t *testing.T, web string) int {
	t.Helper()
	m, ok := clusterMetrics("http://" + web + "/ws/v1/cluster/")
	if !ok {
		t.Fatal("the ResourceManager gives no metrics")
	}
	return m.ActiveNodes
}

// Every kind of load against creel's ResourceManager: all ordered requests are answered, and the reported numbers add
// up.
func TestEveryKindOfLoad(t *testing.T) {
	rm := startRM(t, nil)
	pid := strconv.Itoa(rm.PID())
	client, scheduler, tracker, web := rm.Addresses["client"], rm.Addresses["scheduler"], rm.Addresses["tracker"], rm.Addresses["web"]

	r := mustLoad(
		t,
		"nodes",
		"--tracker",
		tracker,
		"--nodes",
		"300",
		"--period",
		"200ms",
		"--count",
		"3000",
		"--duration",
		"1h",
		"--pid",
		pid,
	)
	if r.Answered != 3000 || r.Nodes.Registered != 300 || r.Nodes.Resyncs != 0 || r.Latency.Count != 3000 {
		t.Errorf("3000 heartbeats of 300 nodes: %+v %+v", r, r.Nodes)
	}
	if r.Latency.P50 <= 0 || r.Latency.P50 > r.Latency.P99 || r.Latency.P99 > r.Latency.Max {
		t.Errorf("latencies are out of order: %+v", r.Latency)
	}
	if r.Generator.CPUSeconds <= 0 || len(r.Servers) != 1 || r.Servers[0].ResidentMB < 5 {
		t.Errorf("use of processor and memory is missing: %+v %+v", r.Generator, r.Servers)
	}
	if n := activeNodes(t, web); n != 300 {
		t.Errorf("the ResourceManager has %d nodes, not 300", n)
	}

	// Closed loop: the answers still are the requested ones.
	if r = mustLoad(
		t,
		"nodes",
		"--tracker",
		tracker,
		"--nodes",
		"300",
		"--period",
		"0",
		"--in-flight",
		"100",
		"--count",
		"3000",
		"--duration",
		"1h",
	); r.Answered != 3000 ||
		r.Nodes.Resyncs != 0 {
		t.Errorf("3000 heartbeats in a closed loop: %+v %+v", r, r.Nodes)
	}
	for _, call := range []string{"report", "list"} {
		if r = mustLoad(
			t,
			"report",
			"--client",
			client,
			"--call",
			call,
			"--applications",
			"50",
			"--count",
			"500",
			"--duration",
			"1h",
		); r.Answered != 500 {
			t.Errorf("500 calls of %s in a closed loop: %+v", call, r)
		}
	}

	r = mustLoad(t, "submit", "--client", client, "--rate", "0", "--count", "300", "--duration", "1h", "--cycle")
	if r.Answered != 300 || r.Kind != "submit cycle" {
		t.Errorf("300 submissions: %+v", r)
	}
	for _, call := range []string{"report", "list", "metrics", "new-application", "nodes"} {
		if r = mustLoad(
			t,
			"report",
			"--client",
			client,
			"--call",
			call,
			"--rate",
			"500",
			"--count",
			"100",
			"--duration",
			"1h",
		); r.Answered != 100 {
			t.Errorf("100 calls of %s: %+v", call, r)
		}
	}
	r = mustLoad(
		t,
		append(
			[]string{"alloc"},
			append(
				addressFlags(client, scheduler, tracker),
				"--nodes",
				"50",
				"--masters",
				"4",
				"--wave",
				"5",
				"--rate",
				"500",
				"--count",
				"200",
				"--duration",
				"1h",
				"--held",
				"40",
				"--run",
			)...)...)
	if c := r.Containers; r.Answered != 200 || c.Granted < 800 || c.Granted > 1000 || c.Released > c.Granted ||
		c.Grant.Count != c.Granted ||
		c.Grant.P50 <= 0 {
		t.Errorf("200 calls for 5 containers each: %+v %+v", r, r.Containers)
	}
	if r = mustLoad(
		t,
		"rest",
		"http://"+web+"/ws/v1/cluster/info",
		"--rate",
		"500",
		"--count",
		"200",
		"--duration",
		"1h",
		"--connections",
		"4",
	); r.Answered != 200 ||
		r.REST.BytesEach < 100 {
		t.Errorf("200 documents: %+v %+v", r, r.REST)
	}
}

func TestLoadThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ args, says string }{
		"another machine": {"submit --client 192.0.2.1:8032 --count 1", "not a loopback address"},
		"no end":          {"nodes --duration 0s", "no end"},
		"no port":         {"report --client 127.0.0.1", "give host:port"},
		"unknown call":    {"report --client 127.0.0.1:1 --call everything", "give one of"},
		"unknown process": {"nodes --pid 999999999", "cannot be watched"},
		"not http":        {"rest ftp://127.0.0.1/x", "give http://"},
	} {
		r, code, message := load(t.Context(), t, strings.Fields(c.args)...)
		if code == 0 || !strings.Contains(message, c.says) || r.Kind != "" {
			t.Errorf("%s: code %d, %q; want a refusal that says %q", name, code, message, c.says)
		}
	}
	// Without a listener the load ends at once with the code for it.
	if _, code, message := load(
		t.Context(),
		t,
		"submit",
		"--client",
		"127.0.0.1:1",
		"--count",
		"3",
		"--duration",
		"1h",
	); code != 5 {
		t.Errorf("nobody there: code %d, %q", code, message)
	}
}

// A real ResourceManager accepts a thousand of creel's nodes: all register, all send heartbeats, none has to register
// again, and it counts them all.
func TestAThousandNodesOnHadoop(t *testing.T) {
	rm := hadoop.StartRM(t, hadoop.RM{HeapMB: 512})
	r := mustLoad(
		t,
		"nodes",
		"--tracker",
		rm.Addresses.Tracker,
		"--nodes",
		"1000",
		"--period",
		"1s",
		"--count",
		"5000",
		"--duration",
		"1h",
		"--pid",
		strconv.Itoa(rm.PID()),
	)
	if r.Answered != 5000 || r.Failed != 0 || r.Nodes.Registered != 1000 || r.Nodes.Resyncs != 0 {
		t.Errorf("5 heartbeats of each of 1000 nodes: %+v %+v", r, r.Nodes)
	}
	if n := activeNodes(t, rm.Addresses.Web); n != 1000 {
		t.Errorf("Hadoop's ResourceManager has %d nodes, not 1000", n)
	}
}
