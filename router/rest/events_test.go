// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/routertest"
)

// Events are of the store: they outlive every router, and are read while the member that they are about is cut off. A
// cursor of one router goes on at another.
func TestEventsSurviveRoutersAndLostMember(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	web := f.Routers[0].Web
	id, home := submit(t, f, web, "one", "default")
	for i := range 5 {
		order := fmt.Sprintf(`{"mode":"stop","reason":"round %d"}`, i)
		if r := call(t, web, "PUT", "/api/v1/subclusters/sc-a/drain"+asRoot, order); r.status != 200 {
			t.Fatalf("drain: %d %s", r.status, r.body)
		}
	}
	if r := call(t, web, "PUT", "/ws/v1/cluster/apps/"+id+"/state?user.name=root", `{"state":"KILLED"}`); r.status >= 300 {
		t.Fatalf("kill: %d %s", r.status, r.body)
	}
	list := func(web, query string) string {
		r := call(t, web, "GET", "/api/v1/events?user.name=root"+query, "")
		if r.status != 200 {
			t.Fatalf("events: %d %s", r.status, r.body)
		}
		return r.body
	}
	f.Until("the kill is an event", func() bool { return strings.Contains(list(web, "&kind=kill"), id) })
	drains := func(web, query string) string {
		return fmt.Sprint(at(t, list(web, "&kind=drain"+query), "events"))
	}
	second := at(t, list(web, "&kind=drain"), "events").([]any)[1].(map[string]any)["id"].(string)
	before := drains(web, "")

	for _, r := range f.Routers {
		r.Restart()
		f.Until("it sees the members again", func() bool { v := r.Server.View(); return v != nil && len(v.Members) == 2 })
	}
	home.Cut()
	for i, r := range f.Routers {
		if after := drains(r.Web, ""); after != before {
			t.Errorf("router %d: after its restart\n%s\nbefore it\n%s", i, after, before)
		}
		if kills := list(r.Web, "&subject="+id); !strings.Contains(kills, `"kind":"kill"`) {
			t.Errorf("router %d: of an application at a lost home: %s", i, kills)
		}
	}
	if rest := drains(f.Routers[1].Web, "&after="+second); strings.Count(rest, "detail:round ") != 3 {
		t.Errorf("after the cursor %q: %s", second, rest)
	}
}
