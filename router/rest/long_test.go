// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/routertest"
)

// Members do not send an unchanged long list again, and the next list after a change contains the change. The members
// still decide each time which items a user may see.
func TestUnchangedListIsNotResent(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Nodes: 60, Settings: []string{
		"yarn.acl.enable=true", "yarn.webapp.filter-entity-list-by-user=true",
		"yarn.scheduler.capacity.root.acl_administer_queue=root",
	}})
	web := f.Routers[0].Web
	var ids []string
	for i := range 40 {
		id, _ := submit(t, f, web, fmt.Sprint(strings.Repeat("long ", 100), i), "default")
		ids = append(ids, id)
	}
	sent := func() int64 { return f.Members[0].Web.Answered.Load() + f.Members[1].Web.Answered.Load() }
	for _, list := range []string{"apps", "nodes"} {
		path, last := base+"/"+list+"?user.name=alice", ""
		f.Until("the members' "+list+" hold", func() bool {
			before := sent()
			r := call(t, web, "GET", path, "")
			if r.status != 200 || len(r.body) < 16<<10 {
				t.Fatalf("%d, %d bytes: %.300s", r.status, len(r.body), r.body)
			}
			if twice := r.body == last; twice && sent()-before < int64(len(r.body))/10 {
				return true
			}
			last = r.body
			return false
		})
		xml := call(t, web, "GET", path, "", "Accept", "application/xml")
		if !strings.HasPrefix(xml.body, "<?xml") || !strings.HasSuffix(xml.body, "</"+list+">") {
			t.Errorf("as XML: %.100s", xml.body)
		}
	}
	for _, id := range ids {
		if r := call(t, web, "PUT", base+"/apps/"+id+"/priority?user.name=alice", `{"priority":3}`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		list := call(t, web, "GET", base+"/apps?user.name=alice", "").body
		_, after, found := strings.Cut(list, `"id":"`+id+`"`)
		if !found || !strings.Contains(after[:min(len(after), 2000)], `"priority":3,`) {
			t.Fatalf("%s has another priority now, and the list is %.3000s", id, after)
		}
		if list := call(t, web, "GET", base+"/apps?user.name=mallory", "").body; strings.Contains(list, "application_") {
			t.Fatalf("mallory sees %.300s", list)
		}
	}
}
