// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
)

// A router finds the member of a host, drains the host there, shows the progress, and takes it in again. Each change is
// an event, a refused one too.
func TestHostIsDrainedThroughRouter(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	web := f.Routers[0].Web
	row := func() map[string]any {
		return at(t, call(t, web, "GET", "/api/v1/nodes?subcluster=sc-b", "").body, "nodes").([]any)[0].(map[string]any)
	}
	host, _, _ := strings.Cut(row()["id"].(string), ":")
	path := "/api/v1/drains/" + host
	if r := call(t, web, "GET", path+asRoot, ""); r.status != 200 || at(t, r.body, "subcluster") != "sc-b" {
		t.Fatalf("before a drain: %d %s", r.status, r.body)
	}
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"another user":       {"PUT", path + asAlice, `{}`, 403, "not_permitted"},
		"acting for root":    {"PUT", path + "?user.name=eve&doAs=root", `{}`, 403, "not_permitted"},
		"no such host":       {"PUT", "/api/v1/drains/nosuch" + asRoot, `{}`, 404, "node_not_found"},
		"another member's":   {"PUT", path + asRoot + "&subcluster=sc-a", `{}`, 404, "in subcluster sc-a"},
		"an unknown field":   {"PUT", path + asRoot, `{"mode":"now"}`, 400, "invalid_request"},
		"a long timeout":     {"PUT", path + asRoot, `{"timeout_s":1e9}`, 400, "720h0m0s"},
		"one that is not in": {"DELETE", path + asRoot, ``, 404, "no call has drained it"},
	} {
		if r := call(t, web, c.method, c.path, c.body); r.status != c.status || !strings.Contains(r.body, c.says) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	r := call(t, web, "PUT", path+asRoot, `{"reason":"new disks"}`)
	if r.status != 200 || !strings.Contains(r.body, `"reason":"new disks"`) || strings.Contains(r.body, `"RUNNING"`) {
		t.Fatalf("a drain: %d %s", r.status, r.body)
	}
	list := call(t, f.Routers[1].Web, "GET", "/api/v1/drains"+asRoot, "")
	if list.status != 200 || !strings.Contains(list.body, `"host":"`+host+`","subcluster":"sc-b"`) {
		t.Errorf("another router's list: %d %s", list.status, list.body)
	}
	if r := call(t, web, "DELETE", path+asRoot, ""); r.status != 200 || strings.Contains(r.body, `"drain"`) {
		t.Errorf("its end: %d %s", r.status, r.body)
	}
	f.Until("the changes are events", func() bool {
		body := call(t, web, "GET", "/api/v1/events?kind=drain&user.name=root", "").body
		return strings.Contains(body, `"subject":"`+host+`","user":"root"`) &&
			strings.Contains(body, `"after":"drained at sc-b"`) && strings.Contains(body, `"detail":"new disks"`) &&
			strings.Contains(body, `"after":"taken in again at sc-b"`) && strings.Contains(body, `"user":"alice"`)
	})
}

// Hadoop's ResourceManagers have no such call. The error names the other way, and they are not asked.
func TestDrainOfHadoopHostNamesTheFile(t *testing.T) {
	var theirs asked
	members := ofVersions(t, []string{"hadoop-3.4.2"}, theirs.answers(map[string]string{
		base + "/nodes": `{"nodes":{"node":[{"id":"h1:45454","state":"RUNNING"}]}}`,
	}))
	_, web := overHomes(t, members, "sc-00", rest.Config{
		Started: time.Now(), User: "creel", Operator: operator.New(operator.Config{}),
	})
	at := web.Listener.Addr().String()
	for path, c := range map[string]struct {
		status int
		says   string
	}{
		"/api/v1/drains/h1":                   {501, "node drain h1 --conf DIR"},
		"/api/v1/drains/h1?subcluster=nosuch": {404, "in subcluster nosuch"},
		"/api/v1/drains/h2":                   {404, "in any subcluster"},
	} {
		if r := call(t, at, "PUT", path, `{}`); r.status != c.status || !strings.Contains(r.body, c.says) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if paths := theirs.take(); slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(p, "drains") }) {
		t.Errorf("it was asked for %q", paths)
	}
}
