// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// overMembers serves the router's documents over members that answer as they are given.
func overMembers(t testing.TB, members ...http.HandlerFunc) *httptest.Server {
	t.Helper()
	var all []subcluster.Status
	for i, answers := range members {
		s := httptest.NewServer(answers)
		t.Cleanup(s.Close)
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
		m.Addresses.Web = s.Listener.Addr().String()
		all = append(all, m)
	}
	return overStatuses(t, all)
}

// overStatuses serves the router's documents over a view of these members.
func overStatuses(t testing.TB, members []subcluster.Status) *httptest.Server {
	t.Helper()
	view := subcluster.NewView(time.Now(), members, nil)
	pool := remote.NewPool(remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { pool.Close() })
	core := server.New(server.Config{
		View: func() *subcluster.View { return view }, Pool: pool,
		Known: func(context.Context, *remote.Member, creel.ApplicationID) (bool, error) { return false, nil },
	})
	mux := chi.NewRouter()
	rest.New(core, rest.Config{Started: time.Now()}).Mount(mux)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web
}

// A member of Hadoop's has no list of ours, and says in a sentence what an application
// waits for.
func TestAMemberWithoutCodesTellsItsDiagnostics(t *testing.T) {
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
				`"diagnostics":"User's AM resource limit exceeded."},{"id":"application_2_0002","state":"FINISHED",`+
				`"queue":"root.a","startedTime":1,"diagnostics":"done"}]}}`)
		})
	var doc rest.AppsDoc
	fetch(t, web.URL+"/api/v1/apps", &doc)
	var rows [4]rest.AppRow
	for i, raw := range doc.Applications {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			t.Fatal(err)
		}
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
	if len(glance.Waiting) != 2 || glance.Waiting[0] != (rest.WaitGroup{
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
