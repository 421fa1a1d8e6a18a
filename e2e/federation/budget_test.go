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

// metric reads one line of a daemon's /metrics, by its name with labels; -1 if it is not there.
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

// startRebalancer starts one that plans each second, and returns the address of its metrics.
func (f *Federation) startRebalancer(t testing.TB) string {
	t.Helper()
	web := process.FreeAddress(t, "127.0.0.1")
	start(t, "rebalancer", "rebalancer", f.common(t, hadoop.Conf{
		"creel.rebalancer.interval": "1s", "creel.health.address": web,
	}))
	return web
}

// Two members are full of one queue, and another is owed most of both. It has a preemption
// budget in the federation: what both members take back for it together is within the budget of
// the intervals begun so far, and goes on from one interval to the next.
func TestTwoMembersTakeBackWithinTheBudgetOfTheFederation(t *testing.T) {
	const each, budget, interval = 512, 1024, 5 * time.Second
	const prefix = "yarn.resourcemanager.monitor.capacity.preemption."
	f := startSimulation(t, 2, 8192, hadoop.Conf{
		"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
		"yarn.resourcemanager.scheduler.monitor.enable":       "true",
		prefix + "monitoring_interval":                        "200",
		prefix + "max_wait_before_kill":                       "400",
		prefix + "total_preemption_per_round":                 "1",
		prefix + "natural_termination_factor":                 "1",
	})
	f.startRebalancer(t)
	f.applyTree(t, "queues:\n- {queue: root.default, preemption: {memory: 1024}, preemption_seconds: 5}\n")
	for _, s := range f.Subclusters {
		for range 16 {
			submitSleep(t, s.Addresses.Web, "other", each)
		}
	}
	for _, s := range f.Subclusters {
		if process.Poll(nil, func() bool { return metric(t, s.Addresses.Web, "creel_preemption_budget_bytes") >= 0 }) != nil {
			t.Fatal("no metric of budgets")
		}
	}
	used := func(s *Subcluster) int {
		var m struct{ ClusterMetrics struct{ AllocatedMB int } }
		if _, err := Call(t, http.MethodGet, s.Addresses.Web, "/ws/v1/cluster/metrics", nil, &m); err != nil {
			return 0
		}
		return m.ClusterMetrics.AllocatedMB
	}
	if process.Poll(nil, func() bool { return used(f.Subclusters[0])+used(f.Subclusters[1]) == 2*8192 }) != nil {
		t.Fatal("the members are not full")
	}
	if process.Poll(nil, func() bool { // a plan with the budget is in force
		var doc struct {
			InForce bool `json:"in_force"`
			Plan    struct {
				Preemption []struct{ Queue string }
			}
		}
		_, err := Call(t, http.MethodGet, f.RouterAddresses[0].Web, "/api/v1/rebalancer", nil, &doc)
		return err == nil && doc.InForce && len(doc.Plan.Preemption) == 1
	}) != nil {
		t.Fatal("no plan with the budget")
	}
	time.Sleep(2 * time.Second) // and the members have read it: they tell nobody that they have
	taken := func() (mb int) {
		t.Helper()
		for _, s := range f.Subclusters {
			mb += each * int(metric(t, s.Addresses.Web, "creel_rm_preempted_containers_total"))
		}
		return mb
	}
	if n := taken(); n != 0 {
		t.Fatalf("%d MB are taken back before anybody wants them", n)
	}
	began := time.Now().Truncate(interval) // as intervals are counted by the store's clock, which is ours
	for _, s := range f.Subclusters {
		for range 12 {
			submitSleep(t, s.Addresses.Web, "default", each)
		}
	}
	samples, intervals := 0, 0
	for intervals < 5 {
		mb := taken()
		intervals = int(time.Now().Truncate(interval).Sub(began)/interval) + 1
		if samples++; mb > budget*intervals {
			t.Fatalf("sample %d: %d MB are taken back in %d intervals of at most %d", samples, mb, intervals, budget)
		}
		time.Sleep(100 * time.Millisecond)
	}
	by := []float64{}
	for _, s := range f.Subclusters {
		by = append(by, metric(t, s.Addresses.Web, "creel_rm_preempted_containers_total"))
	}
	t.Logf("%d MB in %d intervals of at most %d, in %d samples none above; containers by member: %v",
		taken(), intervals, budget, samples, by)
	if mb := taken(); mb < budget*(intervals-2) {
		t.Errorf("only %d MB are taken back in %d intervals of %d", mb, intervals, budget)
	}
}

// What a member holds of a maximum, and asks for beyond it, are metrics of that member; both of
// all members by queue are metrics of the rebalancer that leads.
func TestEscrowIsTold(t *testing.T) {
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
