// SPDX-License-Identifier: Apache-2.0

package dash_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
)

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// otherUnits matches sizes that are not in powers of two.
var otherUnits = regexp.MustCompile(`[0-9] ?[kKMGT]B\b`)

// firstNode returns the id of a node.
func firstNode(t *testing.T, web string) string {
	t.Helper()
	_, body := get(t, web+"/api/v1/nodes?limit=1")
	var list rest.NodesDoc
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Nodes) == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	return list.Nodes[0].ID
}

// nodeWithLogs adds a node that has a log of each first container. It returns the begin of the pages' addresses.
func nodeWithLogs(t *testing.T, f *routertest.Federation) string {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "_01_000001/"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, "/logs"):
			fmt.Fprint(w, `{"containerLogsInfo":{"containerLogInfo":[{"fileName":"stdout","fileSize":"100000"}]}}`)
		default:
			fmt.Fprint(w, "log <script>alert(1)</script>")
		}
	}))
	t.Cleanup(node.Close)
	id := creel.NodeID{Host: "127.0.0.1", Port: 1}
	port := int32(node.Listener.Addr().(*net.TCPAddr).Port)
	if err := f.Members[0].D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
		order := &rm.RegisterNode{ID: id, HTTPPort: port, Resource: creel.NewResource(1024, 1)}
		if _, err := m.RegisterNode(now, order); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	f.Until("the router has the node", func() bool {
		resp, _ := get(t, "http://"+f.Routers[0].Web+"/nodes/"+id.String())
		return resp.StatusCode == http.StatusOK
	})
	return "/nodes/" + id.String() + "/logs/"
}

// submit submits an unmanaged application in alice's name.
func submit(t *testing.T, f *routertest.Federation, name string) string {
	t.Helper()
	alice := f.As(f.Routers[0], "alice")
	made, err := alice.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId())
	_, err = alice.SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: routertest.Context(id, name),
	})
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// Each page is rendered whole, loads nothing from elsewhere and contains no inline script; input of others is
// escaped.
func TestEveryPageIsRenderedAndGuarded(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	web := "http://" + f.Routers[0].Web
	const name = `<script>alert(1)</script>"'`
	id := submit(t, f, name)
	node := firstNode(t, web)
	logsOf := nodeWithLogs(t, f)
	for path, says := range map[string]string{
		"/": "All 2 members are well", "/apps": "Running first", "/apps?group=queue&state=waiting": "By queue",
		"/apps/" + id + "?user.name=alice": "Policy <b>", "/queues": "root.default",
		"/queues?queue=root.default": "Its applications",
		"/members":                   "sc-a", "/members/sc-a": "Nodes", "/nodes?member=sc-a": "RUNNING", "/nodes/" + node + "?kind=guaranteed": "guaranteed",
		logsOf + strings.Replace(id, "application", "container", 1) + "_01_000001?user.name=alice": "log &lt;script&gt;alert(1)&lt;/script&gt;",
		logsOf + strings.Replace(id, "application", "container", 1) + "_01_000002?user.name=alice": "Its logs are not known: ",
		"/policies":              "Queues without",
		"/policies/root.default": "No document applies",
		"/policies/*":            "Policy of *", "/rebalancer": "No rebalancer", "/operations": "Readiness",
		"/events": "No event matches", "/events?kind=plan&since=24h": "No event matches",
		"/members/sc-a/events": "Events of sc-a", "/queues/root.default/events": "Events of root.default",
		"/apps/" + id + "/events": "Events of &lt;script&gt;",
	} {
		resp, body := get(t, web+path)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, says) ||
			!strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Errorf("%s: %s, without %q in %d bytes:\n%s", path, resp.Status, says, len(body), body)
		}
		if found := otherUnits.FindString(body); found != "" {
			t.Errorf("%s has %q: sizes are MiB and GiB", path, found)
		}
		if csp := resp.Header.Get(
			"Content-Security-Policy",
		); !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, "style=") ||
			strings.Contains(strings.ReplaceAll(body, `href="`+web+`/"`, ""), `="http`) && !strings.Contains(path, id) {
			t.Errorf("%s has a script, a style or a link to elsewhere in it:\n%s", path, body)
		}
		if strings.HasPrefix(path, "/apps/"+id+"?") && !strings.Contains(body, "&lt;script&gt;alert(1)&lt;/script&gt;") {
			t.Errorf("%s does not show the name as text", path)
		}
	}
	for path, want := range map[string]int{
		"/members/nobody": http.StatusNotFound, "/nodes/nosuch:1": http.StatusNotFound,
		"/nodes/" + node + "?kind=x": http.StatusBadRequest, logsOf + "x": http.StatusBadRequest,
		"/apps/x":                  http.StatusBadRequest,
		"/apps/application_1_0001": http.StatusNotFound,
		"/apps?cursor=x":           http.StatusBadRequest,
		"/events?kind=x":           http.StatusBadRequest, "/events?since=soon": http.StatusBadRequest,
		"/events?before=x": http.StatusBadRequest, "/dash/stream?at=http://x/": http.StatusBadRequest,
	} {
		if resp, body := get(t, web+path); resp.StatusCode != want {
			t.Errorf("%s: %s, want %d:\n%s", path, resp.Status, want, body)
		}
	}
	for from, to := range map[string]string{
		"/cluster": "/", "/cluster/app/" + id: "/apps/" + id, "/cluster/apps/RUNNING": "/apps", "/cluster/nodes": "/nodes",
	} {
		if resp, _ := get(t, web+from); resp.Request.URL.Path != to || resp.StatusCode != http.StatusOK {
			t.Errorf("%s leads to %s, %s", from, resp.Request.URL, resp.Status)
		}
	}
}

