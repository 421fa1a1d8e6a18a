// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// newerCopy is a record of which a process has a newer copy than a store that went back. Each step is called with the
// same store: older before the snapshot, newer after it, and back once the snapshot is restored.
type newerCopy struct {
	record             string
	older, newer, back func(t *testing.T, s statestore.Store)
	home               statestore.ApplicationHome // that its member reports for the rebuild
}

// GoesBack restores a snapshot under the holders of newer copies. No holder is superseded by an older record of its
// own, each can write its record again, and no number is issued again for another value.
func GoesBack(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	copies := []newerCopy{
		epochThatWentBack(), leaseThatWentBack(), sameHolderThatWentBack(), policyThatWentBack(),
		documentThatWentBack(), uamRecordThatWentBack(), newUAMRecordThatWentBack(), drainThatWentBack(),
		moveThatWentBack(), claimThatWentBack(), claimsThatWentBack(), endThatWentBack(),
		keyThatWentBack(), replacedKeyThatWentBack(), tokenThatWentBack(),
	}
	var homes []statestore.ApplicationHome
	for _, c := range copies {
		c.older(t, s)
		if c.home.Home != "" {
			homes = append(homes, c.home)
		}
	}
	identity := must[subcluster.Records](t)(s.Records(ctx)).Store
	restore := d.Back(t)
	d.Advance(10 * time.Millisecond)
	for _, c := range copies {
		c.newer(t, s)
	}
	must[subcluster.Records](t)(s.Records(ctx)) // readers have the newer state
	restore(homes...)
	d.Advance(10 * time.Millisecond)
	if is := must[subcluster.Records](t)(s.Records(ctx)).Store; is == identity {
		t.Errorf("the store went back and still has the identity %q: readers may keep their copies", is)
	}
	for _, c := range copies {
		t.Run(c.record, func(t *testing.T) { c.back(t, s) })
	}
}

// epochThatWentBack: a ResourceManager restarts, and the store has the process before as alive.
func epochThatWentBack() newerCopy {
	var first, second int64
	next := func(t *testing.T, s statestore.Store, previous int64) int64 {
		t.Helper()
		epoch := must[int64](t)(s.NextEpoch(t.Context(), "sc-epoch", previous, false))
		ok(t, s.Register(t.Context(), member("sc-epoch", epoch)))
		return epoch
	}
	return newerCopy{
		record: "epoch",
		older:  func(t *testing.T, s statestore.Store) { first = next(t, s, 0) },
		newer:  func(t *testing.T, s statestore.Store) { second = next(t, s, first) },
		back: func(t *testing.T, s statestore.Store) {
			ctx := t.Context()
			for _, m := range must[subcluster.Records](t)(s.Records(ctx)).Members {
				if m.ID == "sc-epoch" {
					same(t, "epoch that readers see", m.Epoch, first)
				}
			}
			refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-epoch", Epoch: second}), creel.ErrNotRegistered)
			third := next(t, s, second)
			if third <= second {
				t.Errorf("epoch %d is issued after %d", third, second)
			}
			refused(t, s.Register(ctx, member("sc-epoch", second)), creel.ErrStale)
		},
	}
}

// leaseThatWentBack: the store has the holder before, whose lease has not expired.
func leaseThatWentBack() newerCopy {
	var before, holder statestore.Lease
	lease := must[statestore.Lease]
	return newerCopy{
		record: "lease",
		older: func(t *testing.T, s statestore.Store) {
			before = lease(t)(s.Acquire(t.Context(), "leader", "a", time.Hour))
		},
		newer: func(t *testing.T, s statestore.Store) {
			ok(t, s.Release(t.Context(), before))
			holder = lease(t)(s.Acquire(t.Context(), "leader", "b", time.Hour))
		},
		back: func(t *testing.T, s statestore.Store) {
			ctx := t.Context()
			is := lease(t)(s.Renew(ctx, holder, time.Hour))
			same(t, "token of the renewed lease", is.Token, holder.Token)
			same(t, "holder", lease(t)(s.Holder(ctx, "leader")).Holder, "b")
			_, err := s.Renew(ctx, before, time.Hour)
			refused(t, err, creel.ErrStale)
			_, _, err = s.Claim(statestore.Under(ctx, before), App(950), "sc-1", nil)
			refused(t, err, creel.ErrStale)
			claimed[int64](t)(s.Claim(statestore.Under(ctx, holder), App(950), "sc-1", nil))
		},
	}
}

