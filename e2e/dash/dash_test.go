// SPDX-License-Identifier: Apache-2.0

// Package dash proves the dashboard in a real browser: Chromium, driven by its
// DevTools protocol, looks at the pages of routers over members with simulated nodes,
// over a hundred members that the store knows, and over none.
package dash

import (
	"encoding/json"
	"fmt"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

// api reads a document of the router, as scripts do.
func api[T any](t *testing.T, web, path string) (doc T) {
	t.Helper()
	resp, err := http.Get("http://" + web + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s, %v", path, resp.Status, body, err)
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// submit submits an unmanaged application.
func submit(t *testing.T, f *routertest.Federation, user, name string) creel.ApplicationID {
	t.Helper()
	as := f.As(f.Routers[0], user)
	made, err := as.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId())
	if _, err := as.SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: routertest.Context(id, name),
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

// run registers an application's AM and takes containers.
func run(t *testing.T, f *routertest.Federation, id creel.ApplicationID, containers int) {
	t.Helper()
	am := amClient(t, f, id)
	if _, err := am.RegisterApplicationMaster(
		t.Context(),
		&pb.RegisterApplicationMasterRequestProto{Host: new("here"), RpcPort: new(int32(1)), TrackingUrl: new("")},
	); err != nil {
		t.Fatal(err)
	}
	answer, err := am.Allocate(
		t.Context(),
		&pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: []*pb.ResourceRequestProto{{
			Priority: pb.FromPriority(1), ResourceName: new("*"),
			Capability: pb.FromResource(creel.NewResource(512, 1)), NumContainers: new(int32(containers)),
		}}},
	)
	if err != nil || len(answer.GetAllocatedContainers()) != containers {
		t.Fatalf("%d containers, %v", len(answer.GetAllocatedContainers()), err)
	}
}

// The pages show the API's data and update themselves as applications come, run and end, as a member falls silent and
// as the router dies.
func TestTheDashboardLives(t *testing.T) {
	f := routertest.Start(t, routertest.Options{
		Members: 3, Routers: 1, OpenFor: 50 * time.Millisecond, Change: func(_ int, c *rmserver.Config) {
			c.ACLs = true
			c.Machine.Queues.Root.Admin = queues.ACL{} // else everybody may look into every application
			for i := range c.Machine.Queues.Root.Children {
				c.Machine.Queues.Root.Children[i].Admin = queues.ACL{}
			}
		},
	})
	r := f.Routers[0]
	b := newBrowser(t)
	b.open("http://" + r.Web + "/")
	b.untilLive()
	b.until("the overview tells of three members", func() bool {
		return b.text("#sentence") == api[rest.OverviewDoc](t, r.Web, "/api/v1/overview").Sentence &&
			strings.HasPrefix(b.text("#sentence"), "All 3 members are well. 0 applications run on 6 nodes")
	})
	if n := b.count("#matrix a"); n != 3 {
		t.Errorf("%d members in the matrix", n)
	}
	if line := b.text("#command"); line != "creel status" {
		t.Errorf("the command is %q", line)
	}

	// Applications come while the list is looked at. A name is no markup.
	const name = `<img src=x onerror="document.title='fooled'">`
	b.open("http://" + r.Web + "/apps?user.name=alice")
	b.untilLive()
	waits, id := submit(t, f, "bob", "waits"), submit(t, f, "alice", name)
	run(t, f, id, 5)
	row := func(id creel.ApplicationID) []string {
		for _, r := range b.rows("#apps") {
			if len(r) > 11 && r[11] == id.String() {
				return r
			}
		}
		return make([]string, 12)
	}
	b.until("the list shows the application that runs", func() bool { return row(id)[1] == "RUNNING" })
	b.until("and the other", func() bool { return row(waits)[1] == "ACCEPTED" })
	if got := row(id); got[0] != name || got[2] != "alice" || got[3] != "root.default" || got[7] != "5" {
		t.Errorf("the application: %q", got)
	}
	if rows := b.rows("#apps"); rows[0][11] != id.String() {
		t.Errorf("what runs does not come first: %q", rows)
	}
	told := api[rest.AppsDoc](t, r.Web, "/api/v1/apps?user.name=alice")
	for i, raw := range told.Applications {
		var a apps.Row
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		if got := b.rows("#apps")[i]; got[11] != a.ID || got[0] != a.Name || got[5] != string(a.Home) {
			t.Errorf("row %d of the page is %q, of the API %+v", i, got, a)
		}
	}

	// The search is reached by /, and stands in the address.
	b.press("/")
	if at := b.eval("document.activeElement.id"); at != "search" {
		t.Errorf("/ goes to %q", at)
	}
	b.typeInto("#search", id.String())
	b.submit("form.search")
	b.until("the search has found it", func() bool { return len(b.rows("#apps")) == 1 && row(id)[11] != "" })
	if at := b.eval("location.search"); at != "?q="+id.String() {
		t.Errorf("the address is %q", at)
	}

	// Its own page, to its user: the headline, where it is, why it is there.
	app := "/apps/" + id.String()
	b.open("http://" + r.Web + app + "?user.name=alice")
	b.untilLive()
	why := api[rest.WhyDoc](t, r.Web, "/api/v1"+app+"/why?user.name=alice")
	home := string(why.Home)
	if got := b.rows("#spread"); got[0][0] != home || got[0][2] != "home" || !strings.Contains(got[0][1], "RUNNING") {
		t.Errorf("spread: %q, home %s", got, home)
	}
	if got := b.rows(
		"#candidates",
	); len(got) != 3 || !strings.HasPrefix(got[0][0], home) ||
		!strings.Contains(got[0][0], "chosen") {
		t.Errorf("candidates: %q", got)
	}
	if text := b.text("#because"); !strings.Contains(text, why.Tries[0].Reason.Because) {
		t.Errorf("because: %q", text)
	}
	if text := b.text(
		"#timeline",
	); !strings.Contains(text, "received by a router") ||
		!strings.Contains(text, "submitted at "+home) {
		t.Errorf("timeline: %q", text)
	}
	if got := b.rows("#containers"); len(got) != 5 {
		t.Errorf("containers: %q", got)
	}
	b.axe("one application")

	// A user who may not view it does not see the reason, as in the API.
	b.open("http://" + r.Web + app + "?user.name=mallory")
	if text := b.text("#because") + b.text("#candidates"); text != "" {
		t.Errorf("mallory is told %q", text)
	}
	if text := b.text("#note"); !strings.Contains(text, "not permitted") {
		t.Errorf("mallory is told nothing of rights: %q", text)
	}
	// His kill is refused in words; alice's is confirmed and done.
	b.confirm("#kill")
	b.until("mallory is refused", func() bool { return b.text("dialog .warning") != "" })

	// A member falls silent: its last data stays, with its age.
	b.open("http://" + r.Web + "/apps?user.name=alice")
	b.untilLive()
	f.Member(why.Home).Web.Cut()
	b.until("the page names who is missing", func() bool { return strings.Contains(b.text(".partial"), home) })
	if got := row(id); !strings.Contains(got[1], "ago") {
		t.Errorf("what is old is not marked: %q", got)
	}
	f.Member(why.Home).Web.Mend()
	b.until("the application is back", func() bool { return row(id)[1] == "RUNNING" && b.text(".partial") == "" })

	b.open("http://" + r.Web + app + "?user.name=alice")
	b.untilLive()
	b.confirm("#kill")
	b.until(
		"the page shows the end",
		func() bool { return strings.HasPrefix(b.text("#headline"), "It has ended: KILLED") },
	)
	if title := b.eval("document.title"); title != name+" · creel" {
		t.Errorf("a name was taken for markup: the title is %q", title)
	}
	b.open("http://" + r.Web + "/")
	b.untilLive()
	b.until("the sums follow", func() bool {
		return b.text("#containers") == "0" && b.text("#running") == "0" && b.text("#pending") == "1"
	})
	first := api[rest.OverviewDoc](t, r.Web, "/api/v1/overview").Waiting[0]
	if text := b.text("#waits"); !strings.Contains(text, waits.String()) || first.Code == "" ||
		!strings.Contains(text, first.Code) {
		t.Errorf("what waits: %q, by the API %+v", text, first)
	}
	b.quiet(" 403 ") // mallory's kill

	// The router dies: the page keeps its data and marks it as old.
	r.Kill()
	b.until("the page says that the router is gone", func() bool {
		return strings.HasPrefix(b.text("#status"), "not answering since")
	})
	if n := b.count("#matrix a"); n != 3 {
		t.Errorf("the page forgot: %d members", n)
	}
}

// Every page, with three members and two queues, shows the API's data. Everything on it is accessible by keyboard and
// screen reader, in light and dark mode.
func TestEveryPageMatchesTheAPI(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3, Routers: 1})
	web := f.Routers[0].Web
	for _, d := range []string{`{"home":{"policy":"balanced"}}`, `{"home":{"policy":"uniform"}}`} {
		now, err := f.Store.PolicyHistory(t.Context(), "root.default", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := statestore.PolicyWrite{Queue: "root.default", Document: []byte(d), Author: "ann", Comment: "to try"}
		if len(now) > 0 {
			w.Expect = now[0].Version
		}
		if _, err := f.Store.PutPolicy(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	id := submit(t, f, "alice", "one")
	run(t, f, id, 3)
	tree := func() rest.QueueTreeDoc { return api[rest.QueueTreeDoc](t, web, "/api/v1/queues") }
	f.Until("the queue's use is told", func() bool {
		doc := tree()
		i := slices.IndexFunc(doc.Queues, func(q rebalancerQueue) bool { return q.Queue == "root.default" })
		return i >= 0 && doc.Queues[i].UsedPercent > 0 && doc.Queues[i].Running == 1
	})
	b := newBrowser(t)
	base := "http://" + web

	b.open(base + "/apps?user.name=alice")
	b.untilLive()
	b.until("the application is listed", func() bool {
		rows := b.rows("#apps")
		return len(rows) > 0 && rows[0][0] == "one" && len(rows[0]) > 11 && rows[0][11] == id.String()
	})
	b.axe("applications")
	b.screenshot("applications")
	// By the keyboard alone: past the navigation to the list, and to the application.
	b.press(kb.Tab)
	if at := b.eval("document.activeElement.className"); at != "skip" {
		t.Errorf("the first stop is %q", at)
	}
	b.press(kb.Enter)
	if at := b.eval("document.activeElement.id"); at != "main" {
		t.Errorf("the way past the navigation leads to %q", at)
	}
	for stops := 0; b.eval(`document.activeElement.getAttribute("href") ?? ""`) != "/apps/"+id.String(); stops++ {
		if b.press(kb.Tab); stops == 24 {
			t.Fatalf("after %d stops the focus is at %q", stops, b.eval("document.activeElement.outerHTML"))
		}
	}
	b.press(kb.Enter)
	b.until("the application's page is there", func() bool { return b.eval("location.pathname") == "/apps/"+id.String() })
	b.untilLive()
	b.screenshot("application")
	b.open(base + "/apps?group=queue&user.name=alice")
	if got := b.rows("#groups"); len(got) != 1 || got[0][0] != "root.default" || got[0][1] != "1" {
		t.Errorf("groups: %q", got)
	}
	b.axe("applications by queue")

	b.open(base + "/queues?queue=root.default")
	doc := tree()
	rows := b.rows("#queues")
	for _, q := range doc.Queues {
		i := slices.IndexFunc(rows, func(r []string) bool { return r[0] == string(q.Queue) })
		if i < 0 || rows[i][2] != percent(q.UsedPercent) || rows[i][4] != percent(q.Percent) ||
			rows[i][6] != fmt.Sprint(q.Running) {
			t.Errorf("queue %+v is not so in %q", q, rows)
		}
	}
	if n := b.count("#queues tr.part"); n != 4 {
		t.Errorf("%d parts of the open queue", n)
	}
	b.axe("queues")
	b.screenshot("queues")

	b.open(base + "/members")
	members := api[rest.SubclustersDoc](t, web, "/api/v1/subclusters").Subclusters
	for i, row := range b.rows("#members") {
		if row[0] != string(members[i].ID) || row[1] != members[i].State ||
			row[2] != fmt.Sprint(members[i].Metrics.ActiveNodes) {
			t.Errorf("member %d is %q", i, row)
		}
	}
	b.axe("members")
	b.screenshot("members")
	b.open(base + "/members/sc-a?state=RUNNING")
	nodes := api[rest.NodesDoc](t, web, "/api/v1/nodes?subcluster=sc-a").Nodes
	if got := b.rows("#nodes"); len(got) != 2 || got[0][0] != nodes[0].ID || got[1][0] != nodes[1].ID {
		t.Errorf("nodes: %q", got)
	}
	b.axe("one member")
	host, _, _ := strings.Cut(nodes[0].ID, ":")
	b.open(base + "/members/sc-a?user.name=root")
	b.confirm("#nodes tr:first-child form.change")
	b.until("the host is drained", func() bool {
		got := b.rows("#drained")
		return len(got) == 1 && got[0][0] == host && strings.Contains(got[0][3], "by root")
	})
	b.axe("a member with a drained host")
	b.confirm("#drained form.change")
	b.until("the host is in again", func() bool { return b.count("#drained") == 0 && len(b.rows("#nodes")) == 2 })

	b.open(base + "/policies")
	if got := b.rows(
		"#policies",
	); len(got) != 1 || got[0][0] != "root.default" || got[0][1] != "uniform" ||
		got[0][4] != "ann" {
		t.Errorf("policies: %q", got)
	}
	b.axe("policies")
	b.open(base + "/policies/root.default?user.name=root")
	if diff := b.text(
		"#diff",
	); !strings.Contains(diff, `-     "policy": "balanced"`) ||
		!strings.Contains(diff, `+     "policy": "uniform"`) {
		t.Errorf("diff: %q", diff)
	}
	b.eval(`String(document.getElementById("fields").open = true)`)
	if got := b.rows("#fields table"); len(got) < 7 || got[0][0] != "home" || got[1][0] != "home.policy" ||
		!strings.Contains(got[1][1], "balanced") {
		t.Errorf("what a document may say: %q", got)
	}
	b.typeInto("#draft", `{"home":{"policy":"priority","weights":{"sc-b":1}}}`)
	b.submit("form.draft")
	b.until("the preview is there", func() bool { return b.text("#preview") != "" })
	if text := b.text("#preview"); !strings.HasPrefix(text, "Of 1 submissions") {
		t.Errorf("preview: %q", text)
	}
	b.axe("one policy")
	b.screenshot("policy")
	if text := b.text("#h-preview ~ .diff"); !strings.Contains(text, `-     "policy": "uniform"`) ||
		!strings.Contains(text, `+     "policy": "priority"`) {
		t.Errorf("what the draft changes: %q", text)
	}
	// Another administrator was faster: nothing is overwritten.
	held, err := f.Store.PolicyHistory(t.Context(), "root.default", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store.PutPolicy(t.Context(), statestore.PolicyWrite{
		Queue: "root.default", Document: []byte(`{"home":{"policy":"hash"}}`), Author: "eve", Expect: held[0].Version,
	}); err != nil {
		t.Fatal(err)
	}
	b.typeInto("#apply input", "to the west")
	b.confirm("#apply")
	b.until("the older draft is refused", func() bool { return b.text("dialog .warning") != "" })
	newest := func() rest.PolicyDoc {
		return api[rest.PoliciesDoc](t, web, "/api/v1/policies/root.default/history?limit=1").Policies[0]
	}
	if p := newest(); p.Author != "eve" {
		t.Errorf("after a refused draft the newest is %+v", p)
	}
	b.do(chromedp.Reload())
	b.typeInto("#apply input", "to the west")
	b.confirm("#apply")
	b.until("the draft is in force", func() bool { p := newest(); return p.Author == "root" && p.Home == "priority" })
	// The page reloads after its change succeeded; navigation before that would be aborted.
	b.until("the page is loaded anew", func() bool {
		return b.eval(`String(document.readyState === "complete" && !document.querySelector("dialog[open]"))`) == "true"
	})
	if p := newest(); p.Comment != "to the west" {
		t.Errorf("the comment is %q", p.Comment)
	}
	// A draft that the server does not understand is reported and cannot be applied.
	b.open(base + "/policies/root.default?user.name=root&draft=" + `{"home":{"policy":"nonsense"}}`)
	if text := b.text("#preview-problem"); !strings.Contains(text, "balanced") || b.count("#apply") != 0 {
		t.Errorf("of nonsense the page says %q", text)
	}
	b.open(base + "/policies/root.default?user.name=bob&draft=" + `{"home":{"policy":"uniform"}}`)
	if text := b.text("#preview-problem"); !strings.Contains(text, "may not see") {
		t.Errorf("bob previews: %q", text)
	}

	b.open(base + "/rebalancer?user.name=root")
	if text := b.text("#sentence"); !strings.HasPrefix(text, "No rebalancer has published") {
		t.Errorf("rebalancer: %q", text)
	}
	b.axe("rebalancer")
	b.screenshot("rebalancer")
	b.confirm("#pause")
	b.until(
		"plans are paused",
		func() bool { return strings.HasPrefix(b.text("#sentence"), "Plans are paused by root") },
	)

	b.open(base + "/operations?user.name=root")
	if got := b.rows("#readiness"); len(got) < 3 || got[0][0] != "serving" || got[0][1] != "ready" {
		t.Errorf("readiness: %q", got)
	}
	b.until("the router is listed", func() bool { // its record appears a moment after its start
		if got := b.rows("#daemons"); len(got) > 0 && got[0][2] == "router" && got[0][1] == "ready" {
			return true
		}
		b.do(chromedp.Reload())
		return false
	})
	if text := b.text("#settings"); !strings.Contains(text, "yarn.admin.acl") {
		t.Errorf("settings: %q", text)
	}
	b.axe("operations")
	b.screenshot("operations")
	b.open(base + "/operations?user.name=bob")
	if text := b.text("#settings"); text != "" {
		t.Errorf("bob sees settings: %q", text)
	}

	eventPages(t, b, f, id)

	// On a narrow screen nothing is wider than it.
	b.narrow()
	for _, path := range []string{
		"/", "/apps", "/apps/" + id.String(), "/queues", "/members", "/members/sc-a", "/policies", "/rebalancer",
		"/operations", "/events", "/members/sc-b/events",
	} {
		b.open(base + path)
		if wide := b.eval("String(document.documentElement.scrollWidth)"); wide != "360" {
			t.Errorf("%s is %s wide on a screen of 360", path, wide)
		}
	}
	b.quiet("409 (Conflict)")
}

// eventPages looks at the events of the federation, of a member, a queue and an application.
func eventPages(t *testing.T, b *browser, f *routertest.Federation, id creel.ApplicationID) {
	t.Helper()
	base := "http://" + f.Routers[0].Web
	record := func(e statestore.Event) {
		t.Helper()
		e.Key, e.Result = e.Subject+e.After, statestore.EventDone
		if err := f.Store.AppendEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("long ", 40)
	record(statestore.Event{Kind: statestore.EventMember, Subject: "sc-b", Before: "active", After: "suspect"})
	record(statestore.Event{Kind: statestore.EventPriority, Subject: id.String(), User: "alice", Before: "0", After: "7"})
	record(statestore.Event{Kind: statestore.EventMend, Subject: "root.default", User: "ann", After: long})
	b.open(base + "/events?user.name=alice")
	b.untilLive()
	newest := func(path string) []string {
		doc := api[rest.EventsDoc](t, f.Routers[0].Web, path)
		e := doc.Events[len(doc.Events)-1]
		return []string{string(e.Kind), e.Subject, e.User}
	}
	b.until("the newest event is first", func() bool {
		rows := b.rows("#events")
		return len(rows) > 2 && slices.Equal(rows[0][1:4], newest("/api/v1/events?user.name=alice"))
	})
	b.axe("events")
	record(statestore.Event{Kind: statestore.EventMember, Subject: "sc-b", Before: "suspect", After: "active"})
	b.until("a later event appears", func() bool { return b.rows("#events")[0][5] == "active" })
	b.eval(`document.querySelector("select[name=kind]").value = "member"; ""`)
	b.submit("main form.filter")
	b.until("only members' events are listed", func() bool {
		rows := b.rows("#events")
		return len(rows) >= 2 && !slices.ContainsFunc(rows, func(r []string) bool { return r[1] != "member" })
	})
	if line := b.text("#command"); line != "creel events --kind member" {
		t.Errorf("the command is %q", line)
	}
	for subject, page := range map[string]string{
		"sc-b": "/members/sc-b", "root.default": "/queues?queue=root.default", id.String(): "/apps/" + id.String(),
	} {
		b.open(base + "/events?subject=" + subject)
		b.until(subject+" has events", func() bool { return b.count("#events tbody th a") > 0 })
		b.eval(`document.querySelector("#events tbody th a").click(); ""`)
		b.until(subject+" leads to its page", func() bool { return b.eval("location.pathname + location.search") == page })
		tab := ".tabs a:not([aria-current])"
		if subject == "root.default" {
			tab = `a[href="/queues/root.default/events"]`
		}
		b.until("the page links its events", func() bool { return b.count(tab) == 1 })
		b.eval(`document.querySelector(` + strconv.Quote(tab) + `).click(); ""`)
		b.until("and on to its events", func() bool { return strings.HasSuffix(b.eval("location.pathname"), "/events") })
		for _, r := range b.rows("#events") {
			if r[2] != subject {
				t.Errorf("the events of %s have %q", subject, r)
			}
		}
		if here := b.text(".tabs a[aria-current]"); here != "Events" {
			t.Errorf("%s: the tab here is %q", subject, here)
		}
	}
}

func percent(v float64) string { return fmt.Sprintf("%.1f%%", v) }

// amClient speaks for an unmanaged application with the token of its report.
func amClient(
	t *testing.T,
	f *routertest.Federation,
	id creel.ApplicationID,
) yarnrpc.ApplicationMasterProtocolClient {
	t.Helper()
	home, err := f.Store.Home(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var am token.Token
	f.Until("the AM may register", func() bool {
		report, err := f.As(f.Routers[0], "alice").
			GetApplicationReport(t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)})
		if err != nil {
			t.Fatal(err)
		}
		am = token.FromProto(report.GetApplicationReport().GetAmRmToken())
		return len(am.Identifier) > 0
	})
	return yarnrpc.NewApplicationMasterProtocolClient(
		f.RPC,
		f.Member(home).D.Addresses().Scheduler,
		hrpc.Login{
			Credential: &hrpc.Credential{
				Identifier: am.Identifier,
				Password:   am.Password,
				Kind:       am.Kind,
				Service:    am.Service,
			},
		},
	)
}
