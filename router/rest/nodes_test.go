// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// Where a ResourceManager accepts a host name for its nodes, the router finds the member that has them: to label
// them, to list their labels, and for the scheduler's activities on them.
func TestANodeIsFoundByItsHost(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Settings: []string{"yarn.node-labels.enabled=true"}})
	web := f.Routers[0].Web
	const asRoot = "user.name=root"
	gpu := `{"nodeLabelInfo":{"name":"gpu"}}`
	if r := call(t, web, "POST", base+"/add-node-labels?"+asRoot, gpu); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for _, m := range f.Members {
		nodes := call(t, m.WebAddress, "GET", base+"/nodes?"+asRoot, "")
		first := at(t, nodes.body, "nodes", "node").([]any)[0].(map[string]any)
		id, host := first["id"].(string), first["nodeHostName"].(string)
		labels := func() []any {
			t.Helper()
			got, _ := at(t, call(t, m.WebAddress, "GET", base+"/nodes/"+id+"?"+asRoot, "").body, "node", "nodeLabels").([]any)
			return got
		}
		for _, name := range []string{host, host + ":0", host + "%3A0", id} {
			for _, label := range []string{"gpu", ""} {
				r := call(t, web, "POST", base+"/nodes/"+name+"/replace-labels?"+asRoot+"&labels="+label, "")
				if has := labels(); r.status != 200 || slices.Contains(has, any("gpu")) != (label != "") {
					t.Errorf("%s of %s is given %q: %d %s, and has %v", name, m.ID, label, r.status, r.body, has)
				}
			}
			if r := call(t, web, "GET", base+"/nodes/"+name+"/get-labels?"+asRoot, ""); r.status != 200 {
				t.Errorf("labels of %s of %s: %d %s", name, m.ID, r.status, r.body)
			}
			if r := call(t, web, "GET", base+"/scheduler/activities?"+asRoot+"&nodeId="+name, ""); r.status != 200 {
				t.Errorf("activities of %s of %s: %d %s", name, m.ID, r.status, r.body)
			}
		}
	}
}

// While a member does not answer, a node may be there: the answer is not 404, since clients would conclude that the
// node is gone.
func TestNodeOfAbsentMemberIsNotDenied(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	away := f.Members[1]
	nodes := call(t, away.WebAddress, "GET", base+"/nodes?user.name=root", "")
	id := at(t, nodes.body, "nodes", "node").([]any)[0].(map[string]any)["id"].(string)
	away.Cut()
	for _, c := range [][3]string{
		{"GET", "/nodes/" + id, ""},
		{"GET", "/nodes/" + id + "/get-labels", ""},
		{"POST", "/nodes/" + id + "/replace-labels?labels=gpu", ""},
		{"POST", "/nodes/" + id + "/resource", `{"resource":{"memory":1024,"vCores":1}}`},
		{"GET", "/scheduler/activities?nodeId=" + id, ""},
	} {
		r := call(t, web, c[0], base+c[1], c[2])
		if r.status != 503 || r.head.Get("Retry-After") == "" || !strings.Contains(r.body, string(away.ID)) ||
			!strings.HasPrefix(r.head.Get("X-Missing-SubClusters"), string(away.ID)) {
			t.Errorf("%s %s: %d %v %s", c[0], c[1], r.status, r.head, r.body)
		}
	}
	away.Mend()
	f.Until("its node is there again", func() bool { return call(t, web, "GET", base+"/nodes/"+id, "").status == 200 })
}

