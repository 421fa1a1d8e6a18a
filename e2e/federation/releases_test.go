// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// released returns a document of a router, with the header that names missing members.
func released(t *testing.T, web, path string) (code int, body, missing string) {
	t.Helper()
	code, body, head := sent(t, http.MethodGet, web, path)
	return code, body, head.Get("X-Missing-SubClusters")
}

// sent returns the response of a router or a ResourceManager to a call without a body.
func sent(t *testing.T, method, web, path string) (code int, body string, head http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+web+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b), r.Header
}

// versionsOf returns the versions that members publish, by a router.
func versionsOf(t *testing.T, web string) map[string]string {
	t.Helper()
	var doc struct {
		Subclusters []struct{ ID, Version string }
	}
	if _, err := Call(t, http.MethodGet, web, "/api/v1/subclusters", nil, &doc); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, s := range doc.Subclusters {
		versions[s.ID] = s.Version
	}
	return versions
}

// awaitVersions waits until members publish these versions. An agent reads its member's version again if its
// ResourceManager did not answer in time.
func awaitVersions(t *testing.T, web string, want map[string]string) {
	t.Helper()
	if process.Poll(nil, func() bool { return maps.Equal(versionsOf(t, web), want) }) != nil {
		t.Errorf("their versions are %v, want %v", versionsOf(t, web), want)
	}
}

// Members run two releases of Hadoop, and each agent publishes its own. Documents of both are merged. A document that
// the older release lacks comes from the newer one, and the response reports that. After an upgrade the older member is
// included.
func TestMembersOfTwoReleasesOfHadoop(t *testing.T) {
	t.Parallel()
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1"})
	// At the older one routers may act for members of a group that has none.
	older := f.StartHadoopOf(t, hadoop.V336, 1, hadoop.Conf{
		"hadoop.proxyuser." + hadoop.OSUser(t) + ".groups": "strangers",
	})
	newer := f.StartHadoop(t, 2)
	f.Subclusters = []*Subcluster{older, newer}
	f.StartRouter(t, 1, nil)
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 2)
	awaitVersions(t, web, map[string]string{older.ID: "hadoop-3.3.6", newer.ID: "hadoop-3.4.2"})
	awaitRefusals(t, web, map[string][]string{older.ID: {"impersonation"}, newer.ID: nil})
	id, err := NewApplication(t, web)
	if err != nil {
		t.Fatal(err)
	}
	if err := Submit(t, web, id, "default"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"info", "metrics", "scheduler", "nodes", "apps", "apps/" + id, "get-node-labels"} {
		code, body, missing := released(t, web, "/ws/v1/cluster/"+path)
		if code != http.StatusOK || missing != "" || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d, missing %q: %s", path, code, missing, body)
		}
	}
	for _, path := range []string{"/api/v1/apps", "/api/v1/apps/" + id + "/why"} {
		if code, body, _ := released(t, web, path); code != http.StatusOK || !strings.Contains(body, id) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	const overview = "/ws/v1/cluster/scheduler-overview"
	code, body, missing := released(t, web, overview)
	if code != http.StatusOK || !strings.Contains(body, "Capacity Scheduler") ||
		!strings.Contains(missing, older.ID+" (GET /scheduler-overview is not in Hadoop 3.3.6") {
		t.Errorf("%d, missing %q: %s", code, missing, body)
	}
	// That the table is right: it answers nothing there when it is asked directly.
	if code, body, _ := released(t, older.Addresses.Web, overview); code != http.StatusNotFound {
		t.Errorf("of 3.3.6 itself: %d %s", code, body)
	}
	older.Hadoop.Kill()
	older.Hadoop.Upgrade(t, hadoop.V342)
	if process.Poll(nil, func() bool {
		code, body, missing = released(t, web, overview)
		return versionsOf(t, web)[older.ID] == "hadoop-3.4.2" && code == http.StatusOK && missing == ""
	}) != nil {
		t.Errorf("upgraded: %v, %d, missing %q: %s", versionsOf(t, web), code, missing, body)
	}
}