// A stream sends the parts of a page that change, and nothing that the viewer may not see.
func TestStreamSendsChanges(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	resp, err := http.Get("http://" + f.Routers[0].Web + "/dash/stream?at=" + "%2Fapps%3Fq%3Dhello")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := submit(t, f, "hello")
	var heard strings.Builder
	buffer := make([]byte, 64<<10)
	for !strings.Contains(heard.String(), id) {
		n, err := resp.Body.Read(buffer)
		if err != nil {
			t.Fatalf("%v after\n%s", err, heard.String())
		}
		heard.Write(buffer[:n])
	}
	if !strings.Contains(heard.String(), `event: part`) || !strings.Contains(heard.String(), `"part":"apps"`) {
		t.Errorf("heard\n%s", heard.String())
	}
}

// A page changes after it was sent, and before its stream begins or begins again: the stream's first round has the
// change. It has nothing if the page is as it was.
func TestStreamBeginsWhereThePageEnds(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	web := "http://" + f.Routers[0].Web
	shown := func(path string) (body, digest string) {
		_, body = get(t, web+path)
		m := regexp.MustCompile(`data-parts="([0-9a-f]+)"`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("%s has no digest:\n%s", path, body)
		}
		return body, m[1]
	}
	// first is the first round of a stream.
	first := func(path, had, last string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			web+"/dash/stream?"+url.Values{"at": {path}, "had": {had}}.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Last-Event-ID", last)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var heard strings.Builder
		for lines := bufio.NewScanner(resp.Body); lines.Scan() && !strings.HasPrefix(lines.Text(), "data: 200"); {
			heard.WriteString(lines.Text() + "\n")
		}
		return heard.String()
	}
	_, before := shown("/apps?q=hello")
	id := submit(t, f, "hello")
	f.Until("the page has the application", func() bool { body, _ := shown("/apps?q=hello"); return strings.Contains(body, id) })
	for _, by := range [][2]string{{before, ""}, {"", before}, {"", ""}} {
		if got := first("/apps?q=hello", by[0], by[1]); !strings.Contains(got, "event: part") || !strings.Contains(got, id) {
			t.Errorf("after %q the first round is\n%s", by, got)
		}
	}
	_, same := shown("/policies")
	if got := first("/policies", same, ""); strings.Contains(got, "event: part") || !strings.Contains(got, "id: "+same) {
		t.Errorf("nothing has changed, and the first round is\n%s", got)
	}
}

