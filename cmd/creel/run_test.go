// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/rest"
)

func TestRunWatchesACommandToItsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	shows := func(want int, args []string, texts ...string) {
		t.Helper()
		out := s.run(want, args...)
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("creel %s does not show %q:\n%s", strings.Join(args, " "), text, out)
			}
		}
	}
	shows(0, []string{"run", "--containers", "5", "--memory", "512m", "--", "sleep", "0.2"},
		"is submitted to queue default", "SUCCEEDED after", "5 of 5 containers ended with exit code 0",
		"nothing was executed")
	// Each of them waited from its ask to its grant, by its ResourceManager and by the proxy.
	members, proxies := 0.0, 0.0
	for i := range fed.RMs {
		members += scraped(t, fed.RMs[i].Address("web"), "creel_rm_grant_wait_seconds_count")
		proxies += scraped(t, fed.Proxies[i].Address("web"), "creel_proxy_grant_wait_seconds_count")
	}
	if members != 5 || proxies != 5 {
		t.Errorf("5 containers were granted; %v waits are counted by ResourceManagers, %v by proxies", members, proxies)
	}
	shows(8, []string{"run", "--containers", "2", "--", "sh", "-c", "exit 3"},
		"FAILED after", "2 of 2 containers failed", "exit code 3")
	shows(8, []string{"run", "--containers", "2", "--env", "CREEL_SIM_EXIT=9", "--", "date"}, "exit code 9")
	shows(2, []string{"run", "--memory", "99g", "--", "date"}, "no member can run a container of 101376 MiB",
		"ask for at most 4096 MiB")
	// The text is about the nodes until the router knows the use of the queue.
	shows(8, []string{"run", "--containers", "50", "--memory", "4g", "--timeout", "4s", "--", "sleep", "60"},
		"waits at sc-", " (no_node_has_room): ", "is killed: it had not ended after 4s", "KILLED after")
	for _, bad := range [][]string{
		{"run"}, {"run", "--containers", "0", "--", "x"}, {"run", "--memory", "1q", "--", "x"}, {"run", "--env", "x", "--", "x"},
		{"run", "--program", "node:creel", "--", "x"}, {"run", "--program", "hdfs:///creel", "--", "x"},
		{"run", "--program", "/nowhere/creel", "--", "x"},
	} {
		s.run(exitUsage, bad...)
	}
	var doc runResult
	out := s.run(0, "run", "-o", "json", "--quiet", "--", "true")
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.FinalStatus != "SUCCEEDED" || doc.ID == "" {
		t.Errorf("as JSON: %s, %v", out, err)
	}
	id := strings.TrimSpace(s.run(0, "run", "--detach", "--", "sleep", "1"))
	s.run(0, "app", "wait", id)
}

// The AMs of a queue may use a part of it. Every surface of every router explains a wait for that limit in the same
// sentence, with the numbers.
func TestAMLimitIsExplainedOnEverySurface(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	other := cliClient{t, "http://" + fed.Routers[1].Address("web")}
	var ids []string
	for range 20 {
		ids = append(ids, strings.TrimSpace(s.run(0, "app", "submit", "--env", "CREEL_SIM_MS=600000", "--", "sleep", "600")))
	}
	waiting := 0
	for _, id := range ids {
		var doc, again whyDoc
		eventually(t, id+" is accepted", func() bool {
			doc = whyDoc{}
			if err := json.Unmarshal([]byte(s.run(0, "app", "why", "-o", "json", id)), &doc); err != nil {
				t.Fatal(err)
			}
			return doc.State == "ACCEPTED" && doc.Waits[0].Wait != nil
		})
		w := doc.Waits[0].Wait
		if w.Code == "am_not_registered" {
			continue
		}
		waiting++
		const mb = creel.MemoryName
		if w.Code != "am_limit" || w.Queue != "root.default" || w.Needs[mb] != 1024 || w.Limit[mb] <= 0 ||
			w.Used[mb]+w.Needs[mb] <= w.Limit[mb] || w.Unlock == "" {
			t.Fatalf("%s waits for %+v", id, w)
		}
		if err := json.Unmarshal([]byte(other.run(0, "app", "why", "-o", "json", id)), &again); err != nil {
			t.Fatal(err)
		}
		if again.Waits[0].Wait.Sentence() != w.Sentence() || again.Home != doc.Home {
			t.Errorf("another router says %+v, not %+v", again.Waits[0].Wait, w)
		}
		s.shows(0, "app why "+id, "(am_limit): "+w.Text, w.Unlock, "home "+string(doc.Home))
		s.shows(0, "app status "+id, w.Sentence())
		if got := diagnosticsByRPC(t, fed, id); got != w.Sentence() {
			t.Errorf("by RPC the diagnostics are %q, not %q", got, w.Sentence())
		}
	}
	if waiting < 4 {
		t.Errorf("%d of 20 applications wait for the limit of AMs: the test shows nothing", waiting)
	}
	// Lists of the router and of each ResourceManager show the same wait code.
	byRouter := waitingFor(s, ids)
	for _, id := range ids {
		w := fetchWhy(t, s, id).Waits[0].Wait
		if w == nil || byRouter[id] != w.Code {
			t.Errorf("%s: the list says that it waits for %q, and why says %+v", id, byRouter[id], w)
		}
	}
	byMembers := map[string]string{}
	for _, rm := range fed.RMs {
		maps.Copy(byMembers, waitingFor(cliClient{t, "http://" + rm.Address("web")}, ids))
	}
	if !maps.Equal(byRouter, byMembers) {
		t.Errorf("the router says %v, the members say %v", byRouter, byMembers)
	}
	var overview struct {
		Waiting []struct {
			Apps        int
			Queue, Code string
		}
	}
	res, err := http.Get(s.server + "/api/v1/overview")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&overview); err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for _, w := range overview.Waiting {
		counted[w.Queue+" "+w.Code] = w.Apps
	}
	if counted["root.default am_limit"] != waiting {
		t.Errorf("%d wait for the limit, the overview has %v", waiting, counted)
	}
	waitsAreCountedAlike(t, s)
	home := cliClient{t, "http://" + fed.RMs[0].Address("web")}
	found := false
	for _, id := range ids { // a plain ResourceManager explains too
		var out strings.Builder
		root := rootCommand()
		root.SetOut(&out)
		root.SetArgs([]string{"app", "why", id, "--server", home.server})
		if root.Execute() == nil && strings.Contains(out.String(), "am_limit") {
			found = true
		}
	}
	if !found {
		t.Error("the ResourceManager itself explains none of them")
	}
}

