// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"github.com/creelrm/creel"
)

// A UAM was killed, and other applications have pushed it out of the list. Its AM still runs and needs the member
// again. The AM would take a container with an id that it had before for the ended one.
func TestUAMAfterItsListingGetsNewContainerIDs(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxCompletedApps = 1 })
	w.node("n", 8192, 8, "/r")
	attempt := w.unmanaged("ann", "default")
	issued := map[creel.ContainerID]bool{}
	for round := range 3 {
		if round > 0 {
			s := &Submission{ID: attempt.Application, User: "ann", Queue: "default", Unmanaged: true}
			if err := w.m.Submit(w.now, s); err != nil {
				t.Fatal(err)
			}
			w.pump()
			w.register(attempt)
		}
		got := w.asks(attempt, ask(1, "*", 1024, 1, 2))
		if len(got.Granted) != 2 {
			t.Fatalf("round %d: asked for 2 and got %d", round, len(got.Granted))
		}
		for _, c := range got.Granted {
			if issued[c.ID] {
				t.Errorf("round %d: %v was issued before", round, c.ID)
			}
			issued[c.ID] = true
		}
		for _, id := range []creel.ApplicationID{attempt.Application, w.unmanaged("bob", "default").Application} {
			if _, err := w.m.Kill(w.now, id, "by an operator"); err != nil {
				t.Fatal(err)
			}
			w.pump()
		}
		if _, listed := w.m.App(attempt.Application); listed {
			t.Fatal("the ended UAM is still listed")
		}
	}
	w.audit()
}

// The store lost the home of an application that had a UAM here. The UAM has ended and is not listed any more. A repeat
// of the submission makes this member the home: nodes and the log of the UAM have the earlier ids.
func TestApplicationAfterItsUAMGetsNewContainerIDs(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxCompletedApps = 1 })
	w.node("n", 8192, 8, "/r")
	attempt := w.unmanaged("ann", "default")
	granted := w.asks(attempt, ask(1, "*", 1024, 1, 2)).Granted
	w.forget(attempt.Application)
	if err := w.m.Submit(w.now, &Submission{
		ID: attempt.Application, User: "ann", Queue: "default", Claim: 1,
		AM: ask(0, "*", 1024, 1, 1),
	}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	am := w.m.apps.byID[attempt.Application].current.am
	if last := granted[len(granted)-1].ID; am.ID <= last.ID {
		t.Errorf("the UAM had %v, then its application has the AM %v", last, am)
	}
	w.audit()
}

// An application has ended here. Then the store lost its home, it runs elsewhere, and asks for containers here.
func TestUAMAfterItsApplicationGetsNewContainerIDs(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxCompletedApps = 1 })
	w.node("n", 8192, 8, "/r")
	attempt := w.submit("ann", "default", nil)
	am := w.m.apps.byID[attempt.Application].current.am
	w.forget(attempt.Application)
	s := &Submission{ID: attempt.Application, User: "ann", Queue: "default", Unmanaged: true}
	if err := w.m.Submit(w.now, s); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.register(attempt)
	granted := w.asks(attempt, ask(1, "*", 1024, 1, 1)).Granted
	if first := granted[0].ID; am.ID == 0 || first.ID <= am.ID {
		t.Errorf("the application had the AM %v, then its UAM has %v", am, first)
	}
	w.audit()
}

// forget ends an application, and another one that pushes it out of the list.
func (w *world) forget(id creel.ApplicationID) {
	w.t.Helper()
	for _, id := range []creel.ApplicationID{id, w.unmanaged("bob", "default").Application} {
		if _, err := w.m.Kill(w.now, id, "by an operator"); err != nil {
			w.t.Fatal(err)
		}
		w.pump()
	}
	if _, listed := w.m.App(id); listed {
		w.t.Fatal("the ended application is still listed")
	}
}

// The oldest applications are dropped from each table, so that its size is bounded, and push out none of the other.
func TestIssuedNumbersOfOldApplicationsAreDropped(t *testing.T) {
	var all issuedNumbers
	uam, home := &Submission{Unmanaged: true}, &Submission{Claim: 1}
	all.remember(&app{id: creel.ApplicationID{ClusterTimestamp: 2}, sub: uam, attempts: []*attempt{{lastSeq: 7}}})
	for n := range int32(maxDisowned + 2) {
		id := creel.ApplicationID{ClusterTimestamp: 1, ID: n}
		all.remember(&app{id: id, sub: home, attempts: []*attempt{{lastSeq: 7}}})
	}
	if n, k := len(all.homes.numbers), len(all.homes.order); n != maxDisowned || k != maxDisowned {
		t.Errorf("%d numbers of %d applications are left, want %d", n, k, maxDisowned)
	}
	if all.of(creel.ApplicationID{ClusterTimestamp: 2}) != 7 {
		t.Error("ended applications push out the UAM of another")
	}
	for n := range int32(maxDisowned + 2) {
		id := creel.ApplicationID{ClusterTimestamp: 1, ID: n}
		all.remember(&app{id: id, sub: uam, attempts: []*attempt{{lastSeq: 7}}})
	}
	if n, k := len(all.uams.numbers), len(all.uams.order); n != maxDisowned || k != maxDisowned {
		t.Errorf("%d numbers of %d UAMs are left, want %d", n, k, maxDisowned)
	}
}