// sameHolderThatWentBack: a holder has acquired its lease again since.
func sameHolderThatWentBack() newerCopy {
	var before, again statestore.Lease
	lease := must[statestore.Lease]
	return newerCopy{
		record: "lease of the same holder",
		older: func(t *testing.T, s statestore.Store) {
			before = lease(t)(s.Acquire(t.Context(), "janitor", "a", time.Hour))
		},
		newer: func(t *testing.T, s statestore.Store) {
			ok(t, s.Release(t.Context(), before))
			again = lease(t)(s.Acquire(t.Context(), "janitor", "a", time.Hour))
		},
		back: func(t *testing.T, s statestore.Store) {
			same(t, "token", lease(t)(s.Renew(t.Context(), again, time.Hour)).Token, again.Token)
			ok(t, s.Release(t.Context(), again))
			next := lease(t)(s.Acquire(t.Context(), "janitor", "c", time.Hour))
			if next.Token <= again.Token {
				t.Errorf("token %d is issued after %d", next.Token, again.Token)
			}
		},
	}
}

func policyThatWentBack() newerCopy {
	var first, second subcluster.Policy
	put := func(t *testing.T, s statestore.Store, expect int64, document string) subcluster.Policy {
		t.Helper()
		return must[subcluster.Policy](t)(s.PutPolicy(t.Context(), statestore.PolicyWrite{
			Queue: "root.back", Expect: expect, Document: []byte(document), Author: "ann",
		}))
	}
	return newerCopy{
		record: "policy",
		older:  func(t *testing.T, s statestore.Store) { first = put(t, s, 0, "{}") },
		newer:  func(t *testing.T, s statestore.Store) { second = put(t, s, first.Version, `{"newer":1}`) },
		back: func(t *testing.T, s statestore.Store) {
			_, err := s.PutPolicy(t.Context(), statestore.PolicyWrite{
				Queue: "root.back", Expect: second.Version, Document: []byte("{}"), Author: "ann",
			})
			refused(t, err, creel.ErrConflict)
			if again := put(t, s, first.Version, `{"other":1}`); again.Version <= second.Version {
				t.Errorf("version %d is issued after %d", again.Version, second.Version)
			}
		},
	}
}

// documentThatWentBack stands for queue trees, escrow, plans, kept changes and the name of the federation.
func documentThatWentBack() newerCopy {
	var first, second statestore.Document
	var seen statestore.DocumentSet
	write := func(expect int64, data string) statestore.DocumentWrite {
		return statestore.DocumentWrite{Class: "back", Name: "tree", Expect: expect, Data: []byte(data), Keep: 5}
	}
	put := func(t *testing.T, s statestore.Store, expect int64, data string) statestore.Document {
		t.Helper()
		return must[statestore.Document](t)(s.PutDocument(t.Context(), write(expect, data)))
	}
	set := func(t *testing.T, s statestore.Store) statestore.DocumentSet {
		t.Helper()
		return must[statestore.DocumentSet](t)(s.Documents(t.Context(), "back"))
	}
	return newerCopy{
		record: "document",
		older:  func(t *testing.T, s statestore.Store) { first = put(t, s, 0, "first") },
		newer: func(t *testing.T, s statestore.Store) {
			second, seen = put(t, s, first.Version, "second"), set(t, s)
		},
		back: func(t *testing.T, s statestore.Store) {
			ctx := t.Context()
			now := must[statestore.DocumentSet](t)(s.DocumentsSince(ctx, "back", seen))
			if d, _ := now.Find("tree"); string(d.Data) != "first" || now.Source == seen.Source {
				t.Errorf("a reader of the newer set sees %q of source %q, before %q", d.Data, now.Source, seen.Source)
			}
			decided := write(first.Version, "third")
			decided.Source = seen.Source
			_, err := s.PutDocument(ctx, decided)
			refused(t, err, creel.ErrConflict)
			if again := put(t, s, first.Version, "other"); again.Version <= second.Version {
				t.Errorf("version %d is issued after %d", again.Version, second.Version)
			}
		},
	}
}

func saveUAM(t *testing.T, s statestore.Store, n int, revision int64, writers ...string) int64 {
	t.Helper()
	return must[int64](t)(s.SaveUAMRecord(t.Context(), statestore.UAMRecord{
		Attempt: Attempt(n, 1), Revision: revision, Home: "sc-1", Writers: writers,
	}))
}

