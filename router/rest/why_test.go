// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

func whyOf(t *testing.T, web, id string) (doc rest.WhyDoc, body string) {
	t.Helper()
	r := call(t, web, "GET", "/api/v1/apps/"+id+"/why?user.name=alice", "")
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil || r.status != 200 {
		t.Fatalf("why: %d %s, %v", r.status, r.body, err)
	}
	return doc, r.body
}

// Every router explains the choice of a home in the same words, also one that was started since: an application that
// its first choice rejected, under a policy with a version.
func TestEveryRouterExplainsHomeChoice(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3, Change: func(i int, c *rmserver.Config) {
		c.Machine.Queues.Root.Submit = queues.ACL{Users: []string{"alice"}}
		if i == 0 { // alice may do nothing there
			c.ACLs, c.Machine.Queues.Root.Submit, c.Machine.Queues.Root.Admin = true, queues.ACL{}, queues.ACL{}
		}
	}})
	policy, err := f.Store.PutPolicy(t.Context(), statestore.PolicyWrite{
		Queue: "root", Document: []byte(`{"home":{"policy":"priority","weights":{"sc-a":3,"sc-b":2}}}`), Author: "root",
	})
	if err != nil {
		t.Fatal(err)
	}
	one, two := f.Routers[0], f.Routers[1]
	f.Until("the router has the policy", func() bool { return one.Server.View().Policies.Version == policy.Version })
	began := time.Now()
	id, home := submit(t, f, one.Web, "one", "default")
	if home.ID != "sc-b" {
		t.Fatalf("its home is %s", home.ID)
	}
	doc, here := whyOf(t, one.Web, id)
	if n := len(doc.Tries); n != 2 || doc.Submission != "accepted" || doc.Queue != "root.default" ||
		doc.Received.Before(began.Add(-time.Second)) || doc.Claimed.Before(doc.Received) {
		t.Fatalf("at the router that took it: %s", here)
	}
	first, last := doc.Tries[0], doc.Tries[1]
	if first.Member != "sc-a" || first.Verdict != "refused" || !strings.Contains(first.Error, "alice") ||
		last.Member != "sc-b" || last.Verdict != "accepted" || last.Reason == nil {
		t.Errorf("tries: %s", here)
	}
	if r := last.Reason; r.Policy != "priority" || r.Version != policy.Version || r.PolicyOf != "root" ||
		r.Chosen != "sc-b" {
		t.Errorf("reason: %+v, the policy has version %d", r, policy.Version)
	}
	codes := map[creel.SubclusterID]policies.Exclusion{}
	for _, c := range last.Reason.Candidates {
		codes[c.Member] = c.Code
	}
	if len(codes) != 3 || codes["sc-a"] != policies.ExcludedTried || codes["sc-b"] != "" ||
		codes["sc-c"] != policies.ExcludedWeight {
		t.Errorf("candidates: %v", codes)
	}
	if _, there := whyOf(t, two.Web, id); there != here {
		t.Errorf("at the router that took it:\n%s\nat the other:\n%s", here, there)
	}
	one.Restart()
	f.Until(
		"it sees the members again",
		func() bool { v := one.Server.View(); return v != nil && len(v.Active()) == 3 },
	)
	if _, again := whyOf(t, one.Web, id); again != here {
		t.Errorf("before its restart:\n%s\nafter it:\n%s", here, again)
	}
	if r := call(t, two.Web, "GET", "/api/v1/apps/"+id+"/why?user.name=root", ""); r.status != 200 {
		t.Errorf("to an administrator: %d %s", r.status, r.body)
	}

	// A router of a version without placements may have moved it and left the placement as it was. That placement
	// names a former home.
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store.Move(t.Context(), app, "sc-b", "sc-c", 0, kept(t, f, app)); err != nil {
		t.Fatal(err)
	}
	sees := func(home creel.SubclusterID) {
		f.Until("the second router sees it at "+string(home), func() bool {
			two.Server.Forget(app)
			m, err := two.Server.Home(t.Context(), app)
			return err == nil && m.ID == home
		})
	}
	sees("sc-c")
	if doc, body := whyOf(t, two.Web, id); len(doc.Tries) != 0 || doc.Home != "sc-c" || doc.Note == "" {
		t.Errorf("after an earlier version moved it: %s", body)
	}
	sees("sc-c")
	if _, err := f.Store.Move(t.Context(), app, "sc-c", "sc-b", 0, kept(t, f, app)); err != nil {
		t.Fatal(err)
	}
	// The router remembers the former home. That home does not know the application, so the document names the present
	// one.
	if doc, body := whyOf(t, two.Web, id); doc.Home != "sc-b" || doc.State != "ACCEPTED" {
		t.Errorf("while the router remembers a former home: %s", body)
	}
	sees("sc-b")

	// It is deleted with the home. The home's own part is answered all the same.
	if err := f.Store.Forget(t.Context(), app, "sc-b", 0); err != nil {
		t.Fatal(err)
	}
	f.Until("the second router sees that its home is forgotten", func() bool {
		two.Server.Forget(app)
		_, kept, err := two.Server.Placement(t.Context(), app)
		return err == nil && !kept
	})
	two.Server.Forget(app)
	if doc, body := whyOf(t, two.Web, id); len(doc.Tries) != 0 || doc.Home != "sc-b" || doc.Note == "" {
		t.Errorf("after its home is forgotten: %s", body)
	}
}

