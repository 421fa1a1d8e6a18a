// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
)

const asRoot, asAlice = "?user.name=root", "?user.name=alice"

// An administrator drains a member: its router shows the progress, no other user may do it, new applications go
// elsewhere, and after the end of the drain they come back.
func TestAnAdministratorDrainsAMember(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	web, other := f.Routers[0].Web, f.Routers[1].Web
	apps := submitEverywhere(t, f, web)
	const path = "/api/v1/subclusters/sc-a/drain"
	order := `{"mode":"finish","reason":"new disks"}`

	if r := call(t, web, "PUT", path+asAlice, order); r.status != 403 || !strings.Contains(r.body, "yarn.admin.acl") {
		t.Errorf("alice, who is no administrator: %d %s", r.status, r.body)
	}
	if r := call(t, web, "PUT", path+asRoot, order, "Content-Type", "text/plain"); r.status != 415 {
		t.Errorf("what another site's page can send: %d %s", r.status, r.body)
	}
	if r := call(t, web, "PUT", path+asRoot, `{"mode":"leap"}`); r.status != 400 {
		t.Errorf("a mode that there is not: %d %s", r.status, r.body)
	}
	if r := call(t, web, "PUT", "/api/v1/subclusters/nope/drain"+asRoot, order); r.status != 404 {
		t.Errorf("a member that is not there: %d %s", r.status, r.body)
	}
	if r := call(t, web, "PUT", path+asRoot, order); r.status != 200 {
		t.Fatalf("drain: %d %s", r.status, r.body)
	}
	member := func(web string) map[string]any {
		list := at(t, call(t, web, "GET", "/api/v1/subclusters", "").body, "subclusters").([]any)
		return list[0].(map[string]any)
	}
	f.Until("both routers see it drain, with what is left", func() bool {
		for _, web := range []string{web, other} {
			m := member(web)
			drain, _ := m["drain"].(map[string]any)
			if m["state"] != "draining" || drain["mode"] != "finish" || drain["by"] != "root" ||
				drain["reason"] != "new disks" || drain["done"] != false || drain["running"].(float64)+drain["waiting"].(float64) == 0 {
				return false
			}
		}
		return true
	})
	for i := range 20 {
		if id, home := submit(t, f, web, fmt.Sprint("later ", i), "default"); home.ID != "sc-b" {
			t.Fatalf("%s went to the member that is drained", id)
		}
	}
	sleeperIsRefused(t, f, apps["sc-a"])
	if r := call(t, web, "PUT", base+"/apps/"+apps["sc-a"]+"/state"+asAlice, `{"state":"KILLED"}`); r.status >= 300 {
		t.Fatalf("kill: %d %s", r.status, r.body)
	}
	for _, app := range at(t, call(t, web, "GET", base+"/apps?states=ACCEPTED,RUNNING", "").body, "apps", "app").([]any) {
		id := app.(map[string]any)["id"].(string)
		if r := call(t, f.Members[0].WebAddress, "GET", base+"/apps/"+id, ""); r.status == 200 {
			call(t, web, "PUT", base+"/apps/"+id+"/state"+asAlice, `{"state":"KILLED"}`)
		}
	}
	f.Until("nothing is left in it", func() bool {
		drain := member(web)["drain"].(map[string]any)
		return drain["running"].(float64)+drain["waiting"].(float64) == 0
	})

	if r := call(t, web, "DELETE", path+asAlice, ""); r.status != 403 {
		t.Errorf("alice ends the drain: %d %s", r.status, r.body)
	}
	if r := call(t, web, "DELETE", path+asRoot, ""); r.status != 200 {
		t.Fatalf("undrain: %d %s", r.status, r.body)
	}
	f.Until("it is back", func() bool { return member(web)["state"] == "active" && member(web)["drain"] == nil })
	submitEverywhere(t, f, web)
}

// A member that still sends heartbeats is neither deregistered nor removed.
func TestAMemberThatLivesKeepsItsPlace(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	web := f.Routers[0].Web
	if r := call(t, web, "POST", "/api/v1/subclusters/sc-a/deregister"+asRoot, "{}"); r.status != 409 ||
		!strings.Contains(r.body, "last heartbeat") {
		t.Errorf("deregister: %d %s", r.status, r.body)
	}
	if r := call(t, web, "DELETE", "/api/v1/subclusters/sc-a"+asRoot, ""); r.status != 409 {
		t.Errorf("remove: %d %s", r.status, r.body)
	}
	if r := call(t, web, "POST", "/api/v1/subclusters/sc-a/deregister"+asAlice, "{}"); r.status != 403 {
		t.Errorf("by alice: %d %s", r.status, r.body)
	}
}