// uamRecordThatWentBack: the record has another proxy as its writer, and amrmproxy.Recording recognizes it.
func uamRecordThatWentBack() newerCopy {
	const n = 901
	return newerCopy{
		record: "UAM record",
		older:  func(t *testing.T, s statestore.Store) { saveUAM(t, s, n, 0, "former") },
		newer: func(t *testing.T, s statestore.Store) {
			saveUAM(t, s, n, saveUAM(t, s, n, 1, "former", "owner"), "former", "owner")
		},
		back: func(t *testing.T, s statestore.Store) {
			is := must[statestore.UAMRecord](t)(s.UAMRecord(t.Context(), Attempt(n, 1)))
			if is.Revision != 1 || len(is.Writers) != 1 {
				t.Fatalf("the record is %+v, want the first revision of its first writer", is)
			}
			saveUAM(t, s, n, is.Revision, "former", "owner")
			ok(t, s.DropUAMRecord(t.Context(), Attempt(n, 1)))
			_, err := s.SaveUAMRecord(t.Context(), statestore.UAMRecord{Attempt: Attempt(n, 1), Home: "sc-1"})
			refused(t, err, creel.ErrConflict)
		},
	}
}

func newUAMRecordThatWentBack() newerCopy {
	const n = 902
	return newerCopy{
		record: "UAM record that the store lacks",
		older:  func(*testing.T, statestore.Store) {},
		newer:  func(t *testing.T, s statestore.Store) { saveUAM(t, s, n, 0, "owner") },
		back: func(t *testing.T, s statestore.Store) {
			same(t, "revision", saveUAM(t, s, n, 0, "owner"), 1)
		},
	}
}

func drainThatWentBack() newerCopy {
	drained := func(t *testing.T, s statestore.Store) string {
		t.Helper()
		m, _ := view(t, s).Member("sc-drained")
		return m.Draining
	}
	var before *subcluster.View
	return newerCopy{
		record: "drain",
		older: func(t *testing.T, s statestore.Store) {
			ok(t, s.Register(t.Context(), member("sc-drained", 1)))
		},
		newer: func(t *testing.T, s statestore.Store) {
			ok(t, s.Drain(t.Context(), "sc-drained", "new kernel"))
			before = view(t, s)
		},
		back: func(t *testing.T, s statestore.Store) {
			same(t, "drain", drained(t, s), "")
			_, drains := statestore.PutBack(before, must[subcluster.Records](t)(s.Records(t.Context())))
			same(t, "drain to restore", drains["sc-drained"], "new kernel")
			ok(t, s.Drain(t.Context(), "sc-drained", drains["sc-drained"]))
			same(t, "restored drain", drained(t, s), "new kernel")
		},
	}
}

func moveThatWentBack() newerCopy {
	app := App(903)
	return newerCopy{
		record: "home that moved",
		home:   statestore.ApplicationHome{ID: app, Home: "sc-2"},
		older: func(t *testing.T, s statestore.Store) {
			claimed[int64](t)(s.Claim(t.Context(), app, "sc-1", nil))
		},
		newer: func(t *testing.T, s statestore.Store) {
			must[creel.SubclusterID](t)(s.Move(t.Context(), app, "sc-1", "sc-2", 1, nil))
		},
		back: func(t *testing.T, s statestore.Store) {
			keepsHome(t, s, app, "sc-2")
			_, err := s.Move(t.Context(), app, "sc-2", "sc-3", 2, nil) // the number of the move that the store lost
			refused(t, err, creel.ErrConflict)
		},
	}
}

func claimThatWentBack() newerCopy {
	app := App(904)
	return newerCopy{
		record: "home that the store lacks",
		home:   statestore.ApplicationHome{ID: app, Home: "sc-1"},
		older:  func(*testing.T, statestore.Store) {},
		newer: func(t *testing.T, s statestore.Store) {
			claimed[int64](t)(s.Claim(t.Context(), app, "sc-1", nil))
		},
		back: func(t *testing.T, s statestore.Store) {
			// The router of the lost claim, which had number 1, may believe that it is alone. Another router's
			// submission has reached the home since.
			_, err := s.Move(t.Context(), app, "sc-1", "sc-3", 1, nil)
			refused(t, err, creel.ErrConflict)
			keepsHome(t, s, app, "sc-1")
		},
	}
}

// claimsThatWentBack: five claims are lost, and the home's ResourceManager knows the last one.
func claimsThatWentBack() newerCopy {
	app := App(906)
	const lost = 5
	return newerCopy{
		record: "claims that a member knows",
		home:   statestore.ApplicationHome{ID: app, Home: "sc-1", Newest: lost},
		older: func(t *testing.T, s statestore.Store) {
			claimed[int64](t)(s.Claim(t.Context(), app, "sc-1", nil))
		},
		newer: func(t *testing.T, s statestore.Store) {
			for range lost - 1 {
				claimed[int64](t)(s.Claim(t.Context(), app, "sc-1", nil))
			}
		},
		back: func(t *testing.T, s statestore.Store) {
			for n := int64(1); n <= lost; n++ { // the routers of the lost claims
				_, err := s.Move(t.Context(), app, "sc-1", "sc-3", n, nil)
				refused(t, err, creel.ErrConflict)
			}
			_, number, err := s.Claim(t.Context(), app, "sc-1", nil)
			ok(t, err)
			if number <= lost {
				t.Errorf("claim %d was issued again; %d were lost", number, lost)
			}
		},
	}
}

