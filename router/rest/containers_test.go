// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
)

// running submits an application that runs one AM at its home, and returns another member.
func running(t *testing.T, f *routertest.Federation) (app creel.ApplicationID, home, other *routertest.Member) {
	t.Helper()
	id, home := submit(t, f, f.Routers[0].Web, "in two members", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	return app, home, otherThan(f, home)
}

// otherThan is a member that is not home.
func otherThan(f *routertest.Federation, home *routertest.Member) *routertest.Member {
	if f.Members[0] == home {
		return f.Members[1]
	}
	return f.Members[0]
}

// record writes down that an application's attempt has UAMs, as its proxy does.
func record(t *testing.T, f *routertest.Federation, attempt creel.AttemptID, home *routertest.Member, uams ...statestore.UAM) {
	t.Helper()
	if _, err := f.Store.SaveUAMRecord(t.Context(), statestore.UAMRecord{
		Attempt: attempt, Home: home.ID, UAMs: uams,
	}); err != nil {
		t.Fatal(err)
	}
}

// The attempts of home and of a UAM have different numbers after either was restarted. The list of home's current
// attempt has the containers of all, by REST and by RPC; that of an earlier one is home's.
func TestTheContainersOfAllAttemptsAreListed(t *testing.T) {
	for name, c := range map[string]struct {
		home, uam int32 // the current attempts
		own       bool
	}{
		"the UAM was begun again": {home: 1, uam: 2},
		"home's AM was":           {home: 2, uam: 1},
		"home's AM was, and the UAM has an id of its own": {home: 2, uam: 1, own: true},
		"the UAM was twice, and home's AM":                {home: 2, uam: 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := routertest.Start(t, routertest.Options{Members: 2})
			app, home, other := managed(t, f)
			u := routertest.UAM{Member: other, Of: app}
			if c.own {
				u.OwnID = other.NewApplicationID()
			}
			for f.Launch(u, 2); u.After < c.uam-1; f.Launch(u, 2) {
				f.End(other, u.Attempt())
				u.After++
			}
			now := creel.AttemptID{Application: app, Attempt: 1}
			for runs(f, home, now, 3); now.Attempt < c.home; runs(f, home, now, 3) {
				failAttempt(t, home, now)
				now.Attempt++
			}
			record(t, f, now, home, statestore.UAM{Member: other.ID, OwnID: u.OwnID, Attempt: c.uam, Phase: "running"})
			all := append(lives(t, home, now), lives(t, other, u.Attempt())...)
			if len(all) != 1+3+2 { // home's AM is one
				t.Fatalf("there are %v", all)
			}
			listed(t, f, now, all)
			for _, id := range all {
				found(t, f, now, id)
			}
			if c.home > 1 {
				listed(t, f, creel.AttemptID{Application: app, Attempt: 1}, nil)
			}
		})
	}
}

// managed is running for an application whose AM runs in a container, and a second time if it fails.
func managed(t *testing.T, f *routertest.Federation) (app creel.ApplicationID, home, other *routertest.Member) {
	t.Helper()
	app = f.Members[0].NewApplicationID()
	c := routertest.Context(app, "in two members")
	c.UnmanagedAm, c.MaxAppAttempts = new(false), new(int32(2))
	if _, err := f.As(f.Routers[0], "alice").SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: c,
	}); err != nil {
		t.Fatal(err)
	}
	home = f.Member(f.Homes(app)[0])
	return app, home, otherThan(f, home)
}

// runs waits until an attempt's AM is launched, and has it take containers.
func runs(f *routertest.Federation, m *routertest.Member, attempt creel.AttemptID, containers int32) {
	f.Until("the AM of "+attempt.String()+" is launched", func() bool {
		var launched bool
		err := m.D.Query(context.Background(), func(m *rm.Machine, _ time.Time) {
			v, _ := m.Attempt(attempt)
			launched = v.Internal == "LAUNCHED"
		})
		return err == nil && launched
	})
	f.Take(m, attempt, containers)
}

func failAttempt(t *testing.T, m *routertest.Member, attempt creel.AttemptID) {
	t.Helper()
	var refused error
	if err := m.D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
		refused = m.FailAttempt(now, attempt)
	}); err != nil || refused != nil {
		t.Fatal(errors.Join(err, refused))
	}
}

