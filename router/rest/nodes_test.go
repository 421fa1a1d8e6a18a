// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/routertest"
)

// Where a ResourceManager takes the name of a host for its nodes, the router finds the member that has them: to label
// them, to tell their labels, and for what the scheduler did with them.
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

// While a member does not answer, nobody knows that it has not got a node: that is no 404, by which who asks would
// take the node for gone.
func TestANodeOfAMemberThatIsAwayIsNotDenied(t *testing.T) {
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