// keepsHome expects a home, and a number above 1 for the next claim: another call has made the record.
func keepsHome(t *testing.T, s statestore.Store, app creel.ApplicationID, home creel.SubclusterID) {
	t.Helper()
	is, number, err := s.Claim(context.WithoutCancel(t.Context()), app, "sc-other", nil)
	ok(t, err)
	same(t, "home", is, home)
	if number <= 1 {
		t.Errorf("the claim has number %d, as if it had made the record", number)
	}
}

func endThatWentBack() newerCopy {
	app := App(905)
	forget := func(t *testing.T, s statestore.Store) {
		t.Helper()
		ok(t, s.Forget(t.Context(), app, "sc-1", time.Hour))
	}
	return newerCopy{
		record: "end of an application",
		home:   statestore.ApplicationHome{ID: app, Home: "sc-1"},
		older: func(t *testing.T, s statestore.Store) {
			claimed[int64](t)(s.Claim(t.Context(), app, "sc-1", nil))
		},
		newer: forget,
		back: func(t *testing.T, s statestore.Store) {
			same(t, "end", must[time.Time](t)(s.Ended(t.Context(), app)).IsZero(), true)
			forget(t, s)
			same(t, "end", must[time.Time](t)(s.Ended(t.Context(), app)).IsZero(), false)
		},
	}
}

func keyThatWentBack() newerCopy {
	rotate := func(t *testing.T, s statestore.Store, expect int32, secret string) {
		t.Helper()
		must[statestore.Key](t)(s.RotateKey(t.Context(), "back", expect, []byte(secret), time.Hour))
	}
	return newerCopy{
		record: "key",
		older:  func(t *testing.T, s statestore.Store) { rotate(t, s, 0, "one") },
		newer:  func(t *testing.T, s statestore.Store) { rotate(t, s, 1, "two") },
		back: func(t *testing.T, s statestore.Store) {
			rotate(t, s, 1, "two") // the holder publishes it again
			ring := must[[]statestore.Key](t)(s.Keys(t.Context(), "back"))
			if len(ring) != 2 || string(ring[0].Secret) != "two" {
				t.Errorf("the ring is %+v", ring)
			}
		},
	}
}

// replacedKeyThatWentBack: another process makes the next key, which has the id of the lost one.
func replacedKeyThatWentBack() newerCopy {
	var sealed []byte
	bound := []byte("owner")
	rotate := func(t *testing.T, s statestore.Store, expect int32, secret string) statestore.Key {
		t.Helper()
		return must[statestore.Key](t)(s.RotateKey(t.Context(), "replaced", expect, []byte(secret), time.Hour))
	}
	return newerCopy{
		record: "key that another replaces",
		older:  func(t *testing.T, s statestore.Store) { rotate(t, s, 0, "one") },
		newer: func(t *testing.T, s statestore.Store) {
			sealed = must[[]byte](t)(statestore.Seal(rand.Reader, rotate(t, s, 1, "two"), bound, []byte("plain")))
		},
		back: func(t *testing.T, s statestore.Store) {
			same(t, "id of the next key", rotate(t, s, 1, "three").ID, 2)
			ring := must[[]statestore.Key](t)(s.Keys(t.Context(), "replaced"))
			plain, err := statestore.Open(ring, bound, sealed)
			if !errors.Is(err, creel.ErrInvalidToken) {
				t.Errorf("a value that the lost key sealed is read as %q: %v", plain, err)
			}
		},
	}
}

// tokenThatWentBack: the number of a lost token may be issued again. Routers compare owner and times too.
func tokenThatWentBack() newerCopy {
	var lost statestore.Token
	issue := func(t *testing.T, s statestore.Store) statestore.Token {
		t.Helper()
		asked := statestore.Token{Owner: "ann"}
		return must[statestore.Token](t)(s.IssueToken(t.Context(), asked, time.Hour, time.Hour))
	}
	return newerCopy{
		record: "delegation token",
		older:  func(*testing.T, statestore.Store) {},
		newer:  func(t *testing.T, s statestore.Store) { lost = issue(t, s) },
		back: func(t *testing.T, s statestore.Store) {
			if _, err := s.Token(t.Context(), lost.Number); !errors.Is(err, creel.ErrInvalidToken) {
				t.Errorf("a lost token is live: %v", err)
			}
			if k := issue(t, s); k.Number == lost.Number && k.Issued.Equal(lost.Issued) {
				t.Errorf("two tokens are %+v", k)
			}
		},
	}
}