// Labels of a node go to the members that have it, by either protocol: a host may have NodeManagers in several.
// Labels of a node that has not joined yet go to all members, which store them, as one ResourceManager would; when it
// has joined one of them, a change reaches the others that store labels of it.
func TestNodeLabelsGoToAllItsMembers(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Settings: []string{"yarn.node-labels.enabled=true"}})
	web, admin := f.Routers[0].Web, f.AdminOf(f.Routers[0], "root")
	const asRoot = "user.name=root"
	labels := `{"nodeLabelInfo":[{"name":"gpu"},{"name":"ssd"},{"name":"old"}]}`
	if r := call(t, web, "POST", base+"/add-node-labels?"+asRoot, labels); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	register := func(at *routertest.Member, id creel.NodeID) {
		t.Helper()
		if err := at.D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
			if _, err := m.RegisterNode(now, &rm.RegisterNode{ID: id, Resource: creel.NewResource(1024, 1)}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(id creel.NodeID) (of []string) { // by member
		t.Helper()
		for _, m := range f.Members {
			if err := m.D.Turn(t.Context(), func(m *rm.Machine, _ time.Time) { of = append(of, m.LabelOf(id)) }); err != nil {
				t.Fatal(err)
			}
		}
		return of
	}
	byREST := func(id creel.NodeID, label string) {
		t.Helper()
		r := call(t, web, "POST", base+"/nodes/"+id.String()+"/replace-labels?"+asRoot+"&labels="+label, "")
		if r.status != 200 || r.body != "" {
			t.Errorf("%s is given %q: %d %s", id, label, r.status, r.body)
		}
	}
	byRPC := func(id creel.NodeID, label string) {
		t.Helper()
		if _, err := admin.ReplaceLabelsOnNodes(t.Context(), &yarnpb.ReplaceLabelsOnNodeRequestProto{
			NodeToLabels: []*yarnpb.NodeIdToLabelsProto{{NodeId: yarnpb.FromNodeID(id), NodeLabels: []string{label}}},
		}); err != nil {
			t.Errorf("%s is given %q: %v", id, label, err)
		}
	}
	for protocol, give := range map[string]func(creel.NodeID, string){"rest": byREST, "rpc": byRPC} {
		both := creel.NodeID{Host: "both-" + protocol, Port: 1}
		other := creel.NodeID{Host: both.Host, Port: 2}
		register(f.Members[0], both)
		register(f.Members[1], other)
		give(creel.NodeID{Host: both.Host}, "gpu")
		if got := append(kept(both), kept(other)...); !slices.Equal(got, []string{"gpu", "gpu", "gpu", "gpu"}) {
			t.Errorf("%s: a host in both members has %q", protocol, got)
		}
		give(other, "ssd") // one NodeManager, which is in one of them
		if got := kept(other); !slices.Equal(got, []string{"gpu", "ssd"}) {
			t.Errorf("%s: a node of one member has %q", protocol, got)
		}

		later := creel.NodeID{Host: "later-" + protocol, Port: 1}
		give(later, "gpu")
		if got := kept(later); !slices.Equal(got, []string{"gpu", "gpu"}) {
			t.Errorf("%s: a node that is not there yet has %q", protocol, got)
		}
		register(f.Members[1], later)
		give(later, "ssd")
		if got := kept(later); !slices.Equal(got, []string{"ssd", "ssd"}) {
			t.Errorf("%s: once it is there it has %q", protocol, got)
		}
		if r := call(t, web, "GET", base+"/nodes/gone-"+protocol+":1/get-labels?"+asRoot, ""); r.status != 200 {
			t.Errorf("labels of a node of nobody: %d %s", r.status, r.body)
		}
	}
	// A rejection by all is a ResourceManager's rejection, not the router's.
	r := call(t, web, "POST", base+"/nodes/later-rest:9/replace-labels?"+asRoot+"&labels=unknown", "")
	if r.status != 400 || !strings.Contains(r.body, "Not all labels being replaced contained by known label collections") {
		t.Errorf("an unknown label: %d %s", r.status, r.body)
	}
	// While one is silent, the host may have nodes there, too: nothing is changed.
	f.Members[1].Cut()
	host := creel.NodeID{Host: "both-rest"}
	r = call(t, web, "POST", base+"/nodes/"+host.Host+"/replace-labels?"+asRoot+"&labels=old", "")
	if r.status != 503 || !strings.HasPrefix(r.head.Get("X-Missing-SubClusters"), string(f.Members[1].ID)) {
		t.Errorf("a host while a member is silent: %d %s", r.status, r.body)
	}
	_, err := admin.ReplaceLabelsOnNodes(t.Context(), &yarnpb.ReplaceLabelsOnNodeRequestProto{
		NodeToLabels: []*yarnpb.NodeIdToLabelsProto{{NodeId: yarnpb.FromNodeID(host), NodeLabels: []string{"old"}}},
	})
	if err == nil || !strings.Contains(err.Error(), "not every subcluster answered") {
		t.Errorf("a host while a member is silent, by RPC: %v", err)
	}
	if got := kept(creel.NodeID{Host: "both-rest", Port: 1}); got[0] != "gpu" {
		t.Errorf("it has %q in the member that answers", got[0])
	}
}
