// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"testing"

	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// A node's list has its containers with their applications, for users that may view these; it counts the others.
func TestNodeListsItsContainers(t *testing.T) {
	c := start(t, func(cfg *server.Config) {
		cfg.ACLs = true
		cfg.Machine.Queues.Root.Admin = queues.ACL{}
		for i := range cfg.Machine.Queues.Root.Children {
			cfg.Machine.Queues.Root.Children[i].Admin = queues.ACL{}
		}
	})
	id := c.submit("alice", "hers", `,"queue":"default"`)
	c.register("")
	path := "/api/v1/nodes/" + c.nodeOf(id) + "/containers?user.name="
	for user, hidden := range map[string]int64{"alice": 0, "root": 0, "mallory": 1} {
		r := c.call("GET", path+user, "")
		var doc subcluster.NodeContainers
		if err := json.Unmarshal([]byte(r.body), &doc); err != nil || r.status != 200 {
			t.Fatalf("%d %s, %v", r.status, r.body, err)
		}
		if doc.Hidden != hidden || int64(len(doc.Containers)) != 1-hidden {
			t.Errorf("%s gets %s", user, r.body)
		}
		for _, k := range doc.Containers {
			if k.Application != id || k.Name != "hers" || k.User != "alice" || k.Queue != "root.default" || !k.AM ||
				k.MemoryMB <= 0 || k.VCores <= 0 || k.Started.IsZero() || k.State == "" || k.Opportunistic {
				t.Errorf("%s gets %+v", user, k)
			}
		}
	}
	c.try("GET", "/api/v1/nodes/nosuch:1/containers?user.name=root", "", 404, "nosuch:1")
	c.try("GET", "/api/v1/nodes/nosuch/containers?user.name=root", "", 400, "nosuch")
}
