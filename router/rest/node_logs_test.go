// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/router/rest"
)

// The logs of a container come from its node through the router, to viewers of its application.
func TestLogsComeThroughTheRouter(t *testing.T) {
	const container, hidden = "container_1_0001_01_000001", "container_1_0002_01_000001"
	var sizes []string
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.URL.Query().Get("user.name"); user != "ann" {
			t.Errorf("%s as %q", r.URL, user)
		}
		switch r.URL.Path {
		case "/ws/v1/node/containers/" + container + "/logs":
			fmt.Fprint(w, `{"containerLogsInfo":{"containerLogInfo":[{"fileName":"stdout","fileSize":"5"},{"fileName":"a b"}]}}`)
		case "/ws/v1/node/containerlogs/" + container + "/a b":
			sizes = append(sizes, r.URL.Query().Get("size"))
			fmt.Fprint(w, "<script>alert(1)</script>")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(node.Close)
	at := strings.TrimPrefix(node.URL, "http://")
	var theirs asked
	members := ofVersions(t, []string{"hadoop-3.4.2"}, theirs.answers(map[string]string{
		base + "/nodes": `{"nodes":{"node":[{"id":"h1:1","state":"RUNNING","nodeHTTPAddress":"` + at + `"},` +
			`{"id":"h2:1","state":"LOST"}]}}`,
		base + "/apps/application_1_0001": `{"app":{"id":"application_1_0001","user":"bob","startedTime":5}}`,
		base + "/apps/application_1_0002": `{"app":{"id":"application_1_0002","user":"bob","startedTime":0}}`,
	}))
	_, s := overHomes(t, members, members[0].ID, rest.Config{Started: time.Now(), User: "creel", StaticUser: "dr.who"})
	web := strings.TrimPrefix(s.URL, "http://")
	get := func(node, container, rest string) reply {
		return call(t, web, "GET", "/api/v1/nodes/"+node+"/containers/"+container+"/logs"+rest, "")
	}
	var doc rest.NodeLogsDoc
	r := get("h1:1", container, "?user.name=ann")
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil || r.status != 200 || doc.Node.Member != members[0].ID ||
		len(doc.Files) != 2 || doc.Files[0].Name != "a b" || doc.Files[0].Size != -1 || doc.Files[1].Size != 5 {
		t.Errorf("%d %s, %v", r.status, r.body, err)
	}
	for _, q := range []string{"", "&last=100"} {
		r = get("h1:1", container, "/a%20b?user.name=ann"+q)
		if r.status != 200 || r.body != "<script>alert(1)</script>" ||
			r.head.Get("Content-Type") != "text/plain; charset=utf-8" || r.head.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d %s %v", r.status, r.body, r.head)
		}
	}
	if len(sizes) != 2 || sizes[0] != "" || sizes[1] != "-100" {
		t.Errorf("asked for %q bytes", sizes)
	}
	for _, c := range []struct {
		node, container, rest string
		status                int
		says                  string
	}{
		{"h1:1", hidden, "?user.name=ann", 403, "only to viewers of application_1_0002"},
		{"h1:1", hidden, "/stdout?user.name=ann", 403, "only to viewers of application_1_0002"},
		{"h1:1", container, "/stderr?user.name=ann", 404, "has no logs of the container"},
		{"h2:1", container, "?user.name=ann", 404, "address of the container's node is unknown"},
		{"h3:1", container, "?user.name=ann", 404, "node h3:1 is not found"},
		{"h1:1", "container_x", "?user.name=ann", 400, "container_x"},
		{"h1:1", container, "/a%20b?user.name=ann&last=-1", 400, "last is not a number"},
	} {
		r := get(c.node, c.container, c.rest)
		if r.status != c.status || !strings.Contains(r.body, c.says) {
			t.Errorf("%s on %s%s: %d %s, want %d with %q", c.container, c.node, c.rest, r.status, r.body, c.status, c.says)
		}
	}
	node.Close()
	if r := get("h1:1", container, "?user.name=ann"); r.status != 503 || !strings.Contains(r.body, "does not answer") ||
		strings.Contains(r.body, "dial tcp") {
		t.Errorf("a node that is away: %d %s", r.status, r.body)
	}
}