// Policies are written through a router: with the version they replace, by
// administrators, and only if they can decide something.
func TestPoliciesAreWrittenThroughARouter(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	web := f.Routers[0].Web
	const path = "/api/v1/policies/root.other"
	put := func(user, body string, status int, words string) reply {
		t.Helper()
		r := call(t, web, "PUT", path+user, body)
		if r.status != status || !strings.Contains(r.body, words) {
			t.Fatalf("put %s: %d %s, want %d with %q", body, r.status, r.body, status, words)
		}
		return r
	}
	const toA, toB = `{"home":{"policy":"weighted","weights":{"sc-a":1}}}`, `{"home":{"policy":"weighted","weights":{"sc-b":1}}}`
	if r := call(t, web, "GET", path, ""); r.status != 404 {
		t.Errorf("before there is one: %d %s", r.status, r.body)
	}
	put(asAlice, `{"document":`+toA+`}`, 403, "yarn.admin.acl")
	put(asRoot, `{"document":{"home":{"policy":"weighted","weights":{"nowhere":1}}}}`, 400, "no subcluster has that name")
	put(asRoot, `{"document":{"hom":{}}}`, 400, "unknown field")
	put(asRoot, `{"documents":{}}`, 400, "documents")
	first := put(asRoot, `{"document":`+toA+`,"comment":"the first"}`, 200, `"author":"root"`)
	version := at(t, first.body, "version").(float64)
	put(asRoot, `{"document":`+toB+`}`, 409, "version")
	f.Until("what it says is done", func() bool {
		_, home := submit(t, f, web, "to a", "other")
		return home.ID == "sc-a"
	})
	put(asRoot, fmt.Sprintf(`{"document":%s,"expect":%.0f}`, toB, version), 200, "weighted")
	if r := call(t, web, "GET", path+"/history", ""); len(at(t, r.body, "policies").([]any)) != 2 {
		t.Errorf("history: %s", r.body)
	}
	if r := call(t, web, "GET", "/api/v1/policies/root.other.deep", ""); at(t, r.body, "queue") != "root.other" {
		t.Errorf("of a queue below: %s", r.body)
	}
	if r := call(t, web, "GET", fmt.Sprintf("%s?version=%.0f", path, version), ""); at(t, r.body, "comment") != "the first" {
		t.Errorf("an earlier version: %s", r.body)
	}
	if r := call(t, web, "GET", "/api/v1/policies", ""); len(at(t, r.body, "policies").([]any)) != 1 {
		t.Errorf("list: %s", r.body)
	}
	if r := call(t, web, "PUT", "/api/v1/policies/other"+asRoot, `{"document":`+toA+`}`); r.status != 400 {
		t.Errorf("half a path: %d %s", r.status, r.body)
	}
}

