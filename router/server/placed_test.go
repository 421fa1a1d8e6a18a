// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// mapped starts a federation whose members map alice's submissions to root.other. Its policy sends applications to
// sc-b; the policy of root.default sends them to sc-a.
func mapped(t *testing.T, settings ...string) *routertest.Federation {
	f := routertest.Start(t, routertest.Options{Settings: append([]string{
		"yarn.scheduler.capacity.queue-mappings=u:alice:root.other",
	}, settings...)})
	for queue, member := range map[creel.QueuePath]string{"root.default": "sc-a", "root.other": "sc-b"} {
		if _, err := f.Store.PutPolicy(t.Context(), statestore.PolicyWrite{
			Queue: queue, Document: []byte(`{"home":{"policy":"priority","weights":{"` + member + `":1}}}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	f.Until("the routers have the policies", func() bool {
		for _, r := range f.Routers {
			if v := r.Server.View(); len(v.Policies.All()) != 2 {
				return false
			}
		}
		return true
	})
	return f
}

func TestMappedQueueDecidesTheHome(t *testing.T) {
	f := mapped(t)
	for _, protocol := range protocols {
		id := newID(t, f, f.Routers[0])
		if err := protocol.submit(t.Context(), f, f.Routers[0], id); err != nil {
			t.Fatal(err)
		}
		if home := once(t, f, id); home != "sc-b" {
			t.Errorf("%s: home is %s, want sc-b by the policy of root.other", protocol.name, home)
		}
		if a, _ := f.Member("sc-b").App(t.Context(), id); a.Queue != "root.other" {
			t.Errorf("%s: it runs in %q", protocol.name, a.Queue)
		}
	}
	id := newID(t, f, f.Routers[0])
	if err := postAs(t.Context(), f.Routers[0].Web, "bob", id); err != nil {
		t.Fatal(err)
	}
	if home := once(t, f, id); home != "sc-a" {
		t.Errorf("bob's application, which no rule maps, has home %s", home)
	}
}

func TestNamedQueueIsKeptWithoutOverride(t *testing.T) {
	for _, override := range []string{"false", "true"} {
		f := mapped(t, "yarn.scheduler.capacity.queue-mappings-override.enable="+override)
		id := newID(t, f, f.Routers[0])
		named := routertest.Context(id, "named")
		named.Queue = new("root.default")
		_, err := f.As(f.Routers[0], "alice").SubmitApplication(t.Context(),
			&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: named})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]creel.SubclusterID{"false": "sc-a", "true": "sc-b"}[override]
		if home := once(t, f, id); home != want {
			t.Errorf("override %s: home is %s, want %s", override, home, want)
		}
	}
}

// A member answers for the queue of another user's submission only if that user asks, as for a submission.
func TestPlacementIsTheCallersOwn(t *testing.T) {
	f := mapped(t)
	for user, want := range map[string]creel.QueuePath{"alice": "root.other", "bob": "root.default"} {
		request, err := yarnrpc.AskPlacement(routertest.Context(f.Members[0].NewApplicationID(), "any"))
		if err != nil {
			t.Fatal(err)
		}
		client := yarnrpc.NewApplicationClientProtocolClient(f.RPC, f.Members[0].Client.Address, hrpc.Login{User: user})
		r, err := client.GetQueueInfo(t.Context(), request)
		if err != nil || yarnrpc.PlacedIn(r.ProtoReflect().GetUnknown()) != want {
			t.Errorf("%s: %v, %v", user, r, err)
		}
	}
}

// Members that do not answer delay a submission by a bounded time, and the policy of the named queue applies.
func TestPlacementWithoutAnAnswer(t *testing.T) {
	f := mapped(t)
	id := newID(t, f, f.Routers[0])
	for _, m := range f.Members {
		m.Client.Hold(nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := post(ctx, f.Routers[0].Web, id); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Members {
		m.Client.Release()
	}
	if home := once(t, f, id); home != "sc-a" {
		t.Errorf("home is %s, want sc-a by the policy of root.default", home)
	}
}

func TestPlacementScopeOfALoad(t *testing.T) {
	f := mapped(t)
	for i := range f.Members {
		m, _ := f.Routers[0].Server.View().Member(f.Members[i].ID)
		if m.Load.Places != subcluster.PlacesUnnamed {
			t.Errorf("%s reports %q", m.ID, m.Load.Places)
		}
	}
	f = routertest.Start(t, routertest.Options{})
	for i := range f.Members {
		m, _ := f.Routers[0].Server.View().Member(f.Members[i].ID)
		if m.Load.Places != "" {
			t.Errorf("%s, without rules, reports %q", m.ID, m.Load.Places)
		}
	}
}

// A rule that rejects a submission is the home's to apply: its answer reaches the client.
func TestPlacementThatRejects(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Settings: []string{
		"yarn.scheduler.capacity.mapping-rule-format=json",
		`yarn.scheduler.capacity.mapping-rule-json={"rules":[{"type":"user","matches":"alice","policy":"reject"}]}`,
	}})
	_, err := f.As(f.Routers[0], "alice").SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: routertest.Context(newID(t, f, f.Routers[0]), "no"),
	})
	if err == nil || !errors.Is(err, creel.ErrInvalidRequest) {
		t.Errorf("got %v", err)
	}
}
