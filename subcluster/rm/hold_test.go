// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// fakeJournal plays the part of a journal: it stores a machine's saves for its successor.
type fakeJournal struct {
	apps     map[creel.ApplicationID]AppRecord
	disowned []DisownedClaim
}

func (k *fakeJournal) take(now time.Time, m *Machine) {
	for _, a := range m.Actions(nil) {
		switch a := a.(type) {
		case SaveApp:
			if id := a.Record.Submission.ID; a.Deleted {
				delete(k.apps, id)
			} else {
				k.apps[id] = a.Record
			}
			m.Saved(now, a.Seq)
		case SaveDisowned:
			k.disowned = append(k.disowned, a.Disowned)
			m.Saved(now, a.Seq)
		}
	}
}

func (k *fakeJournal) successor(t *testing.T) *world {
	next := newWorld(t, func(c *Config) { c.Volatile = false })
	r := &Recover{Disowned: k.disowned}
	for _, a := range k.apps {
		r.Apps = append(r.Apps, a)
	}
	if err := next.m.Recover(next.now, r); err != nil {
		t.Fatal(err)
	}
	next.m.Actions(nil)
	return next
}

func TestHoldReleaseAndDropSurviveRestart(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	k := &fakeJournal{apps: map[creel.ApplicationID]AppRecord{}}
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	if err := w.m.Submit(w.now, &Submission{
		ID: id, User: "u", Queue: "default", Claim: 1, Lifetime: time.Hour,
		AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.m.Hold(w.now, id, 2, "x"); !errors.Is(err, creel.ErrBusy) {
		t.Errorf("an application that is not durable yet is held: %v", err)
	}
	k.take(w.now, w.m)
	k.take(w.now, w.m)
	h, err := w.m.Hold(w.now.Add(time.Minute), id, 3, "sc-2, because sc-1 is drained")
	if err != nil || h.Left != 59*time.Minute || h.App.Submitted.IsZero() {
		t.Fatalf("%+v, %v", h, err)
	}
	k.take(w.now, w.m)

	next := k.successor(t)
	node := &RegisterNode{ID: creel.NodeID{Host: "h", Port: 1}, Resource: creel.NewResource(8192, 8)}
	if _, err := next.m.RegisterNode(next.now, node); err != nil {
		t.Fatal(err)
	}
	next.m.NodeHeartbeat(next.now, &NodeReport{ID: node.ID})
	if v, _ := next.m.App(id); v.Held.Claim != 3 || v.Containers != 0 || v.State != creel.AppAccepted {
		t.Fatalf("after a restart it is %+v", v)
	}
	if n := next.m.Cluster().AppsPending; n != 1 {
		t.Errorf("%d applications wait: a drain would be over while it is held", n)
	}
	if _, err := next.m.Hold(next.now, id, 4, "sc-2, because sc-1 is drained"); err != nil {
		t.Errorf("another router goes on: %v", err)
	}
	if err := next.m.Audit(); err != nil {
		t.Error(err)
	}

	t.Run("released", func(t *testing.T) {
		w := k.successor(t)
		k := &fakeJournal{apps: map[creel.ApplicationID]AppRecord{}}
		if err := w.m.ReleaseHold(w.now, id, 5); err != nil {
			t.Fatal(err)
		}
		k.take(w.now, w.m)
		if _, err := k.successor(t).m.Hold(w.now, id, 4, "late"); !errors.Is(err, creel.ErrBusy) {
			t.Errorf("a hold of the move that was given up is answered %v", err)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		w := k.successor(t)
		if err := w.m.DropHeld(w.now, id, 5); err != nil {
			t.Fatal(err)
		}
		k.take(w.now, w.m)
		next := k.successor(t)
		if _, there := next.m.App(id); there {
			t.Error("it is back after a restart")
		}
		err := next.m.Submit(next.now, &Submission{ID: id, User: "u", Queue: "default", Claim: 5})
		if !errors.Is(err, creel.ErrApplicationNotFound) {
			t.Errorf("a late submission of before the move is answered %v", err)
		}
		if err := next.m.Audit(); err != nil {
			t.Error(err)
		}
	})
}

// A lifetime goes on while an application is held, and ends it where it then is.
func TestHeldApplicationLifetimeEndsOnRelease(t *testing.T) {
	w := newWorld(t, func(*Config) {})
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	s := &Submission{
		ID: id, User: "u", Queue: "default", Lifetime: time.Minute,
		AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
	}
	if err := w.m.Submit(w.now, s); err != nil {
		t.Fatal(err)
	}
	if _, err := w.m.Hold(w.now, id, 3, "x"); err != nil {
		t.Fatal(err)
	}
	w.m.Tick(w.now.Add(2 * time.Minute))
	if v, _ := w.m.App(id); v.State != creel.AppAccepted {
		t.Fatalf("while it is held it is %s", v.State)
	}
	if err := w.m.ReleaseHold(w.now.Add(2*time.Minute), id, 4); err != nil {
		t.Fatal(err)
	}
	w.m.Tick(w.now.Add(2 * time.Minute))
	if v, _ := w.m.App(id); v.State != creel.AppKilled {
		t.Errorf("released after its lifetime it is %s", v.State)
	}
}

// A moved application keeps its submission time and the rest of its lifetime.
func TestMovedApplicationKeepsStartAndLifetime(t *testing.T) {
	w := newWorld(t, func(*Config) {})
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	s := &Submission{
		ID: id, User: "u", Queue: "default", Claim: 4, Lifetime: time.Hour,
		Since: w.now.Add(-20 * time.Minute), Left: 10 * time.Minute,
		AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
	}
	if err := w.m.Submit(w.now, s); err != nil {
		t.Fatal(err)
	}
	v, _ := w.m.App(id)
	if !v.Submitted.Equal(s.Since) || !v.Deadline.Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("submitted %v, to be ended %v", v.Submitted, v.Deadline)
	}
}

// A rebuilt state store continues above the highest claim that a ResourceManager reports.
func TestNewestClaimIncludesReleases(t *testing.T) {
	w := newWorld(t, func(*Config) {})
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	newest := func() int64 {
		v, _ := w.m.App(id)
		return v.Held.Newest
	}
	if _, err := w.m.Disown(w.now, id, 2); err != nil {
		t.Fatal(err)
	}
	err := w.m.Submit(w.now, &Submission{ID: id, User: "ann", Queue: "default", Claim: 3, AM: ask(0, "*", 1024, 1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	w.pump()
	if n := newest(); n != 3 {
		t.Errorf("after the submission the newest claim is %d, want 3", n)
	}
	if _, err := w.m.Hold(w.now, id, 5, "sc-2"); err != nil {
		t.Fatal(err)
	}
	if n := newest(); n != 5 {
		t.Errorf("while it is held the newest claim is %d, want 5", n)
	}
	if err := w.m.ReleaseHold(w.now, id, 6); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if n := newest(); n != 6 {
		t.Errorf("after the release the newest claim is %d, want 6", n)
	}
}
