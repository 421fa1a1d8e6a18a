// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
)

// running submits an application of which one AM runs at its home, and tells another member.
func running(t *testing.T, f *routertest.Federation) (app creel.ApplicationID, home, other *routertest.Member) {
	t.Helper()
	id, home := submit(t, f, f.Routers[0].Web, "in two members", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	other = f.Members[0]
	if other == home {
		other = f.Members[1]
	}
	return app, home, other
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

func containersPath(attempt creel.AttemptID) string {
	return base + "/apps/" + attempt.Application.String() + "/appattempts/" + attempt.String() + "/containers"
}

// What the list of an attempt's containers names is found one by one under the same path, wherever it
// runs; what is not there is not found, in the words of one ResourceManager.
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

// A UAM that was begun again has an attempt of another number than home's: its containers are found under
// home's, under which they are listed, and under their own.
func TestAContainerOfAUAMBegunAgainIsFound(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	app, home, other := running(t, f)
	attempt := creel.AttemptID{Application: app, Attempt: 1}
	f.Take(home, attempt, 1)
	first := routertest.UAM{Member: other, Of: app}
	f.Launch(first, 1)
	f.End(other, first.Attempt())
	c := f.Launch(routertest.UAM{Member: other, Of: app, After: 1}, 1)[0]
	record(t, f, attempt, home, statestore.UAM{Member: other.ID, Phase: "running"})
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

// notFound wants the router to say of a container what home does.
func notFound(t *testing.T, f *routertest.Federation, home *routertest.Member, what, path string) {
	t.Helper()
	want := call(t, home.WebAddress, "GET", path, "")
	if got := call(t, f.Routers[0].Web, "GET", path, ""); got.status != 404 || got.body != want.body {
		t.Errorf("one %s: %d %s, of one ResourceManager %d %s", what, got.status, got.body, want.status, want.body)
	}
}
