// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// entitled returns a queue's entitlement by the plan in force, in MB; false without one.
func (f *Federation) entitled(t testing.TB, queue string) (mb int, ok bool) {
	t.Helper()
	var doc struct {
		InForce bool `json:"in_force"`
		Plan    struct {
			Total  struct{ MemoryMB int }
			Queues []struct {
				Queue    string
				Entitled float64
			}
		}
	}
	_, err := Call(t, http.MethodGet, f.RouterAddresses[0].Web, "/api/v1/rebalancer", nil, &doc)
	for _, q := range doc.Plan.Queues {
		if q.Queue == "root."+queue {
			return int(q.Entitled * float64(doc.Plan.Total.MemoryMB)), err == nil && doc.InForce
		}
	}
	return 0, false
}

// Three of creel's ResourceManagers and one of Hadoop's have load in some of them and then in others. The queues' total
// use follows the plan's entitlement within 5 % (the log reports the time needed). Meanwhile Redis fails over and the
// leading rebalancer is killed; no sample is above the maximum. The leaders check the invariants against the members'
// reports and find none broken. Hadoop's queue is never emptied: maximum-capacity cannot take its guarantee there.
func TestUseFollowsEntitlementThroughFailovers(t *testing.T) {
	const maximum, each, node = 20480, 512, 16384
	sentinels := redistest.StartSentinels(t)
	f := &Federation{Logs: tempDir(t, "logs"), Store: sentinels.URL() + "?wait=1"}
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"})
	quick := hadoop.Conf{
		"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
		"creel.escrow.recovery":                               "3s", // no node comes later here
	}
	for i := range 3 {
		f.Subclusters = append(f.Subclusters, f.StartSubcluster(t, i+1, quick))
	}
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: changeable.With(hadoop.Conf{
		"yarn.am.liveness-monitor.expiry-interval-ms":             "900000",
		"yarn.scheduler.capacity.maximum-am-resource-percent":     "1",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200", // it grants one container a heartbeat
		"yarn.scheduler.capacity.resource-calculator":             "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
	})})
	far := &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses}
	f.Subclusters = append(f.Subclusters, far)
	start(t, "agent", "agent", f.common(t, theirs.Addresses.Conf()).With(quick), "--subcluster", far.ID)
	for _, s := range f.Subclusters {
		startSimulated(t, s, node)
	}
	f.StartRouter(t, 1, nil)
	f.Await(t, 4)
	AwaitActive(t, f.RouterAddresses[0].Web, 4)
	f.applyTree(t, fmt.Sprintf("queues:\n- {queue: root.other, maximum: {memory: %d}}\n", maximum))
	type planner struct {
		daemon *Daemon
		web    string
	}
	var planners []planner
	for i := range 2 {
		web := process.FreeAddress(t, "127.0.0.1")
		planners = append(planners, planner{start(t, fmt.Sprintf("rebalancer-%d", i+1), "rebalancer", f.common(t, hadoop.Conf{
			"creel.rebalancer.interval": "1s", "creel.rebalancer.lease": "3s", "creel.health.address": web,
			"creel.rebalancer.audit.interval": "1s", "creel.escrow.linger": "10m",
		})), web})
	}
	leader := func() (at int) {
		t.Helper()
		at = -1
		err := process.Poll(nil, func() bool {
			for i, p := range planners {
				if !p.daemon.Ended() && metric(t, p.web, "creel_rebalancer_leads") == 1 {
					at = i
				}
			}
			return at >= 0
		})
		if err != nil {
			t.Fatal("no rebalancer leads")
		}
		return at
	}

	one, two, three := f.Subclusters[0], f.Subclusters[1], f.Subclusters[2]
	apps := map[*Subcluster][]string{}
	load := func(s *Subcluster, queue string, n int) {
		t.Helper()
		for range n {
			id := submitSleep(t, s.Addresses.Web, queue, each)
			if queue == "other" {
				apps[s] = append(apps[s], id)
			}
		}
	}
	leave := func(s *Subcluster) {
		t.Helper()
		ids := apps[s]
		delete(apps, s)
		for i := range ids { // the youngest first: waiting ones keep their order
			KillApp(t, s.Addresses.Web, ids[len(ids)-1-i])
		}
	}
	samples := 0
	// follows samples until both queues use their entitlement by the plan, and that is the expected one. Members
	// whose use falls are read last, so that a sum is at most the use at one moment.
	follows := func(what string, since time.Time, falls *Subcluster, other, ofDefault int) {
		t.Helper()
		for {
			used := map[string]int{}
			for _, s := range f.Subclusters {
				if s != falls {
					used["other"] += queueUse(t, s, "other")
				}
				used["default"] += queueUse(t, s, "default")
			}
			if falls != nil {
				used["other"] += queueUse(t, falls, "other")
			}
			if samples++; used["other"] > maximum {
				t.Fatalf("%s, sample %d: %d MB are in use, above %d", what, samples, used["other"], maximum)
			}
			near := func(queue string, want int) bool {
				mb, inForce := f.entitled(t, queue)
				within := func(a, b int) bool { return max(a-b, b-a)*20 <= b }
				return inForce && within(mb, want) && within(used[queue], mb)
			}
			took := time.Since(since)
			if near("other", other) && near("default", ofDefault) {
				t.Logf("%s: use follows entitlement after %s, of %d samples none is above the maximum: %v",
					what, took.Round(100*time.Millisecond), samples, used)
				return
			}
			if took > process.Guard {
				for s, ids := range apps {
					t.Log(s.ID, f.operate(t, "app", "why", ids[len(ids)-1]))
				}
				t.Fatalf("%s: after %s %v is in use\n%s%s", what, took.Round(time.Second), used,
					f.operate(t, "rebalancer", "plan"), f.Creel(t, "rebalancer", "escrow", "--store", f.Store))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}

	began := time.Now()
	load(one, "other", 24)
	load(far, "other", 32)
	load(two, "default", 10)
	follows("load in two members", began, nil, maximum, 10*each)

	began = time.Now()
	load(three, "other", 24)
	leave(one)
	follows("load elsewhere", began, one, maximum, 10*each)

	lost := leader()
	sentinels.Primary.Kill()
	planners[lost].daemon.Kill()
	load(two, "other", 24)
	leave(three)
	sentinels.AwaitFailover()
	sentinels.Primary.Restart() // as the new primary's replica, of which wait=1 asks for one
	began = time.Now()
	follows("Redis failed over and the leader killed", began, three, maximum, 10*each)

	planners[lost].daemon.Restart(t)
	planners[leader()].daemon.Kill()
	began = time.Now()
	load(one, "other", 24)
	leave(two)
	follows("the leader killed", began, two, maximum, 10*each)

	at := planners[leader()].web
	for _, i := range []string{"global_maximum", "parent_consistency", "true_headroom", "member_loss", "stability", "rounding"} {
		if process.Poll(nil, func() bool {
			return metric(t, at, `creel_invariant_checked_total{invariant="`+i+`"}`) > 0
		}) != nil {
			t.Errorf("%s was not judged", i)
		}
		if n := metric(t, at, `creel_invariant_broken_total{invariant="`+i+`"}`); n != 0 {
			t.Errorf("%s is broken %v times\n%s", i, n, f.operate(t, "rebalancer", "audit"))
		}
	}
}
