// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byRPC and byREST submit through a router, each by its protocol, like a client that may ask again.
func byRPC(ctx context.Context, f *routertest.Federation, r *routertest.Router, id creel.ApplicationID) error {
	_, err := f.As(r, "alice").
		SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: routertest.Context(id, "story")})
	return err
}

func byREST(ctx context.Context, _ *routertest.Federation, r *routertest.Router, id creel.ApplicationID) error {
	return post(ctx, r.Web, id)
}

func post(ctx context.Context, address string, id creel.ApplicationID) error {
	return postAs(ctx, address, "alice", id)
}

func postAs(ctx context.Context, address, user string, id creel.ApplicationID) error {
	body := fmt.Sprintf(
		`{"application-id":%q,"application-name":"story","application-type":"TEST","unmanaged-AM":true,"queue":"default","resource":{"memory":128,"vCores":1},"am-container-spec":{}}`,
		id,
	)
	req, err := http.NewRequestWithContext(
		ctx,
		"POST",
		"http://"+address+"/ws/v1/cluster/apps?user.name="+user,
		strings.NewReader(body),
	)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != 202 {
		err = fmt.Errorf("%s: %s", res.Status, b)
	}
	return err
}

var protocols = []struct {
	name   string
	submit func(context.Context, *routertest.Federation, *routertest.Router, creel.ApplicationID) error
}{{"RPC", byRPC}, {"REST", byREST}}

func newID(t *testing.T, f *routertest.Federation, r *routertest.Router) creel.ApplicationID {
	t.Helper()
	a, err := f.As(r, "alice").GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	return pb.ToApplicationID(a.GetApplicationId())
}

// once checks that exactly one member runs the application, and that the store
// names it.
func once(t *testing.T, f *routertest.Federation, id creel.ApplicationID) creel.SubclusterID {
	t.Helper()
	homes := f.Homes(id)
	recorded, err := f.Store.Home(t.Context(), id)
	if err != nil || len(homes) != 1 || homes[0] != recorded {
		t.Fatalf("%s is at %v, recorded at %q, %v", id, homes, recorded, err)
	}
	return recorded
}

// A router dies for good between any two steps of a submission; the client asks
// another router, by the same protocol. The application runs once.
func TestARouterDiesWithinASubmission(t *testing.T) {
	for _, protocol := range protocols {
		for name, point := range map[string]routertest.Point{"before the claim": routertest.BeforeClaim, "after the claim": routertest.AfterClaim} {
			t.Run(protocol.name+", "+name, func(t *testing.T) {
				f := routertest.Start(t, routertest.Options{})
				id := newID(t, f, f.Routers[0])
				reached := f.Routers[0].HoldAt(point)
				first := make(chan error, 1)
				go func() { first <- protocol.submit(t.Context(), f, f.Routers[0], id) }()
				<-reached
				if homes := f.Homes(id); len(homes) != 0 {
					t.Fatalf("already at %v", homes)
				}
				f.Routers[0].Kill()
				if err := <-first; err == nil {
					t.Fatal("a dead router said yes")
				}
				if err := protocol.submit(t.Context(), f, f.Routers[1], id); err != nil {
					t.Fatal(err)
				}
				once(t, f, id)
			})
		}
		t.Run(protocol.name+", after the home took it", func(t *testing.T) {
			f := routertest.Start(t, routertest.Options{})
			id := newID(t, f, f.Routers[0])
			// Connections are made before answers are held back.
			if _, err := f.As(f.Routers[0], "alice").
				GetClusterMetrics(t.Context(), &pb.GetClusterMetricsRequestProto{}); err != nil {
				t.Fatal(err)
			}
			for _, m := range f.Members {
				m.Client.Hold(nil)
				m.Web.Hold(nil)
			}
			first := make(chan error, 1)
			go func() { first <- protocol.submit(t.Context(), f, f.Routers[0], id) }()
			f.Until("a member has it", func() bool { return len(f.Homes(id)) > 0 })
			f.Routers[0].Kill()
			for _, m := range f.Members {
				m.Client.Release()
				m.Web.Release()
			}
			if err := <-first; err == nil {
				t.Fatal("a dead router said yes")
			}
			if err := protocol.submit(t.Context(), f, f.Routers[1], id); err != nil {
				t.Fatal(err)
			}
			once(t, f, id)
		})
	}
}

