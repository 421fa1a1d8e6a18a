// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
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
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// asked are the paths that a member was asked for.
type asked struct {
	mu    sync.Mutex
	paths []string
}

// take returns the requests since the last call.
func (a *asked) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	paths := a.paths
	a.paths = nil
	return paths
}

// answers is a member that has these documents, by path, and no others.
func (a *asked) answers(documents map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.paths = append(a.paths, r.URL.Path)
		a.mu.Unlock()
		doc, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, doc)
	}
}

// ofVersions are members that answer so and publish these versions.
func ofVersions(t testing.TB, versions []string, answers ...http.HandlerFunc) []subcluster.Status {
	t.Helper()
	members := statuses(t, answers...)
	for i := range members {
		members[i].Version = versions[i]
	}
	return members
}

// homes has each application at home in one member.
type homes struct {
	router.Homes
	at creel.SubclusterID
}

func (h homes) Home(context.Context, creel.ApplicationID) (creel.SubclusterID, error) {
	return h.at, nil
}

func (homes) Accept(context.Context, creel.ApplicationID, creel.SubclusterID, int64) error {
	return nil
}

func (homes) AcceptedIn(context.Context, creel.ApplicationID) (int64, error) { return 0, nil }

func (homes) Ended(context.Context, creel.ApplicationID) (time.Time, error) { return time.Time{}, nil }

func (homes) Placement(context.Context, creel.ApplicationID) ([]byte, error) { return nil, nil }

