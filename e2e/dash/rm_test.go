// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// The ResourceManager's own pages, which YARN's tools link to, show its REST data. They update like the router's and
// are accessible by keyboard and screen reader. Through the router the same links lead to its own pages.
func TestTheResourceManagersPages(t *testing.T) {
	f := routertest.Start(t, routertest.Options{
		Members: 2, Routers: 1, Settings: []string{"yarn.log-aggregation-enable=true"},
	})
	waits, runs := submit(t, f, "bob", "waits"), submit(t, f, "alice", "runs")
	run(t, f, runs, 4)
	home, err := f.Store.Home(t.Context(), runs)
	if err != nil {
		t.Fatal(err)
	}
	web := f.Member(home).D.Addresses().Web
	base := "http://" + web
	b := newBrowser(t)

	// The cluster, as /ws/v1/cluster/metrics has it.
	b.open(base + "/")
	if at := b.eval("location.pathname"); at != "/cluster" {
		t.Errorf("/ leads to %s", at)
	}
	b.untilLive()
	type yarnMetrics struct {
		M struct{ ContainersAllocated, AppsRunning, ActiveNodes int64 } `json:"clusterMetrics"`
	}
	b.until("the page has the figures of the metrics", func() bool {
		metrics := api[yarnMetrics](t, web, "/ws/v1/cluster/metrics")
		return metrics.M.ContainersAllocated == 4 && b.text("#containers") == "4" && b.text("#running") ==
			fmt.Sprint(metrics.M.AppsRunning) && b.text("#nodes") == fmt.Sprint(metrics.M.ActiveNodes)
	})
	b.axe("the cluster")
	b.screenshot("resourcemanager")

	// Its applications, by state as Hadoop's address has it.
	type yarnApp struct{ ID, Name, User, Queue, State string }
	type yarnApps struct{ Apps struct{ App []yarnApp } }
	for _, state := range []string{"RUNNING", "ACCEPTED", "KILLED"} {
		b.open(base + "/cluster/apps/" + state)
		told := api[yarnApps](t, web, "/ws/v1/cluster/apps?states="+state).Apps.App
		rows := b.rows("#apps")
		if len(told) == 0 {
			if len(rows) != 1 || rows[0][0] != "No application." {
				t.Errorf("%s: %q where the REST has none", state, rows)
			}
			continue
		}
		if len(rows) != len(told) {
			t.Errorf("%s: %d rows, the REST has %d", state, len(rows), len(told))
		}
		for _, a := range told {
			if !slices.ContainsFunc(rows, func(r []string) bool {
				return r[9] == a.ID && r[0] == a.Name && r[1] == a.State && r[2] == a.User && r[3] == a.Queue
			}) {
				t.Errorf("%s: %+v is not in %q", state, a, rows)
			}
		}
		if at := b.eval(`document.querySelector("select[name=state]").value`); at != state {
			t.Errorf("the filter stands at %q", at)
		}
	}
	b.open(base + "/cluster/apps")
	b.axe("its applications")
	b.open(base + "/cluster/apps?q=" + runs.String())
	if rows := b.rows("#apps"); len(rows) != 1 || rows[0][9] != runs.String() || rows[0][6] != "4" {
		t.Errorf("the search finds %q", rows)
	}

	// One application: its report, its containers.
	b.open(base + "/cluster/app/" + runs.String() + "?user.name=alice")
	b.untilLive()
	report := api[struct{ App yarnApp }](t, web, "/ws/v1/cluster/apps/"+runs.String()).App
	if text := b.text("main"); !strings.Contains(text, report.Name) || !strings.Contains(text, report.Queue) ||
		!strings.Contains(b.text("#state"), report.State) {
		t.Errorf("the page of %+v says\n%s", report, text)
	}
	attempts := api[struct {
		AppAttempts struct {
			AppAttempt []struct{ AppAttemptID string }
		}
	}](t, web, "/ws/v1/cluster/apps/"+runs.String()+"/appattempts").AppAttempts.AppAttempt
	if got := b.rows("#attempts"); len(got) != 1 || len(attempts) != 1 || got[0][0] != attempts[0].AppAttemptID {
		t.Errorf("attempts %q, the REST has %v", got, attempts)
	}
	if got := b.rows("#containers"); len(got) != 4 {
		t.Errorf("containers: %q", got)
	}
	if got := b.text("#logs"); got != "NOT_START" {
		t.Errorf("before a node gathers its logs: %s", got)
	}
	// A node reports failures and is on the page, where Hadoop's links to its logs lead too.
	if err := f.Member(home).D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
		_, _ = m.RegisterNode(now, &rm.RegisterNode{
			ID: creel.NodeID{Host: "full", Port: 1}, Resource: creel.NewResource(4096, 4),
			Applications: []creel.ApplicationID{runs},
			Logs:         []rm.LogReport{{App: runs, Status: creel.LogRunningWithFailure, Message: "no room on the disk"}},
		})
	}); err != nil {
		t.Fatal(err)
	}
	b.open(base + "/cluster/logaggregationstatus/" + runs.String())
	if at := b.eval("location.pathname"); at != "/cluster/app/"+runs.String() {
		t.Errorf("Hadoop's link to its logs leads to %s", at)
	}
	b.open(base + "/cluster/app/" + runs.String() + "?user.name=alice")
	if got := b.rows("#node-logs"); b.text("#logs") != "RUNNING_WITH_FAILURE" || len(got) != 1 || got[0][0] != "full:1" ||
		got[0][2] != "no room on the disk" {
		t.Errorf("%s, of nodes %q", b.text("#logs"), got)
	}
	b.axe("an application of the ResourceManager")

	// Hadoop's links to an attempt land on it, and so do all of them through the router.
	b.open(base + "/cluster/appattempt/" + attempts[0].AppAttemptID)
	if at := b.eval("location.pathname"); at != "/cluster/app/"+runs.String() {
		t.Errorf("an attempt's link leads to %s", at)
	}
	through := "http://" + f.Routers[0].Web
	for from, to := range map[string]string{
		"/cluster/app/" + waits.String():                  "/apps/" + waits.String(),
		"/cluster/appattempt/" + attempts[0].AppAttemptID: "/apps/" + runs.String(),
		"/cluster/apps/RUNNING":                           "/apps?state=RUNNING",
		"/cluster/nodes":                                  "/nodes",
		"/cluster/scheduler":                              "/queues",
		"/cluster":                                        "/",
	} {
		b.open(through + from)
		if at := b.eval("location.pathname + location.search"); at != to || b.text("#problem") != "" {
			t.Errorf("through the router %s leads to %s (%s)", from, at, b.text("#problem"))
		}
	}

	// Nodes and queues.
	b.open(base + "/cluster/nodes")
	nodes := api[struct {
		Nodes struct {
			Node []struct {
				ID, State, Rack string
				NumContainers   int64
			}
		}
	}](t, web, "/ws/v1/cluster/nodes").Nodes.Node
	rows := b.rows("#nodes")
	if len(rows) != len(nodes) || len(nodes) != 2+1 { // two are simulated, one is the test's
		t.Errorf("%d rows of nodes, the REST has %d", len(rows), len(nodes))
	}
	for _, n := range nodes {
		if !slices.ContainsFunc(rows, func(r []string) bool {
			return r[0] == n.ID && r[1] == n.State && r[2] == n.Rack && r[4] == fmt.Sprint(n.NumContainers)
		}) {
			t.Errorf("node %+v is not in %q", n, rows)
		}
	}
	b.axe("its nodes")
	b.open(base + "/cluster/nodes/lost")
	if rows := b.rows("#nodes"); len(rows) != 1 || rows[0][0] != "No node." {
		t.Errorf("lost nodes: %q", rows)
	}
	b.open(base + "/cluster/scheduler")
	tree := api[struct {
		Scheduler struct {
			Info struct {
				Queues struct {
					Queue []struct {
						QueuePath, State                       string
						AbsoluteCapacity, AbsoluteUsedCapacity float64
						NumActiveApplications                  int64
					}
				}
			} `json:"schedulerInfo"`
		}
	}](t, web, "/ws/v1/cluster/scheduler").Scheduler.Info.Queues.Queue
	rows = b.rows("#queues")
	if len(tree) == 0 || len(rows) != len(tree)+1 || rows[0][0] != string(creel.RootQueue) {
		t.Errorf("queues %q, the REST has %+v below the root", rows, tree)
	}
	for _, q := range tree {
		if !slices.ContainsFunc(rows, func(r []string) bool {
			return r[0] == q.QueuePath && r[1] == q.State && r[3] == percent(q.AbsoluteUsedCapacity) &&
				r[4] == percent(q.AbsoluteCapacity) && r[6] == fmt.Sprint(q.NumActiveApplications)
		}) {
			t.Errorf("queue %+v is not in %q", q, rows)
		}
	}
	b.axe("its queues")

	// A change is made from the page, and the page shows it.
	b.open(base + "/cluster/app/" + runs.String() + "?user.name=alice")
	b.untilLive()
	b.confirm("#kill")
	b.until("the application has ended", func() bool {
		return strings.HasPrefix(b.text("#headline"), "It has ended: KILLED")
	})
	b.open(base + "/cluster/app/application_1_0001")
	if text := b.text("#problem"); !strings.Contains(text, "application_1_0001") {
		t.Errorf("of what is not there the page says %q", text)
	}
	b.narrow()
	for _, path := range []string{
		"/cluster", "/cluster/apps", "/cluster/app/" + runs.String(), "/cluster/nodes", "/cluster/scheduler",
	} {
		b.open(base + path)
		if wide := b.eval("String(document.documentElement.scrollWidth)"); wide != "360" {
			t.Errorf("%s is %s wide on a screen of 360", path, wide)
		}
	}
	b.quiet("application_1_0001")
}
