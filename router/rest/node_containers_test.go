// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm"
)

func containersOn(t *testing.T, web, node, member string) (doc rest.NodeContainersDoc, r reply) {
	t.Helper()
	q := url.Values{"user.name": {"root"}, "subcluster": {member}}
	r = call(t, web, "GET", "/api/v1/nodes/"+node+"/containers?"+q.Encode(), "")
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil {
		t.Fatalf("%d %s, %v", r.status, r.body, err)
	}
	return doc, r
}

// A node has as many containers as its row counts, each with its application. While its member does not answer, its
// row stays, with its age and the reason, and the answer comes within a second.
func TestNodeLeadsToItsContainers(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	managed := strings.Replace(submission("ID", "runs", "default"), `"unmanaged-AM":true,`, "", 1)
	for range 8 {
		id := at(t, call(t, web, "POST", base+"/apps/new-application?user.name=alice", "").body, "application-id").(string)
		r := call(t, web, "POST", base+"/apps?user.name=alice", strings.Replace(managed, "ID", id, 1))
		if r.status != 202 {
			t.Fatalf("submitted: %d %s", r.status, r.body)
		}
	}
	away := f.Members[1]
	node := ""
	f.Until("the nodes of the AMs are known", func() bool {
		var list rest.NodesDoc
		fetch(t, "http://"+web+"/api/v1/nodes?user.name=root", &list)
		found := int64(0)
		for _, n := range list.Nodes {
			if n.Containers == 0 {
				continue
			}
			doc, r := containersOn(t, web, n.ID, "")
			if r.status != 200 || doc.Problem != "" || doc.Node.Member != n.Member || len(doc.Containers) == 0 {
				t.Fatalf("%s: %d %s", n.ID, r.status, r.body)
			}
			found += int64(len(doc.Containers))
			for _, k := range doc.Containers {
				app, err := creel.ParseApplicationID(k.Application)
				if err != nil || f.Homes(app)[0] != n.Member || k.User != "alice" || !k.AM {
					t.Errorf("%s has %+v", n.ID, k)
				}
				if n.Member == away.ID {
					node = n.ID
				}
			}
		}
		return found == 8 && node != ""
	})
	away.Cut()
	doc, r := containersOn(t, web, node, "")
	if r.status != 200 || doc.Node.Member != away.ID || len(doc.Containers) != 0 ||
		!strings.Contains(doc.Problem, string(away.ID)) {
		t.Errorf("with its member away: %d %s", r.status, r.body)
	}
	f.Until("its row is marked as old", func() bool {
		doc, _ := containersOn(t, web, node, "")
		return doc.Node.AgeSeconds > 0
	})
	if _, r := containersOn(t, web, "nosuch:1", ""); r.status != 503 || !strings.Contains(r.body, string(away.ID)) {
		t.Errorf("a node that may be there: %d %s", r.status, r.body)
	}
	away.Mend()
	f.Until("its containers are there again", func() bool {
		doc, _ := containersOn(t, web, node, "")
		return doc.Problem == "" && len(doc.Containers) > 0
	})
	f.Until("a node that is nowhere is not found", func() bool {
		_, r := containersOn(t, web, "nosuch:1", "")
		return r.status == 404
	})
}

// Two members may have nodes of one name: the caller chooses the member.
func TestNodeOfTwoMembersNeedsItsMember(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web, id := f.Routers[0].Web, creel.NodeID{Host: "twin", Port: 1}
	for _, m := range f.Members {
		if err := m.D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
			if _, err := m.RegisterNode(now, &rm.RegisterNode{ID: id, Resource: creel.NewResource(1024, 1)}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	f.Until("the router knows both", func() bool {
		_, r := containersOn(t, web, id.String(), "")
		return r.status == 409 && strings.Contains(r.body, "sc-a, sc-b")
	})
	for _, m := range f.Members {
		if doc, r := containersOn(t, web, id.String(), string(m.ID)); r.status != 200 || doc.Node.Member != m.ID ||
			doc.Problem != "" {
			t.Errorf("%s: %d %s", m.ID, r.status, r.body)
		}
	}
}

// Hadoop's ResourceManagers are not asked for the containers of a node; the answer says so.
func TestHadoopNodeSaysItsContainersAreUnknown(t *testing.T) {
	var theirs asked
	members := ofVersions(t, []string{"hadoop-3.4.2"}, theirs.answers(map[string]string{
		base + "/nodes": `{"nodes":{"node":[{"id":"h1:1","state":"RUNNING","rack":"/r","numContainers":2}]}}`,
	}))
	_, web := overHomes(t, members, "sc-01", rest.Config{Started: time.Now(), User: "creel", StaticUser: "dr.who"})
	doc, r := containersOn(t, strings.TrimPrefix(web.URL, "http://"), "h1:1", "")
	if r.status != 200 || doc.Node.Containers != 2 || !strings.Contains(doc.Problem, "Hadoop's") {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, path := range theirs.take() {
		if strings.HasPrefix(path, "/api/v1/") {
			t.Errorf("Hadoop's ResourceManager was asked for %s", path)
		}
	}
}