// The first home is off the network; the submission moves on, and the router
// dies right after it wrote the move.
func TestARouterDiesAfterAMove(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol.name, func(t *testing.T) {
			f := routertest.Start(t, routertest.Options{})
			f.Members[0].Cut()
			// Ids come from either; some submission chooses the silent member first.
			reached := f.Routers[0].HoldAt(routertest.AfterMove)
			var id creel.ApplicationID
			done := make(chan error, 1)
			for held := false; !held; {
				id = f.Members[1].NewApplicationID()
				go func() { done <- protocol.submit(t.Context(), f, f.Routers[0], id) }()
				select {
				case <-reached:
					held = true
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					once(t, f, id)
				}
			}
			f.Routers[0].Kill()
			if err := <-done; err == nil {
				t.Fatal("a dead router said yes")
			}
			f.Members[0].Mend()
			if err := protocol.submit(t.Context(), f, f.Routers[1], id); err != nil {
				t.Fatal(err)
			}
			if home := once(t, f, id); home != f.Members[1].ID {
				t.Errorf("it is at %s, and was moved to %s", home, f.Members[1].ID)
			}
		})
	}
}

// A home that may have taken a submission is not left: the router reports that the outcome is unclear, keeps the
// claim, and a repeat finds out.
func TestAnUnclearAnswerKeepsTheHome(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol.name, func(t *testing.T) {
			f := routertest.Start(t, routertest.Options{Trips: 1000})
			for _, m := range f.Members {
				m.Mute()
			}
			id := f.Members[0].NewApplicationID()
			if err := protocol.submit(
				t.Context(),
				f,
				f.Routers[0],
				id,
			); err == nil ||
				!strings.Contains(err.Error(), "may run it") {
				t.Fatalf("nobody answered, and the router says %v", err)
			}
			claimed, err := f.Store.Home(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range f.Members {
				m.Mend()
			}
			if err := protocol.submit(t.Context(), f, f.Routers[1], id); err != nil {
				t.Fatal(err)
			}
			if home := once(t, f, id); home != claimed {
				t.Errorf("claimed for %s, at %s", claimed, home)
			}
		})
	}
}

// A client that repeats a submission through any router, by any protocol, changes
// nothing.
func TestRepeatsThroughOtherRouters(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3})
	for range 6 {
		id := newID(t, f, f.Routers[0])
		for i := range 6 {
			if err := protocols[i%2].submit(t.Context(), f, f.Routers[i/2%2], id); err != nil {
				t.Fatal(err)
			}
			once(t, f, id)
		}
	}
	all, err := f.As(f.Routers[0], "alice").GetApplications(t.Context(), &pb.GetApplicationsRequestProto{})
	if err != nil || len(all.GetApplications()) != 6 {
		t.Errorf("%d applications of 6 submissions, %v", len(all.GetApplications()), err)
	}
	counts := f.Routers[0].Server.Counts()
	if counts.Accepted.Load() != counts.Submitted.Load() || counts.Failed.Load() != 0 {
		t.Errorf("accepted %d of %d, failed %d", counts.Accepted.Load(), counts.Submitted.Load(), counts.Failed.Load())
	}
}

// Two routers get one submission at the same moment: one home wins, and both succeed.
func TestTheSameSubmissionAtOnce(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3})
	for range 5 {
		id := newID(t, f, f.Routers[0])
		answers := make(chan error, 4)
		for i := range 4 {
			go func() { answers <- protocols[i%2].submit(t.Context(), f, f.Routers[i/2], id) }()
		}
		for range 4 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		once(t, f, id)
	}
}

// An application that went past the routers is found by asking everyone, and
// only while everyone answers is "not found" an answer.
func TestSubmittedPastTheRouters(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3, Routers: 1})
	r := f.Routers[0]
	id := f.Members[2].NewApplicationID()
	ctx := t.Context()
	if _, err := r.Server.Home(ctx, id); err == nil {
		t.Fatal("found before it was there")
	}
	if err := post(ctx, f.Members[2].WebAddress, id); err != nil {
		t.Fatal(err)
	}
	m, err := r.Server.Home(ctx, id)
	if err != nil || m.ID != f.Members[2].ID {
		t.Fatalf("found at %v, %v", m, err)
	}
	f.Members[0].Cut()
	if _, err := r.Server.Home(
		ctx,
		creel.ApplicationID{ClusterTimestamp: 1, ID: 1},
	); err == nil || !strings.Contains(err.Error(), "cannot be found now") ||
		!strings.Contains(err.Error(), string(f.Members[0].ID)) {
		t.Errorf("an unknown application while %s is silent: %v", f.Members[0].ID, err)
	}
}

