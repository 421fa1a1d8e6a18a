// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// A router receives the changes since its last query, and everything after a restart; other callers receive nothing.
// The viewers it receives for an application are the users with its start in their own list.
func TestChangesArePublishedToRouters(t *testing.T) {
	c := start(t, func(cfg *server.Config) {
		cfg.ACLs, cfg.AdminACL = true, queues.ACL{Users: []string{"root"}}
		cfg.Groups = groups.New(func(user string) []string { return map[string][]string{"gail": {"ops"}}[user] }, time.Minute)
		cfg.Machine.Queues.Root.Admin = queues.ACL{Users: []string{"chief"}, Groups: []string{"ops"}}
		for i := range cfg.Machine.Queues.Root.Children {
			cfg.Machine.Queues.Root.Children[i].Admin = queues.ACL{}
		}
	})
	one := c.submit("alice", "one", `,"unmanaged-AM":true`)
	ask := func(since string) (doc subcluster.AppChanges) {
		t.Helper()
		text := c.call("GET", "/api/v1/apps/changes?user.name=root&since="+url.QueryEscape(since), "").body
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return doc
	}
	has := func(d subcluster.AppChanges, id string) *subcluster.AppLine {
		i := slices.IndexFunc(d.Apps, func(a *subcluster.AppLine) bool { return a.ID == id })
		if i < 0 {
			return nil
		}
		return d.Apps[i]
	}
	if r := c.call("GET", "/api/v1/apps/changes?user.name=alice", ""); r.status != http.StatusForbidden ||
		!strings.Contains(r.body, "is not a router") {
		t.Errorf("alice is told %d %s", r.status, r.body)
	}
	first := ask("")
	if line := has(first, one); !first.Whole || line == nil || line.Started == 0 {
		t.Fatalf("told first: %+v", first)
	}
	acl := queues.ParseACL(has(first, one).Viewers)
	for _, user := range []string{"alice", "root", "chief", "gail", "mallory"} {
		var doc struct{ Apps []subcluster.AppLine }
		if err := json.Unmarshal([]byte(c.call("GET", "/api/v1/apps?user.name="+user, "").body), &doc); err != nil {
			t.Fatal(err)
		}
		groups := map[string][]string{"gail": {"ops"}}[user]
		if sees, may := doc.Apps[0].Started > 0, user == "alice" || acl.Allows(user, groups); sees != may {
			t.Errorf("%s sees it: %v, by the list %q: %v", user, sees, has(first, one).Viewers, may)
		}
	}
	c.until("nothing changes any more", func() bool {
		a := ask("")
		return len(ask(a.At).Apps) == 0
	})
	quiet := ask("")
	if again := ask(quiet.At); again.Whole || len(again.Apps)+len(again.Gone) > 0 || again.At != quiet.At {
		t.Errorf("without a change: %+v", again)
	}
	two := c.submit("bob", "two", `,"unmanaged-AM":true`)
	next := ask(quiet.At)
	if next.Whole || has(next, two) == nil || has(next, one) != nil {
		t.Errorf("after a second one: %+v", next)
	}
	c.try("PUT", base+"/apps/"+one+"/state?user.name=alice", `{"state":"KILLED"}`, 200, "")
	c.until("the kill is told", func() bool {
		line := has(ask(next.At), one)
		return line != nil && line.State == "KILLED"
	})
	for _, strange := range []string{"another-3", "x", quiet.At + "0"} {
		if d := ask(strange); !d.Whole || has(d, one) == nil || has(d, two) == nil {
			t.Errorf("since %q: %+v", strange, d)
		}
	}
}