// The Operations page lists the live daemons, by page and kind, each with its web port as a link; it marks versions
// that are not the router's own, and shows why a daemon is not ready.
func TestOperationsListsTheDaemonsOfTheFederation(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 2})
	keep := func(kind, name, version, notReady string) {
		t.Helper()
		err := f.Store.KeepDaemon(t.Context(), statestore.Daemon{
			Kind: kind, Name: name, Host: "h<1>", PID: 1, Version: version, NotReady: notReady,
			Addresses: map[string]string{"web": name + ".example:8099", "proxy": name + ".example:8049"},
		}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		keep("proxy", fmt.Sprintf("p%02d", i), "v0.0.1", "")
	}
	keep("rebalancer", "b0", "v0.0.1", "view: it was last read <never>")
	web := "http://" + f.Routers[0].Web
	page := func(path string, has, lacks []string) {
		t.Helper()
		for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			_, body := get(t, web+path)
			absent := slices.DeleteFunc(slices.Clone(has), func(s string) bool { return strings.Contains(body, s) })
			extra := slices.DeleteFunc(slices.Clone(lacks), func(s string) bool { return !strings.Contains(body, s) })
			if len(absent)+len(extra) == 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s lacks %q and has %q:\n%s", path, absent, extra, body)
			}
		}
	}
	sum := []string{`?kind=proxy">60</a>`, `?kind=router">2</a>`, `?kind=rebalancer">1</a>`}
	page("/operations", append(slices.Clone(sum),
		`<th scope="row">p00</th>`, `<th scope="row">p49</th>`, `50 of 63 are here`, `Their versions differ`,
		`href="http://p00.example:8099/readyz?verbose"`, `proxy p00.example:8049`, `h&lt;1&gt;`,
		`<span class="state warn">v0.0.1</span>`, `creel system`,
	), []string{`<th scope="row">p50</th>`, `<th scope="row">b0</th>`})
	page("/operations?cursor=proxy+p49+h%3C1%3E+1", append(slices.Clone(sum),
		`<th scope="row">p50</th>`, `view: it was last read &lt;never&gt;`,
		`href="http://`+f.Routers[0].Web+`/"`, `href="http://`+f.Routers[1].Web+`/"`,
	), []string{`<th scope="row">p49</th>`, `are here`})
	page("/operations?kind=router", append(slices.Clone(sum),
		`href="http://`+f.Routers[0].Web+`/"`, `creel system --kind router`, `<span class="state good">ready</span>`,
	), []string{`<th scope="row">p00</th>`, `<th scope="row">b0</th>`, `Their versions differ`, `<span class="state warn">v`})
}

// Pages link to Grafana if its address is set, with the member of the page selected.
func TestPagesLinkToGrafana(t *testing.T) {
	const set = "creel.router.grafana-url=https://grafana.example/d/creel?orgId=2"
	for _, settings := range [][]string{nil, {set}} {
		f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1, Settings: settings})
		_, overview := get(t, "http://"+f.Routers[0].Web+"/")
		_, member := get(t, "http://"+f.Routers[0].Web+"/members/sc-a")
		inNav := strings.Contains(overview, `<a href="https://grafana.example/d/creel?orgId=2">Grafana</a>`)
		selected := strings.Contains(member, `href="https://grafana.example/d/creel?orgId=2&amp;var-member=sc-a"`)
		if want := len(settings) > 0; inNav != want || selected != want {
			t.Errorf("with %q: navigation %t, member's page %t", settings, inNav, selected)
		}
	}
}

// A member's page has a button on each of its hosts: it drains the host, and takes it in again.
func TestMemberPageDrainsItsHosts(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1})
	page := "http://" + f.Routers[0].Web + "/members/sc-a"
	change := regexp.MustCompile(`data-method="(PUT|DELETE)" data-path="(/api/v1/drains/[^"]+)"`)
	var changed string
	for round, want := range []string{"PUT", "DELETE"} {
		var found []string
		f.Until("the button of the state is there", func() bool {
			_, body := get(t, page)
			for _, m := range change.FindAllStringSubmatch(body, -1) {
				if (round == 0 || m[2] == changed) && m[1] == want {
					found = m
				}
			}
			return found != nil
		})
		changed = found[2]
		path := html.UnescapeString(changed) + "&user.name=root"
		req, err := http.NewRequestWithContext(t.Context(), found[1], "http://"+f.Routers[0].Web+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s", found[1], path, resp.Status)
		}
	}
}
