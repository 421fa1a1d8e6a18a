// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// preempted returns the memory that Hadoop's ResourceManager reports as preempted, in MB.
func preempted(t testing.TB, web string) int {
	t.Helper()
	resp, err := httpClient.Get("http://" + web + "/jmx?qry=Hadoop:service=ResourceManager,name=QueueMetrics,q0=root")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc struct {
		Beans []struct{ AggregateMemoryMBPreempted int }
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil || len(doc.Beans) != 1 {
		t.Fatalf("%s: %v: %+v", resp.Status, err, doc)
	}
	return doc.Beans[0].AggregateMemoryMBPreempted
}

// A member with creel's ResourceManager and one with Hadoop's are full of one queue, and another queue is owed most of
// both. The agent limits Hadoop's policy to the queue's budget in the federation. Both together preempt at most that
// from interval to interval. Without a budget Hadoop's settings return to the queue all that it is owed.
func TestHadoopPreemptsWithinFederationBudget(t *testing.T) {
	const each, budget, interval = 512, 2048, 15 * time.Second
	const prefix = "yarn.resourcemanager.monitor.capacity.preemption."
	conf := labelConf.With(hadoop.Conf{
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		prefix + "monitoring_interval":                  "5000",
		prefix + "max_wait_before_kill":                 "3000",
		prefix + "total_preemption_per_round":           "1",
		prefix + "natural_termination_factor":           "1",
	})
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2"})
	ours := f.StartSubcluster(t, 1, conf)
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: changeable.With(conf, hadoop.Conf{
		"yarn.am.liveness-monitor.expiry-interval-ms":         "900000",
		"yarn.node-labels.fs-store.root-dir":                  "file://" + tempDir(t, "labels"),
		"yarn.scheduler.capacity.root.other.maximum-capacity": "100",
	})})
	far := &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses}
	f.Subclusters = []*Subcluster{ours, far}
	start(t, "agent", "agent", f.common(t, theirs.Addresses.Conf()), "--subcluster", far.ID)
	for _, s := range f.Subclusters {
		startSimulatedNodes(t, s, 2, 8192)
	}
	f.StartRouter(t, 1, nil)
	f.Await(t, 4) // nodes
	for _, s := range f.Subclusters {
		labelNodes(t, s, 1)
	}
	AwaitActive(t, f.RouterAddresses[0].Web, 2)
	f.startRebalancer(t)
	f.applyTree(t, "queues:\n- {queue: root.default, preemption: {memory: 2048}, preemption_seconds: 15}\n")

	load := func(queue string, n int) {
		t.Helper()
		for _, s := range f.Subclusters {
			for range n {
				submitSleep(t, s.Addresses.Web, queue, each)
			}
		}
	}
	load("other", 16)
	for _, s := range f.Subclusters {
		if process.Poll(nil, func() bool {
			var m struct{ ClusterMetrics struct{ AllocatedMB int } }
			_, err := Call(t, http.MethodGet, s.Addresses.Web, "/ws/v1/cluster/metrics", nil, &m)
			return err == nil && m.ClusterMetrics.AllocatedMB == 8192
		}) != nil {
			t.Fatalf("%s is not full", s.ID)
		}
	}
	perRound := func() string { // as the configuration that calls change has it; "" without
		t.Helper()
		var doc struct {
			Property []struct{ Name, Value string }
		}
		if _, err := Call(t, http.MethodGet, theirs.Web, "/ws/v1/cluster/scheduler-conf", nil, &doc); err != nil {
			t.Fatal(err)
		}
		for _, p := range doc.Property {
			if p.Name == prefix+"total_preemption_per_round" {
				return p.Value
			}
		}
		return ""
	}
	taken := func() (here, there int) {
		t.Helper()
		return each * int(metric(t, ours.Addresses.Web, "creel_rm_preempted_containers_total")), preempted(t, theirs.Web)
	}
	if here, there := taken(); here+there != 0 || perRound() != "" {
		t.Fatalf("%d and %d MB are taken back before anybody wants them, a round takes %q", here, there, perRound())
	}
	began := time.Now().Truncate(interval) // as intervals are counted by the store's clock, which is ours
	load("default", 12)
	samples, intervals, bound := 0, 0, map[string]int{}
	enough := func() bool {
		here, there := taken()
		return here+there >= 2*budget && there >= budget/2
	}
	for intervals < 6 || !enough() && time.Since(began) < process.Guard { // a slow machine needs more
		here, there := taken()
		intervals = int(time.Now().Truncate(interval).Sub(began)/interval) + 1
		if samples++; here+there > budget*intervals {
			t.Fatalf("sample %d: %d and %d MB are taken back in %d intervals of at most %d", samples, here, there, intervals,
				budget)
		}
		bound[perRound()]++
		time.Sleep(200 * time.Millisecond)
	}
	plan := f.Creel(t, "rebalancer", "plan", "--store", f.Store)
	here, there := taken()
	t.Logf("%d and %d MB in %d intervals of at most %d, in %d samples none above; a round took at most, in so many: %v\n%s",
		here, there, intervals, budget, samples, bound, plan)
	if !enough() {
		t.Errorf("only %d and %d MB are taken back in %d intervals of %d", here, there, intervals, budget)
	}
	if !strings.Contains(plan, "taken back for root.default") {
		t.Errorf("the plan says nothing of it:\n%s", plan)
	}

	f.followsAtHadoop(t, far, each)

	// Without the budget its own settings are in force again, and give the queue 70 % of it.
	f.applyTree(t, "queues: []\n")
	if process.Poll(nil, func() bool { return perRound() == "" && preempted(t, theirs.Web) >= 8192/2 }) != nil {
		t.Errorf("without a budget %d MB are taken back by Hadoop's settings; a round takes %q", preempted(t, theirs.Web),
			perRound())
	}
}