// A member that is silent is asked a few times, then no more; it is asked again after a while, and is back as soon as
// it answers. Calls of other kinds have breakers of their own.
func TestBreakers(t *testing.T) {
	opened := make(chan string, 100) // a state may be over before a slow test has looked; that it occurred is not lost
	f := routertest.Start(t, routertest.Options{Routers: 1, Trips: 3, OpenFor: 100 * time.Millisecond,
		Breaker: func(id creel.SubclusterID, k remote.Kind, to string) {
			if to == "open" {
				opened <- fmt.Sprintf("%s/%s", id, k)
			}
		}})
	g, ctx := f.Routers[0].Server, t.Context()
	m, err := g.Member(f.Members[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	// Calls that read one thing: lists a router asks for by itself, too.
	ask := func(kind remote.Kind) error {
		_, _, err := m.Web(ctx, kind, "GET", "/ws/v1/cluster/info", "", nil, nil)
		return err
	}
	if err := ask(remote.Read); err != nil {
		t.Fatal(err)
	}
	f.Members[0].Cut()
	for i := range 3 {
		if len(opened) != 0 {
			t.Errorf("open after %d silences", i)
		}
		if err := ask(remote.Read); err == nil {
			t.Fatal("an answer over a cut network")
		}
	}
	if want := fmt.Sprintf("%s/%s", m.ID, remote.Read); len(opened) != 1 || <-opened != want {
		t.Fatalf("after three silences not only %s is open", want)
	}
	parts := server.Ask(ctx, g, func(ctx context.Context, m *remote.Member) (bool, error) {
		_, _, err := m.Web(ctx, remote.Read, "GET", "/ws/v1/cluster/info", "", nil, nil)
		return err == nil, err
	})
	if len(parts) != 2 || parts[0].Err == nil || parts[1].Err != nil {
		t.Errorf("asked all: %+v", parts)
	}
	if g.Counts().Partial.Load() == 0 {
		t.Error("a partial answer was not counted")
	}
	f.Members[0].Mend()
	f.Until("the breaker lets calls through again", func() bool { return ask(remote.Read) == nil })
	if open := m.Open(); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

// The memory of a router is bounded; for forgotten homes it asks the store.
func TestForgottenHomes(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 2})
	id := newID(t, f, f.Routers[0])
	if err := byRPC(t.Context(), f, f.Routers[0], id); err != nil {
		t.Fatal(err)
	}
	home := once(t, f, id)
	if _, seen := f.Routers[1].Server.HomeSeen(id); seen {
		t.Error("the other router knows without asking")
	}
	if out, ok := f.Routers[0].Server.Decision(
		id,
	); !ok || out.Home != home || len(out.Tries) != 1 ||
		out.Tries[0].Reason.Policy == "" {
		t.Errorf("the decision: %+v, %v", out, ok)
	}
	f.Routers[0].Server.Forget(id)
	if n, bound := f.Routers[0].Server.RememberedHomes(); n != 0 || bound != 100_000 {
		t.Errorf("%d homes of at most %d are remembered", n, bound)
	}
	for _, r := range f.Routers {
		if m, err := r.Server.Home(t.Context(), id); err != nil || m.ID != home {
			t.Errorf("home is %v, %v", m, err)
		}
		if n, _ := r.Server.RememberedHomes(); n != 1 {
			t.Errorf("%d homes are remembered, want the one just read", n)
		}
	}
}

// Without an active member, or without one that answers, a submission is rejected with a reason, and nothing is left
// behind.
func TestNoMembers(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	id := newID(t, f, f.Routers[0])
	for _, m := range f.Members {
		m.Cut()
	}
	for _, protocol := range protocols {
		if err := protocol.submit(
			t.Context(),
			f,
			f.Routers[0],
			id,
		); err == nil ||
			!strings.Contains(err.Error(), "sc-") {
			t.Errorf("%s: %v", protocol.name, err)
		}
	}
	for _, m := range f.Members {
		m.Mend()
	}
	f.Until(
		"it is taken once somebody is there",
		func() bool { return byREST(t.Context(), f, f.Routers[0], id) == nil },
	)
	once(t, f, id)
}
