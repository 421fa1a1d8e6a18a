// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A router gave up a submission that lies in a socket, asked whether the
// application is here, and took it elsewhere. The submission is read afterwards,
// also by the next process, and starts nothing.
func TestDisownedApplicationIsRefusedForOldClaims(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	submission := func(claim int64, unmanaged bool) *Submission {
		return &Submission{
			ID: id, User: "u", Queue: "default", Claim: claim, Unmanaged: unmanaged,
			AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
		}
	}
	durable := func(c *Config) { c.Volatile = false }
	w := newWorld(t, durable)
	upTo, err := w.m.Disown(w.now, id, 3)
	if err != nil || upTo != 3 {
		t.Fatalf("rejected up to claim %d, %v", upTo, err)
	}
	var saved []DisownedClaim
	for _, a := range w.m.Actions(nil) {
		if s, ok := a.(SaveDisowned); ok {
			if s.Seq == 0 || s.Deleted {
				t.Errorf("the record is not one to wait for: %+v", s)
			}
			saved = append(saved, s.Disowned)
		}
	}
	if len(saved) != 1 || saved[0] != (DisownedClaim{id, 3}) {
		t.Fatalf("what must survive is %v", saved)
	}
	if _, err := w.m.Disown(w.now, id, 2); err != nil || len(w.m.Actions(nil)) != 0 {
		t.Errorf("an earlier claim needs no new record: %v", err)
	}

	next := newWorld(t, durable)
	if err := next.m.Recover(next.now, &Recover{Disowned: saved}); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Machine{"the process that said so": w.m, "its successor": next.m} {
		for _, claim := range []int64{0, 1, 3} {
			err := m.Submit(w.now, submission(claim, false))
			if !errors.Is(err, creel.ErrApplicationNotFound) {
				t.Errorf("%s takes it under claim %d: %v", name, claim, err)
			}
		}
		if err := m.Submit(w.now, submission(4, false)); err != nil {
			t.Errorf("%s refuses it under a later claim: %v", name, err)
		}
		if upTo, err := m.Disown(w.now, id, 9); err != nil || upTo != 0 {
			t.Errorf("%s disowns what it has: up to claim %d, %v", name, upTo, err)
		}
	}
}

// A ResourceManager lists a number of ended applications. A repeat of an older one must not run it again, also after a
// restart. A proxy's UAM may come back under its application's id.
func TestRepeatOfForgottenApplicationIsRejected(t *testing.T) {
	durable := func(c *Config) { c.Volatile, c.MaxCompletedApps = false, 1 }
	w := newWorld(t, durable)
	id := func(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }
	submission := func(n int32, claim int64, unmanaged bool) *Submission {
		return &Submission{
			ID: id(n), User: "u", Queue: "default", Claim: claim, Unmanaged: unmanaged,
			AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
		}
	}
	var saved []DisownedClaim
	perform := func() {
		for actions := w.m.Actions(nil); len(actions) > 0; actions = w.m.Actions(nil) {
			for _, a := range actions {
				switch a := a.(type) {
				case SaveApp:
					if a.Seq > 0 {
						w.m.Saved(w.now, a.Seq)
					}
				case SaveDisowned:
					if a.Deleted || a.Disowned.App == id(3) {
						t.Errorf("%+v", a)
					}
					saved = append(saved, a.Disowned)
				}
			}
		}
	}
	run := func(n int32, unmanaged bool) {
		t.Helper()
		if err := w.m.Submit(w.now, submission(n, 1-int64(n/3), unmanaged)); err != nil {
			t.Fatal(err)
		}
		perform()
		if _, err := w.m.Kill(w.now, id(n), "test"); err != nil {
			t.Fatal(err)
		}
		perform()
	}
	run(1, false)
	run(3, true)
	run(2, false)
	next := newWorld(t, durable)
	if err := next.m.Recover(next.now, &Recover{Disowned: saved}); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Machine{"this process": w.m, "its successor": next.m} {
		for _, claim := range []int64{0, 1, 99} {
			err := m.Submit(w.now, submission(1, claim, false))
			if !errors.Is(err, creel.ErrEnded) || m.apps.byID[id(1)] != nil {
				t.Errorf("%s takes it under claim %d: %v", name, claim, err)
			}
		}
		if upTo, err := m.Disown(w.now, id(1), 7); err != nil || upTo != endedClaim {
			t.Errorf("%s does not answer that it ended here: up to claim %d, %v", name, upTo, err)
		}
		if err := m.Submit(w.now, submission(3, 0, true)); err != nil {
			t.Errorf("%s refuses a UAM that comes back: %v", name, err)
		}
	}
	if err := w.m.Submit(w.now, submission(2, 9, false)); err != nil {
		t.Errorf("a repeat of one that is listed: %v", err)
	}
}