// followsAtHadoop tests a queue with a guarantee of most of the federation. It waits in a member that runs Hadoop's
// ResourceManager. The capacities there follow the plan, and are as configured again when plans are paused. The same
// applies on nodes of a label for which the queue has no configuration. The values checked are those that Hadoop's
// scheduler reports.
func (f *Federation) followsAtHadoop(t *testing.T, far *Subcluster, each int) {
	t.Helper()
	configured := queueOf(t, far, "default").AbsoluteCapacity
	began := time.Now()
	f.applyTree(t, "queues:\n- {queue: root.default, guarantee: 90%, preemption: {memory: 2048}, preemption_seconds: 15, "+
		"labels: {gpu: {guarantee: 90%}}}\n")
	for range 8 { // with the waiting ones it wants more there than is configured
		submitSleep(t, far.Addresses.Web, "default", each)
		submitSleepOn(t, "gpu", far.Addresses.Web, "default", each)
	}
	is := func() float64 { return queueOf(t, far, "default").AbsoluteCapacity }
	if process.Poll(nil, func() bool { return is() >= configured+4 }) != nil {
		t.Fatalf("%.2f%% are configured, and in force are %.2f%%\n%s", configured, is(), f.operate(t, "rebalancer", "why",
			"root.default"))
	}
	t.Logf("%.2f%% are configured, and %.2f%% in force after %.1f s", configured, is(), time.Since(began).Seconds())
	if other := queueOf(t, far, "other").AbsoluteCapacity; other+is() < 99.9 || other+is() > 100.1 {
		t.Errorf("the two have %.2f and %.2f%%", is(), other)
	}
	gpu := func(queue string) float64 { return queueOf(t, far, queue).capacityOn("gpu") }
	if process.Poll(nil, func() bool { return gpu("default") >= 5 }) != nil {
		t.Fatalf("of the label nothing is configured, and in force are %.2f%%\n%s", gpu("default"),
			f.operate(t, "rebalancer", "why", "root.default"))
	}
	sum := gpu("default") + gpu("other")
	t.Logf("on nodes of the label %.2f%% are in force after %.1f s", gpu("default"), time.Since(began).Seconds())
	if sum < 99.9 || sum > 100.1 {
		t.Errorf("on nodes of the label the two have %.2f%%", sum)
	}
	text := ""
	if process.Poll(nil, func() bool {
		text = f.operate(t, "rebalancer", "why", "root.default")
		return strings.Contains(text, far.ID+" guarantees it memory ")
	}) != nil {
		t.Errorf("creel rebalancer why says\n%s", text)
	}
	t.Log(text)
	f.operate(t, "rebalancer", "pause", "--reason", "test")
	if process.Poll(nil, func() bool { return is() == configured && gpu("default") == 0 && gpu("other") == 100 }) != nil {
		t.Errorf("plans are paused, and in force are %.2f of %.2f%%, on nodes of the label %.2f", is(), configured, gpu("default"))
	}
}
