// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/apps"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// overMembers serves the router's documents over members with the given handlers. statuses returns active members
// with such handlers.
func statuses(t testing.TB, answers ...http.HandlerFunc) (all []subcluster.Status) {
	t.Helper()
	for i, answer := range answers {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
		m.Addresses.Web = s.Listener.Addr().String()
		all = append(all, m)
	}
	return all
}

func overMembers(t testing.TB, members ...http.HandlerFunc) *httptest.Server {
	t.Helper()
	return overStatuses(t, statuses(t, members...))
}

// overStatuses serves the router's documents over a view of these members.
func overStatuses(t testing.TB, members []subcluster.Status) *httptest.Server {
	t.Helper()
	_, web := serve(t, members, rest.Config{Started: time.Now()})
	return web
}

// fedBy serves them by a router to which members publish changes. warm brings its list of applications up to date.
func fedBy(t testing.TB, members ...http.HandlerFunc) (web *httptest.Server, warm func()) {
	t.Helper()
	h, web := serve(t, statuses(t, members...), rest.Config{
		Started: time.Now(), User: "creel", StaticUser: "dr.who",
		Allows: func(user string) func(acl string) bool {
			return func(acl string) bool { return slices.Contains(strings.Split(acl, ","), user) }
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Applications().Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return web, func() { fetch(t, web.URL+"/api/v1/apps?limit=1", new(rest.AppsDoc)) }
}

func serve(t testing.TB, members []subcluster.Status, c rest.Config) (*rest.Handler, *httptest.Server) {
	t.Helper()
	h, mux := handlerOver(t, members, c, remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return h, web
}

// handlerOver makes a router's web service that asks the members by such a pool.
func handlerOver(
	t testing.TB,
	members []subcluster.Status,
	c rest.Config,
	calls remote.Config,
) (*rest.Handler, http.Handler) {
	view := subcluster.NewView(time.Now(), members, nil)
	pool := remote.NewPool(calls)
	t.Cleanup(func() { pool.Close() })
	core := server.New(server.Config{
		View: func() *subcluster.View { return view }, Pool: pool,
		Members: func(m *remote.Member) server.Member { return client.Of(m) },
	})
	mux := chi.NewRouter()
	h := rest.New(core, c)
	h.Mount(mux)
	return h, mux
}

// Members send a router the changes of their applications since its last request. It shows each viewer the whole
// list, with guarded fields where the viewer may see them. Forgotten applications disappear, and no viewer costs a
// member a call.
func TestViewersShareMemberChanges(t *testing.T) {
	var mu sync.Mutex
	calls, from := 0, []string{}
	web, warm := fedBy(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/apps/changes" || q.Get("user.name") != "creel" {
			t.Errorf("the member is asked %s", r.URL)
		}
		from = append(from, q.Get("since"))
		if q.Get("since") == "" {
			io.WriteString(w, `{"at":"l-1","whole":true,"apps":[
				{"id":"application_1_0001","user":"alice","queue":"root.a","state":"RUNNING","started":5,"containers":3,"viewers":"ann"},
				{"id":"application_1_0002","user":"bob","queue":"root.b","state":"RUNNING","started":6,"containers":4,"viewers":""},
				{"id":"application_1_0003","user":"bob","queue":"root.b","state":"FINISHED","started":2,"viewers":"*"},
				{"id":"application_1_0004","user":"zoe","queue":"root.z","state":"ACCEPTED","started":1,"viewers":"yan","hidden":true}]}`)
			return
		}
		io.WriteString(w, `{"at":"l-2","whole":false,"gone":["application_1_0003"],"apps":[
			{"id":"application_1_0002","user":"bob","queue":"root.b","state":"FINISHED","started":6,"finished":9,"viewers":""}]}`)
	})
	list := func(user string) (doc rest.AppsDoc, rows []apps.Row) {
		fetch(t, web.URL+"/api/v1/apps?user.name="+user, &doc)
		for _, raw := range doc.Applications {
			var row apps.Row
			if err := json.Unmarshal(raw, &row); err != nil || row.Viewers != "" {
				t.Errorf("%s, %v", raw, err)
			}
			rows = append(rows, row)
		}
		return doc, rows
	}
	warm()
	for user, want := range map[string]struct{ containers, shown int64 }{
		"alice": {3, 2}, "ann": {3, 2}, "bob": {4, 2}, "mallory": {0, 1}, "": {0, 1},
	} {
		doc, rows := list(user)
		if len(rows) == 2 { // the first change has arrived already
			continue
		}
		shown := int64(0)
		for _, a := range rows {
			if a.Started > 0 {
				shown++
			}
		}
		if len(rows) != 3 || doc.Matching.Running != 2 || doc.Matching.Containers != want.containers ||
			shown != want.shown && user != "bob" || rows[0].ID != "application_1_0002" {
			t.Errorf("%s sees %+v, counts %+v", user, rows, doc.Matching)
		}
	}
	// The order by a guarded field does not reveal it.
	var sorted rest.AppsDoc
	fetch(t, web.URL+"/api/v1/apps?sort=containers&fields=id&user.name=mallory", &sorted)
	if len(sorted.Applications) == 3 && string(sorted.Applications[0]) != `{"id":"application_1_0002"}` {
		t.Errorf("mallory learns from their order which has more containers: %s", sorted.Applications)
	}
	for user, wants := range map[string]bool{"zoe": true, "yan": true, "mallory": false, "": false} {
		doc, rows := list(user)
		listed := slices.ContainsFunc(rows, func(a apps.Row) bool { return a.ID == "application_1_0004" })
		var over rest.OverviewDoc
		fetch(t, web.URL+"/api/v1/overview?user.name="+user, &over)
		if listed != wants || doc.Matching.Waiting == 1 != wants || len(over.Waiting) != 1 ||
			over.Waiting[0].Example == "application_1_0004" != wants {
			t.Errorf("%q: an application that is hidden from others is listed %t: %+v, waiting %+v", user, listed, doc.Matching,
				over.Waiting)
		}
	}
	// A page is found by its cursor though the viewer may not know when it began.
	var page rest.AppsDoc
	fetch(t, web.URL+"/api/v1/apps?limit=1&user.name=mallory", &page)
	if page.Next == "" || strings.Count(page.Next, ".") != 1 {
		t.Errorf("the cursor is %q", page.Next)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, rows := list("bob")
		if len(rows) == 2 && rows[1].ID == "application_1_0002" && rows[1].Finished == 9 {
			break
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("what changed is not shown: %+v", rows)
		}
	}
	began := time.Now()
	mu.Lock()
	before := calls
	mu.Unlock()
	for i := range 100 {
		list(fmt.Sprintf("user%d", i))
	}
	mu.Lock()
	defer mu.Unlock()
	if most := 2 + int(time.Since(began)/time.Second); calls-before > most {
		t.Errorf("a hundred viewers cost the member %d calls", calls-before)
	}
	if from[0] != "" || from[1] != "l-1" || slices.Contains(from[1:], "") {
		t.Errorf("it was asked for what changed since %q", from)
	}
}

// A member that runs Hadoop's ResourceManager has no list of creel's, and reports in a sentence why an application
// waits.
func TestMemberWithoutCodesReportsDiagnostics(t *testing.T) {
	web := overMembers(t,
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/apps" {
				t.Errorf("ours is asked for %s", r.URL)
			}
			io.WriteString(w, `{"apps":[{"id":"application_1_0001","state":"ACCEPTED","queue":"root.a","started":2,`+
				`"waits_for":"am_limit","waits_in":"root"},{"id":"application_1_0002","state":"RUNNING","queue":"root.a",`+
				`"started":1,"waits_for":"no_node_has_room","waits_in":"root.a"}]}`)
		},
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != base+"/apps" {
				http.NotFound(w, r)
				return
			}
			io.WriteString(w, `{"apps":{"app":[{"id":"application_2_0001","state":"ACCEPTED","queue":"root.a","startedTime":3,`+
				`"elapsedTime":3600000,"diagnostics":"User's AM resource limit exceeded."},{"id":"application_2_0002",`+
				`"state":"FINISHED","queue":"root.a","startedTime":1,"elapsedTime":9000000,"diagnostics":"done"}]}}`)
		})
	var doc rest.AppsDoc
	fetch(t, web.URL+"/api/v1/apps", &doc)
	var rows [4]apps.Row
	for i, raw := range doc.Applications {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if a := rows[1]; a.WaitsSeconds < 3600 || a.WaitsSeconds > 3900 || rows[3].WaitsSeconds != 0 {
		t.Errorf("Hadoop's application without an AM has waited for %v s, and one that ended for %v", a.WaitsSeconds,
			rows[3].WaitsSeconds)
	}
	for i, want := range [4][4]string{
		{"application_1_0002", "no_node_has_room", "root.a", ""},
		{"application_2_0001", "diagnostics", "", "User's AM resource limit exceeded."},
		{"application_1_0001", "am_limit", "root", ""},
		{"application_2_0002", "", "", ""},
	} {
		if a := rows[i]; a.ID != want[0] || a.Waits != want[1] || a.WaitsIn != want[2] || a.WaitsText != want[3] {
			t.Errorf("row %d: %+v, want %q", i, a, want)
		}
	}
	var glance rest.OverviewDoc
	fetch(t, web.URL+"/api/v1/overview", &glance)
	if len(glance.Waiting) != 2 || glance.Waiting[0] != (apps.WaitGroup{
		Applications: 1, Queue: "root.a", Code: "am_limit", In: "root", Example: "application_1_0001",
	}) {
		t.Errorf("what waits: %+v", glance.Waiting)
	}
}

func fetch(t testing.TB, url string, into any) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s: %d, %v", url, res.StatusCode, err)
	}
}

// An application counts in the group of each of its tags.
func TestApplicationsAreCountedByTag(t *testing.T) {
	web := overMembers(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"apps":[{"id":"application_1_0001","state":"RUNNING","tags":["etl","prod"],"containers":2},`+
			`{"id":"application_1_0002","state":"ACCEPTED","tags":["prod"]},{"id":"application_1_0003","state":"RUNNING"}]}`)
	})
	var doc rest.AppsDoc
	fetch(t, web.URL+"/api/v1/apps?group=tag&limit=1", &doc)
	want := []apps.Group{
		{Key: "prod", Counts: apps.Counts{Running: 1, Waiting: 1, Containers: 2}},
		{Key: "etl", Counts: apps.Counts{Running: 1, Containers: 2}},
	}
	if !slices.Equal(doc.Groups, want) {
		t.Errorf("groups: %+v", doc.Groups)
	}
}
