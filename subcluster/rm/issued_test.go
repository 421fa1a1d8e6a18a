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

// The oldest UAMs are dropped from the table, so that its size is bounded.
func TestIssuedNumbersOfOldUAMsAreDropped(t *testing.T) {
	w := newWorld(t, nil)
	for n := range int32(maxDisowned + 2) {
		id := creel.ApplicationID{ClusterTimestamp: 1, ID: n}
		w.m.rememberIssued(&app{id: id, attempts: []*attempt{{lastSeq: 7}}})
	}
	if n, k := len(w.m.issued.numbers), len(w.m.issued.order); n != maxDisowned || k != maxDisowned {
		t.Errorf("%d numbers of %d UAMs are left, want %d", n, k, maxDisowned)
	}
}