func kept(t *testing.T, f *routertest.Federation, app creel.ApplicationID) []byte {
	t.Helper()
	b, err := f.Store.Placement(t.Context(), app)
	if err != nil || len(b) == 0 {
		t.Fatalf("kept: %d bytes, %v", len(b), err)
	}
	return b
}

// The wait with the most open asks is the greatest. The queue that holds the room explains a wait for full nodes, and the
// binding unit of a limit is named.
func TestGreatestObstacleIsNamed(t *testing.T) {
	wait := func(code, text string, asked int32) rest.MemberWait {
		return rest.MemberWait{AppWait: subcluster.AppWait{Wait: &subcluster.Wait{
			Code: code, Text: text, Unlock: "wait", Asked: asked,
		}}}
	}
	limited := wait("queue_limit", "Queue root.a is full.", 9)
	limited.Wait.Limit = subcluster.Amounts{"memory-mb": 100, "vcores": 100}
	limited.Wait.Used = subcluster.Amounts{"memory-mb": 100, "vcores": 2}
	limited.Wait.Needs = subcluster.Amounts{"memory-mb": 10, "vcores": 1}
	few := wait("locality", "It waits for h1.", 1)
	holder := func(q creel.QueuePath) (string, string) {
		return string(q) + " gets nothing: root.b holds it.", "preempt"
	}
	nobody := func(creel.QueuePath) (string, string) { return "", "" }
	for name, c := range map[string]struct {
		waits         []rest.MemberWait
		holder        func(creel.QueuePath) (string, string)
		cause, remedy string
	}{
		"nothing":        {[]rest.MemberWait{{}}, holder, "", ""},
		"a limit":        {[]rest.MemberWait{few, limited}, holder, "Queue root.a is full. Only memory-mb exceeds the limit.", "wait"},
		"full nodes":     {[]rest.MemberWait{few, wait("reservation", "Node h1 is reserved.", 5)}, holder, "root.a gets nothing: root.b holds it.", "preempt"},
		"within shares":  {[]rest.MemberWait{wait("no_node_has_room", "No room.", 5)}, nobody, "No room.", "wait"},
		"at one cluster": {[]rest.MemberWait{wait("no_node_has_room", "No room.", 5)}, nil, "No room.", "wait"},
	} {
		doc := rest.WhyDoc{Queue: "root.a", Waits: c.waits}
		doc.Explain(c.holder)
		if doc.Cause != c.cause || doc.Remedy != c.remedy {
			t.Errorf("%s: %q, %q", name, doc.Cause, doc.Remedy)
		}
	}
}