// waitsAreCountedAlike compares the numbers of applications of the status, the list, the queue tree and the members.
func waitsAreCountedAlike(t *testing.T, s cliClient) {
	t.Helper()
	decode := func(into any, args ...string) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.run(0, append(args, "-o", "json")...)), into); err != nil {
			t.Fatal(err)
		}
	}
	get := func(into any, path string) {
		t.Helper()
		res, err := http.Get(s.server + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	// AMs register and ask meanwhile, so all are read until two statuses in a row are equal. A view whose list is late
	// has the numbers of the members' heartbeats, so all are read again.
	var unlike string
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the views at last:", unlike)
		}
	})
	eventually(t, "all views count alike", func() bool {
		var status, after rest.OverviewDoc
		decode(&status, "status")
		if status.Apps == nil || status.Apps.Waiting == 0 {
			return false
		}
		waits := status.Apps.Waiting
		text := s.run(0, "status")
		var page rest.AppsDoc
		get(&page, "/api/v1/apps?state=waiting")
		var tree rest.QueueTreeDoc
		get(&tree, "/api/v1/queues")
		var members []rest.SubclusterDoc
		decode(&members, "subcluster", "list")
		decode(&after, "status")
		if after.Apps == nil || after.Apps.Waiting != waits || after.Apps.Running != status.Apps.Running {
			return false
		}
		var sum int64
		for _, m := range members {
			sum += m.Apps.Waiting
		}
		sentence := fmt.Sprintf("%d waiting, the oldest for ", waits)
		if status.Apps.OldestWait <= 0 || !strings.Contains(status.Sentence, sentence) || !strings.Contains(text, sentence) ||
			!strings.Contains(text, "in root.default for am_limit, the oldest for ") {
			unlike = fmt.Sprintf("%d wait; the status is %q and %s", waits, status.Sentence, text)
			return false
		}
		if int64(len(page.Applications)) != waits || sum != waits {
			unlike = fmt.Sprintf("%d wait; the list has %d, the members have %d", waits, len(page.Applications), sum)
			return false
		}
		for _, q := range tree.Queues {
			if q.Queue != "root" && q.Queue != "root.default" {
				continue
			}
			if q.Waiting != waits || q.Running != status.Apps.Running {
				unlike = fmt.Sprintf("%s: %+v, of %+v", q.Queue, q.QueueUse, status.Apps)
				return false
			}
		}
		return true
	})
}

// scraped is the sum of a figure over its labels.
func scraped(t *testing.T, address, name string) (sum float64) {
	t.Helper()
	res, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(text)) {
		if is, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && (is == name || strings.HasPrefix(is, name+"{")) {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			found, sum = true, sum+v
		}
	}
	if !found {
		t.Errorf("%s has no %s", address, name)
	}
	return sum
}

// waitingFor reads the column of a wide list.
func waitingFor(s cliClient, ids []string) map[string]string {
	s.t.Helper()
	lines := strings.Split(strings.TrimSpace(s.run(0, "app", "list", "-o", "wide")), "\n")
	from := strings.Index(lines[0], "WAITS-FOR")
	if from < 0 {
		s.t.Fatalf("no such column: %s", lines[0])
	}
	out := map[string]string{}
	for _, line := range lines[1:] {
		if id := strings.Fields(line)[0]; slices.Contains(ids, id) {
			out[id], _, _ = strings.Cut(line[min(from, len(line)):], " ")
		}
	}
	return out
}

func fetchWhy(t *testing.T, s cliClient, id string) (doc whyDoc) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.run(0, "app", "why", "-o", "json", id)), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func diagnosticsByRPC(t *testing.T, fed *federation.Federation, id string) string {
	t.Helper()
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	var f clientFlags
	if err := f.resolve(); err != nil {
		t.Fatal(err)
	}
	c := yarnrpc.NewApplicationClientProtocolClient(client, fed.Routers[0].Address("client"), hrpc.Login{User: f.user})
	r, err := c.GetApplicationReport(context.Background(),
		&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetApplicationReport().GetDiagnostics()
}