// A member for which an agent acts has none of creel's own documents: it is not asked for any, whichever version its
// agent publishes. Members that run creel's ResourceManager are still asked for changes, and for no viewer's list.
func TestHadoopMemberIsNotAskedForCreelDocuments(t *testing.T) {
	const id = "application_2_0001"
	for _, version := range []string{"hadoop", "hadoop-3.3.6", "hadoop-3.4.2"} {
		var ours, theirs asked
		members := ofVersions(t, []string{"creel 1.0", version},
			ours.answers(map[string]string{
				"/api/v1/apps/changes": `{"at":"1","whole":true,"apps":[{"id":"application_1_0001","state":"RUNNING"}]}`,
			}),
			theirs.answers(map[string]string{
				base + "/apps": `{"apps":{"app":[{"id":"` + id + `","state":"ACCEPTED","queue":"root.a"}]}}`,
				base + "/apps/" + id: `{"app":{"id":"` + id + `","state":"ACCEPTED","queue":"root.a","user":"alice",` +
					`"diagnostics":"User's AM resource limit exceeded."}}`,
			}))
		h, web := overHomes(t, members, "sc-01", rest.Config{
			Started: time.Now(), User: "creel", StaticUser: "dr.who",
			Allows: func(string) func(string) bool { return func(string) bool { return true } },
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := h.Applications().Run(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		var list rest.AppsDoc
		fetch(t, web.URL+"/api/v1/apps", &list)
		if len(list.Applications) != 2 || len(list.Missing) > 0 {
			t.Errorf("%s: %+v", version, list)
		}
		var why rest.WhyDoc
		fetch(t, web.URL+"/api/v1/apps/"+id+"/why", &why)
		if len(why.Waits) != 1 || why.Waits[0].Wait == nil || !strings.Contains(why.Waits[0].Wait.Text, "AM resource") {
			t.Errorf("%s: why: %+v", version, why)
		}
		own := func(path string) bool { return strings.HasPrefix(path, "/api/v1/") }
		if paths := theirs.take(); slices.ContainsFunc(paths, own) || len(paths) == 0 {
			t.Errorf("%s: it was asked for %q", version, paths)
		}
		if paths := ours.take(); slices.Contains(paths, "/api/v1/apps") || !slices.Contains(paths, "/api/v1/apps/changes") {
			t.Errorf("%s: creel's member was asked for %q", version, paths)
		}
	}
}

// overHomes is serve where all applications are at home in one member.
func overHomes(
	t testing.TB, members []subcluster.Status, at creel.SubclusterID, c rest.Config,
) (*rest.Handler, *httptest.Server) {
	t.Helper()
	view := subcluster.NewView(time.Now(), members, nil)
	pool := remote.NewPool(remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { pool.Close() })
	core := server.New(server.Config{
		View: func() *subcluster.View { return view }, Pool: pool,
		Homes:   homes{at: at},
		Members: func(m *remote.Member) server.Member { return client.Of(m) },
	})
	mux := chi.NewRouter()
	h := rest.New(core, c)
	h.Mount(mux)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return h, web
}

// A member gets no calls that its release lacks, and the answer names them.
func TestDocumentsMissingInReleaseAreNotRequested(t *testing.T) {
	const overview, bulk = base + "/scheduler-overview", base + "/scheduler/bulk-activities"
	documents := map[string]string{
		overview: `{"schedulerType":"Capacity Scheduler","schedulerBusy":-1}`, bulk: `{"bulkActivities":{"activities":[{"nodeId":"a"},{"nodeId":"b"}]}}`,
	}
	var old, recent, vendor, plain asked
	over := func(versions []string, members ...*asked) string {
		var handlers []http.HandlerFunc
		for _, m := range members {
			handlers = append(handlers, m.answers(documents))
		}
		return overStatuses(t, ofVersions(t, versions, handlers...)).Listener.Addr().String()
	}
	both := over([]string{"hadoop-3.3.6", "hadoop-3.4.0"}, &old, &recent)
	one := call(t, both, "GET", overview, "")
	if missing := one.head.Get("X-Missing-SubClusters"); one.status != 200 || at(t, one.body, "schedulerType") == nil ||
		one.head.Get("X-Partial-Result") != "true" ||
		!strings.Contains(missing, "sc-00") || !strings.Contains(missing, "not in Hadoop 3.3.6") {
		t.Errorf("merged: %+v", one)
	}
	refused := call(t, both, "GET", bulk+"?subClusterId=sc-00", "")
	if text := refused.body; refused.status != 404 || !strings.Contains(text, "not in Hadoop 3.3.6") ||
		!strings.Contains(text, "3.4.0") || !strings.Contains(text, `"NotFoundException"`) {
		t.Errorf("of the member that lacks it: %+v", refused)
	}
	if r := call(t, both, "GET", bulk+"?subClusterId=sc-01", ""); r.status != 200 {
		t.Errorf("of the member that has it: %+v", r)
	}
	if r := call(t, both, "GET", bulk, ""); r.status != 200 || len(at(t, r.body, "bulkActivities", "activities").([]any)) != 2 ||
		!strings.Contains(r.head.Get("X-Missing-SubClusters"), "sc-00") {
		t.Errorf("of all members: %+v", r)
	}
	alone := call(t, over([]string{"hadoop-3.3.6"}, &old), "GET", overview, "")
	if alone.status != 404 || !strings.Contains(alone.body, "not in Hadoop 3.3.6") {
		t.Errorf("where nobody has it: %+v", alone)
	}
	if paths := old.take(); len(paths) > 0 {
		t.Errorf("a member of 3.3.6 was asked for %q", paths)
	}
	if paths := recent.take(); !slices.Equal(paths, []string{overview, bulk, bulk}) {
		t.Errorf("a member of 3.4.0 was asked for %q", paths)
	}
	// For a release that is not Apache's, or not known, no call is known to be missing.
	unknown := over([]string{"hadoop-3.3.6-amzn-3", "hadoop"}, &vendor, &plain)
	if r := call(t, unknown, "GET", overview, ""); r.status != 200 || r.head.Get("X-Partial-Result") != "" ||
		len(vendor.take()) != 1 || len(plain.take()) != 1 {
		t.Errorf("of other releases: %+v", r)
	}
	// Silence of one that has it is not the other's rejection.
	halves := ofVersions(t, []string{"hadoop-3.3.6", "hadoop-3.4.0"}, old.answers(documents), recent.answers(documents))
	halves[1].Addresses.Web = "127.0.0.1:1"
	silent := call(t, overStatuses(t, halves).Listener.Addr().String(), "GET", overview, "")
	var doc struct {
		RemoteException struct{ Message string }
	}
	if err := json.Unmarshal([]byte(silent.body), &doc); err != nil || silent.status != 503 ||
		!strings.Contains(doc.RemoteException.Message, "sc-00 (") ||
		!strings.Contains(doc.RemoteException.Message, "sc-01 (") {
		t.Errorf("while the one that has it is away: %+v", silent)
	}
}

// A mandatory field in a deselects list is rejected, whatever there is to list: Hadoop's ResourceManagers reject it
// only if they have an application.
func TestRequiredFieldCannotBeOmitted(t *testing.T) {
	web := overMembers(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"apps":{}}`)
	}).Listener.Addr().String()
	bad := call(t, web, "GET", base+"/apps?deSelects=timeouts,owner", "")
	if bad.status != 400 || !strings.Contains(bad.body, "Invalid deSelects string owner specified.") {
		t.Errorf("%d %s", bad.status, bad.body)
	}
	if good := call(t, web, "GET", base+"/apps?deSelects=timeouts,resourceInfo&deSelects=resourceRequests", ""); good.status != 200 {
		t.Errorf("%d %s", good.status, good.body)
	}
}
