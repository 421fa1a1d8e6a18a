// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// metric reads one line of a daemon's /metrics by its name with labels; -1 without such a line.
func metric(t testing.TB, web, name string) float64 {
	t.Helper()
	resp, err := httpClient.Get("http://" + web + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics of %s: %s", web, resp.Status)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(lines.Text())
			}
			return v
		}
	}
	return -1
}

// startRebalancer starts a rebalancer that plans each second. It returns the address of its metrics.
func (f *Federation) startRebalancer(t testing.TB) string {
	t.Helper()
	web := process.FreeAddress(t, "127.0.0.1")
	start(t, "rebalancer", "rebalancer", f.common(t, hadoop.Conf{
		"creel.rebalancer.interval": "1s", "creel.health.address": web,
	}))
	return web
}

// Two members are full of one queue, and another queue is owed most of both, on nodes with and without a label. For
// each it has a preemption budget in the federation. On the nodes of each, both members together preempt at most the
// budget of the intervals begun so far. They continue from one interval to the next.
func TestPreemptionInTwoMembersStaysWithinFederationBudget(t *testing.T) {
	const each, budget, memory, interval = 512, 1024, 8192, 5 * time.Second
	const prefix = "yarn.resourcemanager.monitor.capacity.preemption."
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"})
	for i := range 2 {
		s := f.StartSubcluster(t, i+1, labelConf.With(hadoop.Conf{
			"yarn.resourcemanager.scheduler.monitor.enable": "true",
			prefix + "monitoring_interval":                  "200",
			prefix + "max_wait_before_kill":                 "400",
			prefix + "total_preemption_per_round":           "1",
			prefix + "natural_termination_factor":           "1",
		}))
		f.Subclusters = append(f.Subclusters, s)
		startSimulatedNodes(t, s, 2, memory)
	}
	f.StartRouter(t, 1, nil)
	f.Await(t, 4) // nodes
	AwaitActive(t, f.RouterAddresses[0].Web, 2)
	for _, s := range f.Subclusters {
		labelNodes(t, s, 1)
	}
	f.startRebalancer(t)
	f.applyTree(t, `queues:
- queue: root.default
  preemption: {memory: 1024}
  preemption_seconds: 5
  labels:
    gpu: {guarantee: 70%, preemption: {memory: 1024}, preemption_seconds: 5}
- queue: root.other
  labels:
    gpu: {guarantee: 30%}
`)
	labels := []string{"", "gpu"}
	for _, s := range f.Subclusters {
		for _, label := range labels {
			for range memory / each {
				submitSleepOn(t, label, s.Addresses.Web, "other", each)
			}
		}
	}
	for _, s := range f.Subclusters {
		if process.Poll(nil, func() bool { return metric(t, s.Addresses.Web, "creel_preemption_budget_bytes") >= 0 }) != nil {
			t.Fatal("no metric of budgets")
		}
	}
	// used returns the use of the losing queue, which only preemption reduces.
	used := func(label string) (mb int) {
		t.Helper()
		for _, s := range f.Subclusters {
			mb += queueOf(t, s, "other").usedOn(label)
		}
		return mb
	}
	if process.Poll(nil, func() bool { return used("") == 2*memory && used("gpu") == 2*memory }) != nil {
		t.Fatalf("the members are not full: %d and %d MB", used(""), used("gpu"))
	}
	f.says(t, `(?s)taken back for root\.default until .*taken back for root\.default on nodes of label gpu until`,
		"rebalancer", "plan")
	f.says(t, `(?m)^root\.default +gpu .*memory 1\.0 GiB in 5 s`, "queue", "show", "--federation", "-o", "wide")
	time.Sleep(2 * time.Second) // and the members have read it, which they do not report
	taken := func(label string) int {
		t.Helper()
		return 2*memory - used(label)
	}
	if n := taken("") + taken("gpu"); n != 0 {
		t.Fatalf("%d MB are taken back before anybody wants them", n)
	}
	began := time.Now().Truncate(interval) // as intervals are counted by the store's clock, which is ours
	waits := ""                            // one that may begin, for AMs, and has others before it
	for _, s := range f.Subclusters {
		for _, label := range labels {
			for i := range 12 {
				if id := submitSleepOn(t, label, s.Addresses.Web, "default", each); i == 6 {
					waits = id
				}
			}
		}
	}
	samples, intervals, told := 0, 0, false
	var why struct{ Wait struct{ Text string } }
	// Five intervals, and further ones for a slow machine to take back the amount of three.
	const least = 3 * budget
	for intervals < 5 || min(taken(""), taken("gpu")) < least && time.Since(began) < process.Guard {
		all := map[string]int{"": taken(""), "gpu": taken("gpu")}
		intervals = int(time.Now().Truncate(interval).Sub(began)/interval) + 1
		for label, mb := range all {
			if mb > budget*intervals {
				t.Fatalf("sample %d: %d MB are taken back on nodes of label %q in %d intervals of at most %d", samples, mb,
					label, intervals, budget)
			}
		}
		samples++
		if !told {
			_, err := Call(t, http.MethodGet, f.Subclusters[1].Addresses.Web, "/api/v1/apps/"+waits+"/why", nil, &why)
			told = err == nil &&
				strings.Contains(why.Wait.Text, "preemption budget here on nodes of label gpu for queue root.default")
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, label := range labels {
		mb := taken(label)
		t.Logf("on nodes of label %q: %d MB in %d intervals of at most %d, in %d samples none above", label, mb, intervals,
			budget, samples)
		if mb < least {
			t.Errorf("only %d MB are taken back in %d intervals of %d", mb, intervals, budget)
		}
	}
	if !told {
		t.Errorf("why says nothing of the budget on nodes of the label: %+v", why)
	}
}

// A member's share of a maximum and its demand beyond that share are metrics of the member. The sums over members by
// queue are metrics of the leading rebalancer.
func TestEscrowMetrics(t *testing.T) {
	const maximum, each = 4096, 512
	f := startSimulation(t, 2, 8192, hadoop.Conf{"yarn.scheduler.capacity.maximum-am-resource-percent": "1"})
	rebalancer := f.startRebalancer(t)
	f.applyTree(t, "queues:\n- {queue: root.other, maximum: {memory: 4096}}\n")
	one, two := f.Subclusters[0].Addresses.Web, f.Subclusters[1].Addresses.Web
	becomes := func(web, name string, want float64) {
		t.Helper()
		if process.Poll(nil, func() bool { return metric(t, web, name) == want }) != nil {
			t.Errorf("%s is %v, want %v", name, metric(t, web, name), want)
		}
	}
	for range 12 {
		submitSleep(t, one, "other", each)
	}
	const mb = 1 << 20
	becomes(one, "creel_escrow_held_bytes", maximum*mb)
	becomes(one, "creel_escrow_asked_bytes", (12*each-maximum)*mb)
	becomes(two, "creel_escrow_held_bytes", 0)
	becomes(two, "creel_escrow_asked_bytes", 0)
	becomes(rebalancer, `creel_rebalancer_escrow_held_bytes{queue="root.other"}`, maximum*mb)
	becomes(rebalancer, `creel_rebalancer_escrow_asked_bytes{queue="root.other"}`, 12*each*mb)
	becomes(rebalancer, "creel_rebalancer_leads", 1)
	for _, web := range []string{one, two} {
		if n := metric(t, web, "creel_escrow_writes_total"); n < 1 {
			t.Errorf("creel_escrow_writes_total of %s is %v", web, n)
		}
		becomes(web, "creel_escrow_users", 0)
	}
}