// The reason for rejecting an order is written for people, and nothing is changed.
func TestOrdersThatMeanNothingAreRefused(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	web := f.Routers[0].Web
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"DELETE", "/subclusters/nosuch", "", 404, `there is no subcluster "nosuch"`},
		{"DELETE", "/subclusters/a%20b%2Fc", "", 400, `invalid subcluster id "a b/c"`},
		{"DELETE", "/subclusters/nosuch/drain", "", 404, `there is no subcluster "nosuch"`},
		{"PUT", "/subclusters/nosuch/drain", `{}`, 404, `there is no subcluster "nosuch"`},
		{"POST", "/subclusters/nosuch/deregister", `{}`, 404, `there is no subcluster "nosuch"`},
		{"POST", "/subclusters/%25zz/deregister", `{}`, 400, `invalid subcluster id "%zz"`},
		{"GET", "/moves?drain=nosuch", "", 404, `there is no subcluster "nosuch"`},
		{"POST", "/queues/mends", `{"members":["nosuch"]}`, 404, `there is no subcluster "nosuch"`},
		{"PUT", "/subclusters/sc-a/drain", `[]`, 400, "it is a list, not an object"},
		{"PUT", "/subclusters/sc-a/drain", `{"mode":5}`, 400, "mode has a number where a text is expected"},
		{"PUT", "/subclusters/sc-a/drain", `{"mod":"stop"}`, 400, `unknown field "mod"`},
		{"PUT", "/subclusters/sc-a/drain", `{"mode":"stop"} garbage`, 400, "trailing text after the document"},
		{"PUT", "/subclusters/sc-a/drain", `{"mode":"stop"`, 400, "it ends too early"},
		{"PUT", "/subclusters/sc-a/drain", `{mode}`, 400, "invalid character 'm'"},
		{"PUT", "/subclusters/sc-a/drain", `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, 400, "longer than 1048576 bytes"},
		{"PUT", "/rebalancer/paused", `{"paused":"yes"}`, 400, "paused has a text where true or false is expected"},
		{"POST", "/moves/undo", `{"applications":"all"}`, 400, "applications has a text where a list is expected"},
		{"POST", "/queues/mends", `{"undo":1.5}`, 400, "undo has the number 1.5 where a whole number is expected"},
		{"PUT", "/policies/root.other", `{"document":[]}`, 400, "it is a list, not an object"},
		{"PUT", "/policies/root.other", `{"document":{"home":{"policy":5}}}`, 400, "home.policy has a number where a text is expected"},
		{"PUT", "/policies/root.other", `{"document":{"home":[]}}`, 400, "home has a list where an object is expected"},
		{"POST", "/policies/root.other/preview", `{"document":"x"}`, 400, "it is a text, not an object"},
		{"PUT", "/queues", `{"document":[]}`, 400, "it is a list, not an object"},
		{"PUT", "/queues", `{"document":{"queues":[{"queue":5}]}}`, 400, "queue has a number where a text is expected"},
		{"PUT", "/policies/root.other", `{"expect":0}`, 400, "document is missing"},
		{"PUT", "/policies/root.other", ` `, 400, "document is missing"},
		{"PUT", "/queues", `{}`, 400, "document is missing"},
		{"PUT", "/policies/root.other", `{"document":null}`, 404, "root.other has no policy of its own"},
		{"POST", "/queues/mends", `{"undo":-3}`, 400, "no mend of version -3"},
		{"POST", "/queues/mends", `{"undo":9223372036854775807}`, 404, "no mend of version 9223372036854775807"},
	} {
		who := asRoot
		if strings.Contains(c.path, "?") {
			who = "&" + asRoot[1:]
		}
		r := call(t, web, c.method, "/api/v1"+c.path+who, c.body)
		detail, _ := at(t, r.body, "detail").(string)
		if r.status != c.status || !strings.Contains(detail, c.words) || strings.Contains(detail, "Go ") ||
			strings.Contains(detail, "json:") || strings.Contains(detail, "strconv") {
			t.Errorf("%s %s %.80s: %d %s, want %d with %q", c.method, c.path, c.body, r.status, r.body, c.status, c.words)
		}
	}
	if r := call(t, web, "GET", "/api/v1/policies", ""); len(at(t, r.body, "policies").([]any)) != 0 {
		t.Errorf("versions of policies were made: %s", r.body)
	}
}

// sleeperIsRefused submits to the first member, which is drained, as a router would that was paused since it chose
// it. A new application is rejected, so that the router chooses another home. A repeat of one that is there is
// accepted, as is a client's direct submission.
func sleeperIsRefused(t *testing.T, f *routertest.Federation, there string) {
	t.Helper()
	submitAt := func(id creel.ApplicationID, claim int64) error {
		request := &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId: pb.FromApplicationID(id), ApplicationName: proto.String("late"), Queue: proto.String("default"),
			AmContainerSpec: &pb.ContainerLaunchContextProto{}, UnmanagedAm: proto.Bool(true),
		}}
		body, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if claim > 0 {
			request = pb.Encoded(&pb.SubmitApplicationRequestProto{}, yarnrpc.WithClaim(body, claim))
		}
		direct := yarnrpc.NewApplicationClientProtocolClient(f.RPC, f.Members[0].Client.Address, hrpc.Login{User: "alice"})
		_, err = direct.SubmitApplication(t.Context(), request)
		if err == nil && id.String() != there {
			_, err := direct.ForceKillApplication(t.Context(),
				&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})
			if err != nil {
				t.Error(err)
			}
		}
		return err
	}
	known, err := creel.ParseApplicationID(there)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func(n int32) creel.ApplicationID {
		return creel.ApplicationID{ClusterTimestamp: known.ClusterTimestamp + 1, ID: n}
	}
	n := int32(0)
	next := func() creel.ApplicationID { n++; return fresh(n) }
	f.Until("the member knows that it is drained", func() bool { return submitAt(next(), 1) != nil })
	if err := submitAt(next(), 1); err == nil || !strings.Contains(err.Error(), "it is drained") {
		t.Errorf("an application of a router that slept: %v", err)
	}
	if err := submitAt(known, 1); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := submitAt(next(), 0); err != nil {
		t.Errorf("a client's own: %v", err)
	}
}
