// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// dashboard reads a page of a router's dashboard, "" without a response.
func dashboard(web, path string) string {
	resp, err := httpClient.Get("http://" + web + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// One of two members is full and has waiting applications; the other is free. With the setting they move, up to the
// budget for each minute, and run there. The command line, why and the dashboard show the moves. One move is undone
// while the application waits again: it returns.
func TestWaitingApplicationsMoveWithinBudget(t *testing.T) {
	const each, budget = 512, 3
	f := startSimulation(t, 2, 4096, hadoop.Conf{
		"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
		"creel.rebalancer.move.loaded":                        "true",
		"creel.rebalancer.move.per-minute":                    "3",
		"creel.rebalancer.move.queue-percent":                 "100",
		"creel.rebalancer.move.again-after":                   "1s",
	})
	web, loaded, free := f.RouterAddresses[0].Web, f.Subclusters[0], f.Subclusters[1]
	f.operate(t, "subcluster", "drain", free.ID)
	AwaitActive(t, web, 1)
	for range 20 { // the queue may use the whole member: eight run
		submitSleep(t, web, "default", each)
	}
	running := func(s *Subcluster) int {
		var m struct {
			ClusterMetrics struct{ AppsRunning, AppsPending, AllocatedMB int }
		}
		if _, err := Call(t, http.MethodGet, s.Addresses.Web, "/ws/v1/cluster/metrics", nil, &m); err != nil {
			return 0
		}
		return m.ClusterMetrics.AllocatedMB / each
	}
	if process.Poll(nil, func() bool { return running(loaded) == 8 }) != nil {
		t.Fatalf("%d run in the full member", running(loaded))
	}
	f.operate(t, "subcluster", "undrain", free.ID)
	AwaitActive(t, web, 2)

	var doc struct {
		Last []struct {
			Application, From, To, Why string
			Moved                      bool
			At                         time.Time
		}
	}
	moved := func() (n int) {
		t.Helper()
		if _, err := Call(t, http.MethodGet, web, "/api/v1/moves", nil, &doc); err != nil {
			return 0
		}
		for _, d := range doc.Last {
			if d.Moved && d.To == free.ID {
				n++
			}
		}
		return n
	}
	began := time.Now()
	if process.Poll(nil, func() bool { return moved() >= budget && running(free) >= budget }) != nil {
		t.Fatalf("%d moved, %d run where there is room\n%s", moved(), running(free), f.operate(t, "rebalancer", "moves"))
	}
	t.Logf("after %s %d moved and run in the free member", time.Since(began).Round(100*time.Millisecond), moved())
	for time.Since(began) < 15*time.Second { // no event reports that nothing more moves
		if n := moved(); n > budget {
			t.Fatalf("%d moved within %s, the budget is %d a minute", n, time.Since(began), budget)
		}
		time.Sleep(time.Second)
	}
	one := doc.Last[0]
	if home := f.Home(t, one.Application); home != free {
		t.Errorf("%s lives at %s", one.Application, home.ID)
	}
	if why := f.operate(t, "app", "why", one.Application); !strings.Contains(why, "moved from "+loaded.ID+" to "+free.ID) {
		t.Errorf("why does not tell of the move:\n%s", why)
	}
	if page := dashboard(web, "/rebalancer?user.name="+hadoop.OSUser(t)); !strings.Contains(page, one.Application) ||
		!strings.Contains(page, one.Why) {
		t.Errorf("the dashboard's page of the rebalancer does not show the move of %s:\n%s", one.Application, page)
	}
	t.Log(f.operate(t, "rebalancer", "moves"))

	// A running application is not moved back, and reports show its place again soon.
	t.Log(f.operate(t, "rebalancer", "rollback", one.Application))
	if process.Poll(nil, func() bool {
		return strings.Contains(f.operate(t, "app", "why", one.Application), "not moved from "+free.ID+" to "+loaded.ID)
	}) != nil {
		t.Errorf("the undone move of what runs is not refused:\n%s", f.operate(t, "rebalancer", "moves"))
	}
	if home := f.Home(t, one.Application); home != free {
		t.Errorf("%s, which runs, went back to %s", one.Application, home.ID)
	}
}

// An administrator moves waiting applications out of a member and undoes the move. The other member is full too.
// Applications that still wait there return.
func TestAMoveIsRolledBack(t *testing.T) {
	const each = 512
	f := startSimulation(t, 2, 2048, hadoop.Conf{"yarn.scheduler.capacity.maximum-am-resource-percent": "1"})
	web, first, second := f.RouterAddresses[0].Web, f.Subclusters[0], f.Subclusters[1]
	for _, s := range f.Subclusters { // four run, and fill the member
		for range 4 {
			submitSleep(t, s.Addresses.Web, "default", each)
		}
	}
	f.operate(t, "subcluster", "drain", second.ID)
	AwaitActive(t, web, 1)
	id := submitSleep(t, web, "default", each)
	if home := f.Home(t, id); home != first {
		t.Fatalf("%s lives at %s", id, home.ID)
	}
	f.operate(t, "subcluster", "undrain", second.ID)
	AwaitActive(t, web, 2)
	if code, err := Call(t, http.MethodPut, web, "/api/v1/subclusters/"+first.ID+"/drain",
		map[string]any{"mode": "move", "reason": "new disks"}, nil); err != nil { // the command waits for the running ones
		t.Fatal(code, err)
	}
	if process.Poll(nil, func() bool { return f.Home(t, id) == second }) != nil {
		t.Fatalf("it does not move:\n%s", f.operate(t, "rebalancer", "moves"))
	}
	f.operate(t, "subcluster", "undrain", first.ID)
	AwaitActive(t, web, 2)
	if process.Poll(nil, func() bool { return strings.Contains(f.operate(t, "rebalancer", "moves"), "moved") }) != nil {
		t.Fatal("the move does not end")
	}
	t.Log(f.operate(t, "rebalancer", "rollback", id))
	if process.Poll(nil, func() bool { return f.Home(t, id) == first }) != nil {
		t.Fatalf("it does not go back:\n%s", f.operate(t, "rebalancer", "moves"))
	}
	if process.Poll(nil, func() bool {
		app, _, err := Report(t, first.Addresses.Web, id)
		return err == nil && app.State == "ACCEPTED"
	}) != nil {
		t.Errorf("it does not wait at %s again", first.ID)
	}
	t.Log(f.operate(t, "app", "why", id))
}