// Applications end all the time. They must not push out what a router disowned: its submission may still arrive.
func TestEndedApplicationsPushOutNoDisownedClaim(t *testing.T) {
	id := func(n int) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: int32(n)} }
	w := newWorld(t, func(*Config) {})
	if _, err := w.m.Disown(w.now, id(1), 3); err != nil {
		t.Fatal(err)
	}
	for n := range maxDisowned + 1 {
		w.m.disowned.putEnded(id(n + 2))
	}
	if got := w.m.disowned.claims[id(1)]; got != 3 || len(w.m.disowned.claims) != maxDisowned+1 {
		t.Errorf("claims up to %d are disowned, of %d applications", got, len(w.m.disowned.claims))
	}
	err := w.m.Submit(w.now, &Submission{ID: id(2), User: "u", Queue: "default"})
	if errors.Is(err, creel.ErrEnded) {
		t.Errorf("more ended applications are remembered than %d: %v", maxDisowned, err)
	}
	if err := w.m.Submit(w.now, &Submission{ID: id(3), User: "u", Queue: "default"}); !errors.Is(err, creel.ErrEnded) {
		t.Errorf("an ended application within the limit is submitted again: %v", err)
	}
}

func TestProxyUAMMayFollowDisown(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	w := newWorld(t, func(*Config) {})
	if _, err := w.m.Disown(w.now, id, 3); err != nil {
		t.Fatal(err)
	}
	if err := w.m.Submit(w.now, &Submission{ID: id, User: "u", Queue: "default", Unmanaged: true}); err != nil {
		t.Error(err)
	}
	// The forward that lay in a socket is no repeat of it: were it answered with
	// success, its router would take this member for the home.
	late := Submission{
		ID: id, User: "u", Queue: "default", Claim: 3,
		AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
	}
	if err := w.m.Submit(w.now, &late); !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Errorf("the late forward is answered %v", err)
	}
	if upTo, err := w.m.Disown(w.now, id, 3); upTo != 3 || err != nil {
		t.Errorf("a late question about the claim that was disowned: up to %d, %v", upTo, err)
	}
	if err := w.m.Submit(w.now, &Submission{ID: id, User: "u", Queue: "default", Unmanaged: true}); err != nil {
		t.Errorf("the proxy's repeat is answered %v", err)
	}
}

func TestOnlySoManyDisownedApplicationsAreRemembered(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	first := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	for n := range int32(maxDisowned) + 1 {
		if _, err := w.m.Disown(w.now, creel.ApplicationID{ClusterTimestamp: 1, ID: n + 1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	forgotten := false
	for _, a := range w.m.Actions(nil) {
		s := a.(SaveDisowned)
		forgotten = forgotten || s.Deleted && s.Disowned.App == first
	}
	if len(w.m.disowned.claims) != maxDisowned || !forgotten {
		t.Errorf("%d are remembered, the oldest deleted: %v", len(w.m.disowned.claims), forgotten)
	}
}

func TestForeignIDConflictNamesOwner(t *testing.T) {
	w := newWorld(t, func(*Config) {})
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	s := Submission{
		ID: id, User: "alice", Queue: "default",
		AM: Ask{ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 1},
	}
	if err := w.m.Submit(w.now, &s); err != nil {
		t.Fatal(err)
	}
	again := s
	if err := w.m.Submit(w.now.Add(time.Second), &again); err != nil {
		t.Errorf("a repeat is success: %v", err)
	}
	again.User = "bob"
	var e *creel.Error
	if err := w.m.Submit(w.now, &again); !errors.As(err, &e) || !errors.Is(e.Kind, creel.ErrInvalidRequest) ||
		e.Why != "the application of this id belongs to alice" {
		t.Errorf("another user's submission under the same id: %v", err)
	}
}