// lives returns the containers of an attempt in a member, as that reports them.
func lives(t *testing.T, m *routertest.Member, attempt creel.AttemptID) (ids []creel.ContainerID) {
	t.Helper()
	if err := m.D.Query(t.Context(), func(m *rm.Machine, _ time.Time) {
		for _, c := range m.Containers(attempt) {
			ids = append(ids, c.ID)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// listed requires containers to be those of an attempt.
func listed(t *testing.T, f *routertest.Federation, attempt creel.AttemptID, want []creel.ContainerID) {
	t.Helper()
	texts := []string{}
	for _, id := range want {
		texts = append(texts, id.String())
	}
	slices.Sort(texts)
	r := call(t, f.Routers[0].Web, "GET", containersPath(attempt)+asAlice, "")
	byREST := []string{}
	if list, ok := at(t, r.body, "container").([]any); ok {
		for _, c := range list {
			byREST = append(byREST, c.(map[string]any)["containerId"].(string))
		}
	}
	slices.Sort(byREST)
	if !slices.Equal(byREST, texts) {
		t.Errorf("of %s there are by REST %v, want %v", attempt, byREST, texts)
	}
	answer, err := f.As(f.Routers[0], "alice").GetContainers(t.Context(), &pb.GetContainersRequestProto{
		ApplicationAttemptId: pb.FromAttemptID(attempt),
	})
	if err != nil {
		t.Fatal(err)
	}
	byRPC := []string{}
	for _, c := range answer.GetContainers() {
		byRPC = append(byRPC, pb.ToContainerID(c.GetContainerId()).String())
	}
	slices.Sort(byRPC)
	if !slices.Equal(byRPC, texts) {
		t.Errorf("of %s there are by RPC %v, want %v", attempt, byRPC, texts)
	}
}

func containersPath(attempt creel.AttemptID) string {
	return base + "/apps/" + attempt.Application.String() + "/appattempts/" + attempt.String() + "/containers"
}

// Each container in the list of an attempt is found under the same path, in whatever member it runs. Others are not
// found, in the words of one ResourceManager.
func TestAContainerIsAskedForWhereItRuns(t *testing.T) {
	for name, own := range map[string]bool{"under the application's id": false, "under an id of its own": true} {
		t.Run(name, func(t *testing.T) {
			f := routertest.Start(t, routertest.Options{Members: 2})
			app, home, other := running(t, f)
			attempt := creel.AttemptID{Application: app, Attempt: 1}
			u := routertest.UAM{Member: other, Of: app}
			if own {
				u.OwnID = other.NewApplicationID()
			}
			atHome, there := f.Take(home, attempt, 1)[0], f.Launch(u, 1)[0]
			record(t, f, attempt, home, statestore.UAM{Member: other.ID, OwnID: u.OwnID, Phase: "running"})
			for _, c := range []creel.ContainerID{atHome, there} {
				found(t, f, attempt, c)
			}
			xml := call(t, f.Routers[0].Web, "GET", containerPath(attempt, there), "", "Accept", "application/xml")
			if xml.status != 200 || !strings.Contains(xml.body, "<containerId>"+there.String()+"</containerId>") {
				t.Errorf("as XML: %d %s", xml.status, xml.body)
			}

			later := creel.AttemptID{Application: app, Attempt: 9}
			notFound(t, f, home, "of an attempt that home has not had", containerPath(later, there))
			of := submitEverywhere(t, f, f.Routers[0].Web)[home.ID]
			mixed := strings.Replace(containerPath(attempt, there), "/appattempt_"+app.String()[len("application_"):],
				"/appattempt_"+of[len("application_"):], 1)
			notFound(t, f, home, "under another's attempt", mixed)
			absent := creel.NewContainerID(there.Attempt, there.Epoch(), 1000)
			notFound(t, f, home, "that nobody has", containerPath(attempt, absent))
			another := routertest.UAM{Member: other, Of: home.NewApplicationID(), OwnID: other.NewApplicationID()}
			notFound(t, f, home, "of another application", containerPath(attempt, f.Launch(another, 1)[0]))

			home.Cut()
			found(t, f, attempt, there)
			if r := call(t, f.Routers[0].Web, "GET", containerPath(attempt, atHome), ""); r.status != 503 {
				t.Errorf("of home's, while that is away: %d %s", r.status, r.body)
			}
		})
	}
}

// A UAM that was restarted has an attempt with another number than home's: its containers are found under home's,
// where they are listed, and under their own.
func TestAContainerOfAUAMBegunAgainIsFound(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	app, home, other := running(t, f)
	attempt := creel.AttemptID{Application: app, Attempt: 1}
	f.Take(home, attempt, 1)
	first := routertest.UAM{Member: other, Of: app}
	f.Launch(first, 1)
	f.End(other, first.Attempt())
	c := f.Launch(routertest.UAM{Member: other, Of: app, After: 1}, 1)[0]
	record(t, f, attempt, home, statestore.UAM{Member: other.ID, Attempt: 2, Phase: "running"})
	found(t, f, attempt, c)
	found(t, f, c.Attempt, c)
}

func containerPath(attempt creel.AttemptID, c creel.ContainerID) string {
	return containersPath(attempt) + "/" + c.String() + asAlice
}

func found(t *testing.T, f *routertest.Federation, under creel.AttemptID, c creel.ContainerID) {
	t.Helper()
	r := call(t, f.Routers[0].Web, "GET", containerPath(under, c), "")
	if r.status != 200 || at(t, r.body, "containerId") != c.String() {
		t.Errorf("%s under %s: %d %s", c, under, r.status, r.body)
	}
}

// notFound requires the router's answer about a container to be the home's.
func notFound(t *testing.T, f *routertest.Federation, home *routertest.Member, what, path string) {
	t.Helper()
	want := call(t, home.WebAddress, "GET", path, "")
	if got := call(t, f.Routers[0].Web, "GET", path, ""); got.status != 404 || got.body != want.body {
		t.Errorf("one %s: %d %s, of one ResourceManager %d %s", what, got.status, got.body, want.status, want.body)
	}
}
