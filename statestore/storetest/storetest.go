// SPDX-License-Identifier: Apache-2.0

// Package storetest tests the contract of package statestore. Each store passes the same tests, in
// memory and on every deployment of Redis.
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Deployment { ... })
//	}
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Deployment is a store under test.
type Deployment struct {
	// Store is empty and checks policies with Validate.
	Store statestore.Store
	// Again opens the same stored data a second time, as another process would; nil if it cannot.
	Again func(t *testing.T) statestore.Store
	// Advance advances the store's clock by at least d.
	Advance func(d time.Duration)
	// Back takes a snapshot. The result restores it, and rebuilds the store from the homes that members report, as its
	// processes do.
	Back func(t *testing.T) (restore func(homes ...statestore.ApplicationHome))
	// SetSchema writes another schema word, as a foreign creel would.
	SetSchema func(t *testing.T, word string)
}

// Validate rejects documents that start with "bad".
func Validate(_ creel.QueuePath, doc []byte) error {
	if bytes.HasPrefix(doc, []byte("bad")) {
		return errors.New("line 1: it is bad")
	}
	return nil
}

// App makes the n-th application of a test.
func App(n int) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: int32(n)}
}

// Attempt makes the a-th attempt of the n-th application.
func Attempt(n, a int) creel.AttemptID {
	return creel.AttemptID{Application: App(n), Attempt: int32(a)}
}

// Run runs the whole contract, each part on a fresh store.
func Run(t *testing.T, open func(t *testing.T) Deployment) {
	parts := []struct {
		name string
		run  func(t *testing.T, d Deployment)
	}{
		{"a member registers, renews, drains and leaves", members},
		{"a load is read in part by queue names", partialLoads},
		{"epochs of a member rise, and an alive one keeps its name", givenEpochs},
		{"an older epoch of a member is refused", epochs},
		{"a member is removed only when it is gone", removal},
		{"a claim has one winner", claims},
		{"claims and moves of an application are numbered", numberedClaims},
		{"the wait for a home that cannot disown is kept with it", absences},
		{"a move is a compare-and-set", moves},
		{"why a home was chosen is kept with it and goes with it", placements},
		{"a forgotten home stays until its time is over", forgets},
		{"an acceptance lasts as long as its home", accepts},
		{"a home's applications are listed by cursor", listing},
		{"a listing gives each application that stays exactly once", listingUnderChange},
		{"applications have homes", homesOfApplications},
		{"reservations have homes by the same rules", homesOfReservations},
		{"a UAM record has revisions", uamRecords},
		{"UAM records go with their application", uamRecordsGo},
		{"a UAM record that was dropped is not made again by a late save", lateUAMRecord},
		{"policies have versions, history and rollback", policies},
		{"a bad policy never replaces a good one", badPolicies},
		{"a policy version never falls", policyVersions},
		{"documents have versions, history and removal", documents},
		{"recomputed data is no version of a document", revision},
		{"a removed document leaves nothing", documentRemoved},
		{"a class of documents is bounded by its writer", documentBound},
		{"a document that was cut is read in part", documentParts},
		{"a document decided on another source is refused", documentSource},
		{"events are kept in order, once", events},
		{"a write records its event in the same step", recordings},
		{"a lease has one holder and rising tokens", leases},
		{"a write under an old lease is refused", fences},
		{"keys roll over", keys},
		{"a delegation token lives until it expires or is dropped", tokens},
		{"a daemon is listed until it leaves or its time is over", daemons},
		{"daemons are listed by page, in order, and there is room for so many", manyDaemons},
		{"a foreign schema is refused", schema},
		{"changes are heard", watching},
		{"two processes see one truth", twoProcesses},
		{"bad arguments never reach the store", badArguments},
		{"a home is left under its newest claim only", movesUnderNumber},
		{"concurrent claims agree", concurrentClaims},
		{"an ended context ends a call", endedContext},
		{"a store goes back", GoesBack},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, open(t)) })
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// claimed is must for a claim; it returns only the home.
func claimed[N int64 | bool](t *testing.T) func(home creel.SubclusterID, number N, err error) creel.SubclusterID {
	return func(home creel.SubclusterID, _ N, err error) creel.SubclusterID {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return home
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused expects a creel.Error of the kind, with all its texts.
func refused(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got error %v, want the kind %q", err, kind)
	}
	var e *creel.Error
	if !errors.As(err, &e) || e.What == "" || e.Why == "" || e.Try == "" {
		t.Fatalf("error %q does not say what, why and what to try", err)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func member(id creel.SubclusterID, epoch int64) subcluster.Member {
	return subcluster.Member{
		ID:         id,
		Epoch:      epoch,
		Lease:      time.Hour,
		Version:    "creel test",
		Capability: `{"clusterMetrics":{"totalNodes":5}}`,
		Addresses: subcluster.Addresses{
			Client:    "rm:8032",
			Scheduler: "rm:8030",
			Admin:     "rm:8033",
			Tracker:   "rm:8031",
			Web:       "rm:8088",
			Proxy:     "rm:8049",
		},
	}
}

// view reads the store and builds a first view.
func view(t *testing.T, s statestore.Store) *subcluster.View {
	t.Helper()
	r := must[subcluster.Records](t)(s.Records(t.Context()))
	return subcluster.Build(nil, r, r.Now)
}

func state(t *testing.T, s statestore.Store, id creel.SubclusterID) subcluster.State {
	t.Helper()
	m, found := view(t, s).Member(id)
	if !found {
		return subcluster.StateUnknown
	}
	return m.State
}

// givenEpochs: each epoch is higher than all before. A live member loses its name only to its successor, or to
// a process with takeOver.
func givenEpochs(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	next := func(previous int64, takeOver bool) int64 {
		t.Helper()
		e, err := s.NextEpoch(ctx, "sc-1", previous, takeOver)
		ok(t, err)
		return e
	}
	first, second := next(0, false), next(0, false) // two processes start at once, and neither has registered
	if second <= first || first < 1_000_000_000_000 {
		t.Fatalf("epochs %d and %d: want rising ones, from the store's clock on", first, second)
	}
	ok(t, s.Register(ctx, member("sc-1", second)))
	refused(t, s.Register(ctx, member("sc-1", first)), creel.ErrStale)
	_, err := s.NextEpoch(ctx, "sc-1", 0, false)
	refused(t, err, creel.ErrConflict)
	_, err = s.NextEpoch(ctx, "sc-1", first, false)
	refused(t, err, creel.ErrConflict)
	reports := &subcluster.Reporter{ID: "sc-1", Epoch: second}
	ok(t, s.Heartbeat(ctx, reports.Next([]byte(`{"clusterMetrics":{"totalMB":9},"creel":{"queues":[{"queue":"root.a"}]}}`))))
	successor := next(second, false)
	ok(t, s.Register(ctx, member("sc-1", successor)))
	refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: second}), creel.ErrStale)
	taker := next(0, true)
	ok(t, s.Register(ctx, member("sc-1", taker)))
	ok(t, s.Deregister(ctx, "sc-1", taker))
	last := next(0, false)
	ok(t, s.RemoveMember(ctx, "sc-1"))
	if removed := next(0, false); !(second < successor && successor < taker && taker < last && last < removed) {
		t.Errorf("epochs %d, %d, %d, %d, %d do not rise", second, successor, taker, last, removed)
	}
	ahead := member("sc-2", 1<<52) // registered by a version whose epochs were times
	ok(t, s.Register(ctx, ahead))
	e, err := s.NextEpoch(ctx, "sc-2", 1<<52, false)
	ok(t, err)
	same(t, "epoch after one that was ahead of the clock", e, int64(1<<52+1))
	e, err = s.NextEpoch(ctx, "sc-3", 1<<52+7, false) // a store that came back empty, with a slow clock
	ok(t, err)
	same(t, "epoch of a successor that the store knows nothing of", e, int64(1<<52+8))
	_, err = s.NextEpoch(ctx, "sc 1", 0, false)
	refused(t, err, creel.ErrInvalidRequest)
}

func members(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	if r := must[subcluster.Records](t)(s.Records(ctx)); len(r.Members) != 0 || r.Store == "" || r.Now.IsZero() {
		t.Fatalf("an empty store has records %+v, and needs an identity and a clock", r)
	}
	ok(t, s.Register(ctx, member("sc-2", 1)))
	ok(t, s.Register(ctx, member("sc-1", 1)))
	v := view(t, s)
	same(t, "number of members", len(v.Members), 2)
	m, _ := v.Member("sc-1")
	if m.Member != member("sc-1", 1) {
		t.Fatalf("member came back as %+v", m.Member)
	}
	same(t, "state at once after registering", m.State, subcluster.StateActive)
	same(t, "load before the first heartbeat, from the capability,", m.Load.Metrics.TotalNodes, 5)

	ok(
		t,
		s.Heartbeat(
			ctx,
			subcluster.Heartbeat{
				ID:    "sc-1",
				Epoch: 1,
				Load: []byte(
					`{"clusterMetrics":{"totalNodes":7,"availableMB":"2048"},"creel":{"queues":[{"queue":"root.a","free":{"memory":9}}]}}`,
				),
			},
		),
	)
	m, _ = view(t, s).Member("sc-1")
	same(t, "nodes", m.Load.Metrics.TotalNodes, 7)
	same(t, "free MB", m.Load.Metrics.AvailableMB, 2048)
	q, found := m.Load.Queue("root.a")
	if !found || q.Free.MemoryMB != 9 {
		t.Fatalf("queue figures are %+v", m.Load.Queues)
	}
	ok(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 1}))
	m, _ = view(t, s).Member("sc-1")
	same(t, "nodes after a heartbeat without load", m.Load.Metrics.TotalNodes, 7)
	refused(
		t,
		s.Heartbeat(
			ctx,
			subcluster.Heartbeat{ID: "sc-1", Epoch: 1, Load: []byte(`{"clusterMetrics":{"totalNodes":"many"}}`)},
		),
		creel.ErrInvalidRequest,
	)
	refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-9", Epoch: 1}), creel.ErrNotRegistered)

	ok(t, s.Drain(ctx, "sc-1", "alice: new kernel"))
	m, _ = view(t, s).Member("sc-1")
	same(t, "state", m.State, subcluster.StateDraining)
	same(t, "drain reason", m.Draining, "alice: new kernel")
	ok(t, s.Register(ctx, member("sc-1", 2)))
	same(t, "state of a drained member that restarted", state(t, s, "sc-1"), subcluster.StateDraining)
	ok(t, s.Drain(ctx, "sc-1", ""))
	same(t, "state", state(t, s, "sc-1"), subcluster.StateActive)
	refused(t, s.Drain(ctx, "sc-9", "x"), creel.ErrInvalidRequest)

	ok(t, s.Deregister(ctx, "sc-1", 2))
	ok(t, s.Deregister(ctx, "sc-1", 2))
	same(t, "state", state(t, s, "sc-1"), subcluster.StateDeregistered)
	refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 2}), creel.ErrNotRegistered)
	ok(t, s.Register(ctx, member("sc-1", 2)))
	same(t, "state", state(t, s, "sc-1"), subcluster.StateActive)

	quick := member("sc-3", 1)
	quick.Lease = 100 * time.Millisecond
	ok(t, s.Register(ctx, quick))
	d.Advance(150 * time.Millisecond)
	if is := state(t, s, "sc-3"); is.Alive() {
		t.Fatalf("a member is %v though its lease is over", is)
	}
	d.Advance(200 * time.Millisecond)
	same(t, "state after three leases", state(t, s, "sc-3"), subcluster.StateLost)
	same(t, "state of one with a long lease", state(t, s, "sc-2"), subcluster.StateActive)
}

func partialLoads(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	// known returns the loaded data of a member: its size, and rows of queues with those names.
	known := func(r subcluster.Records, id creel.SubclusterID, leaves ...string) string {
		m, ok := subcluster.Build(nil, r, r.Now).Member(id)
		if !ok {
			return "none"
		}
		out := fmt.Sprint(m.Load.Metrics.TotalMB)
		for _, q := range m.Load.Queues {
			if slices.Contains(leaves, q.Queue.Leaf()) {
				out += fmt.Sprintf(" %s %d", q.Queue, q.Used.MemoryMB)
			}
		}
		return out
	}
	// has returns a member's data for a reader of queues with those names.
	has := func(id creel.SubclusterID, leaves ...string) string {
		return known(must[subcluster.Records](t)(s.RecordsOf(ctx, leaves, true)), id, leaves...)
	}
	report := func(used ...int) []byte {
		rows := []string{}
		for i, u := range used {
			rows = append(rows, fmt.Sprintf(`{"queue":"root.%c","used":{"memory":%d}}`, 'a'+i, u))
		}
		return fmt.Appendf(nil, `{"clusterMetrics":{"totalMB":9},"creel":{"queues":[%s]}}`, strings.Join(rows, ","))
	}
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
		ok(t, s.Register(ctx, member(id, 1)))
		same(t, "rows before the first heartbeat", has(id, "a"), "0")
	}
	sender := &subcluster.Reporter{ID: "sc-1", Epoch: 1}
	ok(t, s.Heartbeat(ctx, sender.Next(report(1, 2))))
	ok(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-2", Epoch: 1, Load: report(3, 4)}))
	same(t, "rows of one that cuts its load", has("sc-1", "b"), "9 root.b 2")
	same(t, "rows of one that does not", has("sc-2", "b"), "9 root.b 4")
	same(t, "rows of a queue more", has("sc-1", "a", "b"), "9 root.a 1 root.b 2")
	ok(t, s.Heartbeat(ctx, sender.Next(report(1, 5))))
	same(t, "rows of which one has changed", has("sc-1", "a", "b"), "9 root.a 1 root.b 5")
	ok(t, s.Heartbeat(ctx, sender.Next(report(7))))
	same(t, "rows after a queue was removed", has("sc-1", "a", "b"), "9 root.a 7")
	ok(t, s.Heartbeat(ctx, sender.Next(report(7, 8))))
	same(t, "rows after it came back", has("sc-1", "a", "b"), "9 root.a 7 root.b 8")
	ok(t, s.Heartbeat(ctx, sender.Next(report(6, 8))))
	ok(t, s.Drain(ctx, "sc-2", "for the test"))
	r := must[subcluster.Records](t)(s.RecordsOf(ctx, []string{"a", "b"}, false))
	changed, _ := subcluster.Build(nil, r, r.Now).Member("sc-2")
	same(t, "a change, read without loads", changed.Draining, "for the test")
	if got := known(r, "sc-1", "a", "b"); got != "9 root.a 7 root.b 8" && got != "9 root.a 6 root.b 8" {
		t.Errorf("rows that are neither the newest nor those last read: %s", got)
	}
	same(t, "rows of a read after it", has("sc-1", "a", "b"), "9 root.a 6 root.b 8")
	ok(t, s.Drain(ctx, "sc-2", ""))
	r = must[subcluster.Records](t)(s.RecordsOf(ctx, []string{"a", "b", "c"}, false))
	same(t, "rows where a queue was not wanted before", known(r, "sc-1", "a", "b", "c"), "9 root.a 6 root.b 8")
	part := sender.Next(report(7, 9))
	ok(t, s.Register(ctx, member("sc-1", 2)))
	refused(t, s.Heartbeat(ctx, part), creel.ErrStale)
	same(t, "rows of a new epoch", has("sc-1", "a", "b"), "0")
	part.Epoch = 2
	ok(t, s.Heartbeat(ctx, part))
	same(t, "rows where only some were sent in the epoch: those of the whole", has("sc-1", "a", "b"),
		"9 root.a 7 root.b 9")
	sender = &subcluster.Reporter{ID: "sc-1", Epoch: 2}
	ok(t, s.Heartbeat(ctx, sender.Next(report(10))))
	same(t, "rows of the epoch", has("sc-1", "a", "b"), "9 root.a 10")
	ok(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 2, Load: report(11, 12)}))
	same(t, "rows of a load that was not cut", has("sc-1", "b"), "9 root.b 12")
	ok(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 2}))
	same(t, "rows after a heartbeat without load", has("sc-1", "b"), "9 root.b 12")
	sender.Lost()
	ok(t, s.Heartbeat(ctx, sender.Next(report(13, 14))))
	same(t, "rows of one that cuts again", has("sc-1", "b"), "9 root.b 14")
	ok(t, s.Deregister(ctx, "sc-1", 2))
	ok(t, s.RemoveMember(ctx, "sc-1"))
	same(t, "a member that was removed", has("sc-1", "a"), "none")
	ok(t, s.Register(ctx, member("sc-1", 3)))
	same(t, "rows of one that comes after it", has("sc-1", "a", "b"), "0")
}

func epochs(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	ok(t, s.Register(ctx, member("sc-1", 5)))
	ok(
		t,
		s.Heartbeat(
			ctx,
			subcluster.Heartbeat{ID: "sc-1", Epoch: 5, Load: []byte(`{"clusterMetrics":{"appsRunning":3}}`)},
		),
	)
	refused(t, s.Register(ctx, member("sc-1", 4)), creel.ErrStale)
	refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 4}), creel.ErrStale)
	refused(t, s.Deregister(ctx, "sc-1", 4), creel.ErrStale)
	refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 6}), creel.ErrNotRegistered)
	ok(t, s.Register(ctx, member("sc-1", 5))) // the repeat of a lost answer
	m, _ := view(t, s).Member("sc-1")
	same(t, "running, kept by a repeat,", m.Load.Metrics.AppsRunning, 3)
	next := member("sc-1", 6)
	next.Addresses.Client = "rm2:8032"
	ok(t, s.Register(ctx, next))
	refused(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 5}), creel.ErrStale)
	refused(t, s.Deregister(ctx, "sc-1", 5), creel.ErrStale)
	m, _ = view(t, s).Member("sc-1")
	same(t, "state", m.State, subcluster.StateActive)
	same(t, "address", m.Addresses.Client, "rm2:8032")
	same(t, "running, forgotten by a new epoch,", m.Load.Metrics.AppsRunning, 0)
	ok(t, s.Deregister(ctx, "sc-1", 6))
	refused(t, s.Register(ctx, member("sc-1", 5)), creel.ErrStale)
}

func removal(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	ok(t, s.RemoveMember(ctx, "sc-1"))
	ok(t, s.Register(ctx, member("sc-1", 1)))
	refused(t, s.RemoveMember(ctx, "sc-1"), creel.ErrConflict)
	ok(t, s.Deregister(ctx, "sc-1", 1))
	ok(t, s.RemoveMember(ctx, "sc-1"))
	same(t, "state", state(t, s, "sc-1"), subcluster.StateUnknown)
	quick := member("sc-2", 1)
	quick.Lease = 50 * time.Millisecond
	ok(t, s.Register(ctx, quick))
	d.Advance(200 * time.Millisecond)
	ok(t, s.RemoveMember(ctx, "sc-2"))
	same(t, "state", state(t, s, "sc-2"), subcluster.StateUnknown)
}

func claims(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	home := must[creel.SubclusterID](t)
	_, err := s.Home(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	same(t, "winner", claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil)), "sc-1")
	same(t, "winner of a repeat", claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil)), "sc-1")
	same(t, "winner against another", claimed[int64](t)(s.Claim(ctx, App(1), "sc-2", nil)), "sc-1")
	same(t, "home", home(s.Home(ctx, App(1))), "sc-1")
	same(t, "winner of the next application", claimed[int64](t)(s.Claim(ctx, App(2), "sc-2", nil)), "sc-2")
	other := creel.ApplicationID{ClusterTimestamp: 1700000000001, ID: 1}
	same(
		t,
		"winner of the same number of another ResourceManager",
		claimed[int64](t)(s.Claim(ctx, other, "sc-3", nil)),
		"sc-3",
	)
	same(t, "home", home(s.Home(ctx, App(1))), "sc-1")
}

// placements: the claim that makes the record stores a placement, a repeat does not. A move that
// changes the home replaces it. It is deleted with the record.
func placements(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	kept := func(when, want string) {
		t.Helper()
		got, err := s.Placement(ctx, App(1))
		ok(t, err)
		same(t, "placement "+when, string(got), want)
	}
	claim := func(member creel.SubclusterID, placement string) {
		t.Helper()
		_, _, err := s.Claim(ctx, App(1), member, []byte(placement))
		ok(t, err)
	}
	_, err := s.Placement(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	_, _, err = s.Claim(ctx, App(1), "sc-1", make([]byte, statestore.MaxPlacement+1))
	refused(t, err, creel.ErrInvalidRequest)
	_, err = s.Home(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)

	const binary = "most room\x00\xff\r\n"
	claim("sc-1", binary)
	kept("of the claim", binary)
	claim("sc-2", "another router's")
	kept("after a claim that found a home", binary)
	for _, other := range []creel.ApplicationID{App(2), App(65)} { // neighbours in Redis' buckets
		_, _, err := s.Claim(ctx, other, "sc-1", nil)
		ok(t, err)
		none, err := s.Placement(ctx, other)
		ok(t, err)
		same(t, "length of the placement of a claim that gave none", len(none), 0)
	}
	_, err = s.Move(ctx, App(1), "sc-2", "sc-3", 0, []byte("too late"))
	refused(t, err, creel.ErrConflict)
	_, err = s.Move(ctx, App(1), "sc-1", "sc-2", 0, make([]byte, statestore.MaxPlacement+1))
	refused(t, err, creel.ErrInvalidRequest)
	kept("after moves that were refused", binary)
	must[creel.SubclusterID](t)(s.Move(ctx, App(1), "sc-1", "sc-2", 0, []byte("sc-1 refused it")))
	kept("of the move", "sc-1 refused it")
	must[creel.SubclusterID](t)(s.Move(ctx, App(1), "sc-1", "sc-2", 0, []byte("a repeat")))
	kept("after a repeat of the move", "sc-1 refused it")
	must[creel.SubclusterID](t)(s.Move(ctx, App(1), "sc-2", "sc-3", 0, nil))
	kept("after a move that gave none", "")
	must[creel.SubclusterID](t)(s.Move(ctx, App(1), "sc-3", "sc-1", 0, make([]byte, statestore.MaxPlacement)))

	ok(t, s.Forget(ctx, App(1), "sc-1", 100*time.Millisecond))
	if got, err := s.Placement(ctx, App(1)); err == nil { // with a real clock the record may have expired already
		same(t, "length of the placement while its home ends", len(got), statestore.MaxPlacement)
	}
	d.Advance(150 * time.Millisecond)
	_, err = s.Placement(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	_, _, err = s.Claim(ctx, App(1), "sc-2", nil)
	ok(t, err)
	kept("of a new claim after the end, which gave none,", "")

	claim("sc-2", "unused: the home is there")
	ok(t, s.Forget(ctx, App(2), "sc-1", 0))
	_, err = s.Sweep(ctx, 10)
	ok(t, err)
	_, err = s.Placement(ctx, App(2))
	refused(t, err, creel.ErrApplicationNotFound)
}

// absences: the wait for a home that cannot disown is stored with the home, whichever router reports.
func absences(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	// A moment is the time of a call by the store's clock, as an interval between two reads of the clock.
	type moment struct{ before, after time.Time }
	now := func() time.Time {
		r, err := s.Records(ctx)
		ok(t, err)
		return r.Now
	}
	// absent reports a claim. The home must have waited since the moment, or not at all if it is nil.
	absent := func(number int64, surely bool, since *moment) *moment {
		t.Helper()
		m := &moment{before: now()}
		waited, err := s.Absent(ctx, App(1), "sc-1", number, surely)
		ok(t, err)
		m.after = now()
		if since == nil {
			since = m
		}
		const rounding = 2 * time.Millisecond
		least, most := m.before.Sub(since.after)-rounding, m.after.Sub(since.before)+rounding
		if waited < 0 || waited < least || waited > most {
			t.Errorf("claim %d, surely %v: waited %v, want %v to %v", number, surely, waited, least, most)
		}
		return m
	}
	_, err := s.Absent(ctx, App(1), "sc-1", 1, true)
	refused(t, err, creel.ErrApplicationNotFound)
	for range 20 {
		_, _, err := s.Claim(ctx, App(1), "sc-1", nil)
		ok(t, err)
	}
	_, err = s.Absent(ctx, App(1), "sc-2", 1, true)
	refused(t, err, creel.ErrConflict)
	const tick = 300 * time.Millisecond
	second := absent(2, true, nil) // the wait starts with the first report
	d.Advance(tick)
	absent(3, true, second)
	d.Advance(tick)
	fourth := absent(4, false, nil) // a call without an answer
	d.Advance(tick)
	absent(5, true, fourth)
	absent(7, true, nil) // the sixth has no recorded outcome
	absent(6, true, fourth)
	d.Advance(tick)
	absent(8, true, fourth)
	absent(10, true, nil)
	ninth := absent(9, false, nil)
	d.Advance(tick)
	absent(11, true, ninth)
	absent(20, true, nil) // eight calls are open; the wait starts now
	_, err = s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)
	ok(t, err)
	_, err = s.Move(ctx, App(1), "sc-2", "sc-1", 0, nil)
	ok(t, err)
	d.Advance(tick)
	absent(22, true, nil) // a move starts it again
	d.Advance(tick)
	many := absent(22+2+statestore.MostOpenClaims, true, nil) // more open calls than are remembered
	d.Advance(tick)
	absent(23+2+statestore.MostOpenClaims, true, many)
}

// numberedClaims: the call that made the record has number 1. Each later claim and move has the
// next number, even a repeat with the same member.
func numberedClaims(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	claim := func(member, home creel.SubclusterID, number int64) {
		t.Helper()
		is, n, err := s.Claim(ctx, App(1), member, nil)
		ok(t, err)
		same(t, "home", is, home)
		same(t, "number", n, number)
	}
	claim("sc-1", "sc-1", 1)
	claim("sc-1", "sc-1", 2)
	claim("sc-2", "sc-1", 3)
	must[creel.SubclusterID](t)(s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)) // 4
	claim("sc-2", "sc-2", 5)
	ok(t, s.Forget(ctx, App(1), "sc-2", 0))
	claim("sc-3", "sc-3", 1) // the id is used again
	claim("sc-3", "sc-3", 2)
}

func moves(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	home := must[creel.SubclusterID](t)
	_, err := s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)
	refused(t, err, creel.ErrApplicationNotFound)
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil))
	same(t, "home", home(s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)), "sc-2")
	same(t, "home after a repeat", home(s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)), "sc-2")
	is, err := s.Move(ctx, App(1), "sc-1", "sc-3", 0, nil)
	refused(t, err, creel.ErrConflict)
	same(t, "home told with the conflict", is, "sc-2")
	same(t, "home", home(s.Home(ctx, App(1))), "sc-2")
	same(t, "winner", claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil)), "sc-2")
	same(t, "applications at the old home", len(list(t, s, "sc-1", 10)), 0)
	same(t, "applications at the new home", len(list(t, s, "sc-2", 10)), 1)
}

// movesUnderNumber: a move with a number is rejected after another claim, whose caller may have acted on the home.
func movesUnderNumber(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	_, first, err := s.Claim(ctx, App(1), "sc-1", nil)
	ok(t, err)
	_, second, err := s.Claim(ctx, App(1), "sc-1", nil) // another router
	ok(t, err)
	is, err := s.Move(ctx, App(1), "sc-1", "sc-2", first, nil)
	refused(t, err, creel.ErrConflict)
	same(t, "home told with the conflict", is, "sc-1")
	is, err = s.Move(ctx, App(1), "sc-1", "sc-2", second, nil)
	ok(t, err)
	same(t, "home", is, "sc-2")
	_, err = s.Move(ctx, App(1), "sc-1", "sc-2", second, nil) // not a success: another caller may have made that move
	refused(t, err, creel.ErrConflict)
	_, third, err := s.Claim(ctx, App(1), "sc-1", nil)
	ok(t, err)
	same(t, "number after a move", third, second+2)
	_, err = s.Move(ctx, App(1), "sc-2", "sc-3", second+1, nil) // the move's number, but a claim followed
	refused(t, err, creel.ErrConflict)
	is, err = s.Move(ctx, App(1), "sc-2", "sc-3", third, nil)
	ok(t, err)
	same(t, "home", is, "sc-3")
}

func accepts(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	life := must[int64](t)
	refused(t, s.Accept(ctx, App(1), "sc-1", 5), creel.ErrApplicationNotFound)
	_, err := s.AcceptedIn(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil))
	same(t, "life before it is accepted", life(s.AcceptedIn(ctx, App(1))), 0)
	refused(t, s.Accept(ctx, App(1), "sc-2", 5), creel.ErrConflict)
	refused(t, s.Accept(ctx, App(1), "sc-1", 0), creel.ErrInvalidRequest)
	ok(t, s.Accept(ctx, App(1), "sc-1", 5))
	same(t, "life", life(s.AcceptedIn(ctx, App(1))), 5)
	ok(t, s.Accept(ctx, App(1), "sc-1", 1_700_000_000_123))
	ok(t, s.Accept(ctx, App(1), "sc-1", 7)) // of a router that has not noticed the restart
	same(t, "last life", life(s.AcceptedIn(ctx, App(1))), 1_700_000_000_123)
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-2", nil))
	ok(t, s.Forget(ctx, App(1), "sc-1", time.Hour))
	same(t, "life while it ends", life(s.AcceptedIn(ctx, App(1))), 1_700_000_000_123)

	_, err = s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)
	ok(t, err)
	same(t, "life of a home that accepted nothing", life(s.AcceptedIn(ctx, App(1))), 0)
	ok(t, s.Accept(ctx, App(1), "sc-2", 9))
	ok(t, s.Forget(ctx, App(1), "sc-2", 0))
	_, err = s.AcceptedIn(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	refused(t, s.Accept(ctx, App(1), "sc-2", 9), creel.ErrApplicationNotFound)
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-2", nil))
	same(t, "life after a new claim", life(s.AcceptedIn(ctx, App(1))), 0)
}

func forgets(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	home := must[creel.SubclusterID](t)
	ok(t, s.Forget(ctx, App(9), "sc-1", time.Hour)) // an unknown application counts as forgotten
	_, err := s.Ended(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil))
	refused(t, s.Forget(ctx, App(1), "sc-2", time.Hour), creel.ErrConflict)
	if at, err := s.Ended(ctx, App(1)); err != nil || !at.IsZero() {
		t.Fatalf("the end of one that runs is %v, %v", at, err)
	}

	ok(t, s.Forget(ctx, App(1), "sc-1", time.Hour))
	ended := must[time.Time](t)
	reported := ended(s.Ended(ctx, App(1)))
	if reported.IsZero() {
		t.Fatal("a reported end has no time")
	}
	same(t, "home while it ends", home(s.Home(ctx, App(1))), "sc-1")
	same(t, "winner while it ends", claimed[int64](t)(s.Claim(ctx, App(1), "sc-2", nil)), "sc-1")
	if l := list(t, s, "sc-1", 10); len(l) != 1 || l[0].Ends.IsZero() || l[0].Claimed.IsZero() {
		t.Fatalf("listing while it ends is %+v", l)
	}
	same(t, "freed too early", must[int](t)(s.Sweep(ctx, 1)), 0)
	ok(t, s.Forget(ctx, App(1), "sc-1", 100*time.Millisecond)) // sooner
	ok(t, s.Forget(ctx, App(1), "sc-1", time.Hour))            // never extended
	if at, err := s.Ended(ctx, App(1)); err == nil {           // with a real clock the record may have expired already
		same(t, "time of the end after repeats", at, reported)
	}
	d.Advance(150 * time.Millisecond)
	_, err = s.Ended(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	_, err = s.Home(ctx, App(1))
	refused(t, err, creel.ErrApplicationNotFound)
	_, err = s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil)
	refused(t, err, creel.ErrApplicationNotFound)
	ok(t, s.Forget(ctx, App(1), "sc-1", time.Hour))
	same(t, "listed after the end", len(list(t, s, "sc-1", 10)), 0)
	same(t, "freed", must[int](t)(s.Sweep(ctx, 10)), 1)
	same(t, "freed again", must[int](t)(s.Sweep(ctx, 10)), 0)

	same(t, "winner of a new claim", claimed[int64](t)(s.Claim(ctx, App(1), "sc-3", nil)), "sc-3")
	ok(t, s.Forget(ctx, App(1), "sc-3", 0))
	same(
		t,
		"winner after an end at once, before any sweep,",
		claimed[int64](t)(s.Claim(ctx, App(1), "sc-4", nil)),
		"sc-4",
	)
	same(t, "freed though it was claimed again", must[int](t)(s.Sweep(ctx, 10)), 0)
	same(t, "home", home(s.Home(ctx, App(1))), "sc-4")
	same(t, "listed at the former home", len(list(t, s, "sc-3", 10)), 0)
	same(t, "listed at the new home", len(list(t, s, "sc-4", 10)), 1)

	ok(t, s.Forget(ctx, App(1), "sc-4", time.Hour))
	same(t, "home of an ending one that moved", home(s.Move(ctx, App(1), "sc-4", "sc-5", 0, nil)), "sc-5")
	if at, err := s.Ended(ctx, App(1)); err != nil || !at.IsZero() {
		t.Fatalf("the new home has reported no end, the store returns %v, %v", at, err)
	}
	if l := list(t, s, "sc-5", 10); len(l) != 1 || l[0].Ends.IsZero() {
		t.Fatalf("an ending application that moved is listed as %+v", l)
	}
}

// list reads a whole listing in pages and fails on a repeated line.
func list(t *testing.T, s statestore.Store, m creel.SubclusterID, limit int) []statestore.ApplicationHome {
	t.Helper()
	var all []statestore.ApplicationHome
	seen := map[creel.ApplicationID]bool{}
	cursor := ""
	for {
		page, next, err := s.HomesAt(t.Context(), m, cursor, limit)
		ok(t, err)
		if len(page) > limit {
			t.Fatalf("a page has %d lines, the limit is %d", len(page), limit)
		}
		for _, h := range page {
			if seen[h.ID] || h.Home != m {
				t.Fatalf("line %+v is listed twice, or not of %s", h, m)
			}
			seen[h.ID] = true
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		cursor = next
	}
}

func listing(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	const n = 500
	for i := range n {
		claimed[int64](t)(s.Claim(ctx, App(i), creel.SubclusterID(fmt.Sprintf("sc-%d", i%2)), nil))
	}
	for _, limit := range []int{1, 7, 100, statestore.MaxPage} {
		for m, rest := range map[creel.SubclusterID]int{"sc-0": 0, "sc-1": 1} {
			all := list(t, s, m, limit)
			same(t, "length of the listing", len(all), n/2)
			for _, h := range all {
				same(t, "remainder", int(h.ID.ID)%2, rest)
			}
		}
	}
	same(t, "length for an unknown member", len(list(t, s, "sc-9", 10)), 0)
	for _, limit := range []int{0, -1, statestore.MaxPage + 1} {
		_, _, err := s.HomesAt(ctx, "sc-0", "", limit)
		refused(t, err, creel.ErrInvalidRequest)
	}
	_, _, err := s.HomesAt(ctx, "sc-0", "nonsense", 10)
	refused(t, err, creel.ErrInvalidRequest)
}

func listingUnderChange(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	for i := range 300 {
		claimed[int64](t)(s.Claim(ctx, App(i), "sc-1", nil))
	}
	seen := map[creel.ApplicationID]int{}
	cursor := ""
	for turn := 0; ; turn++ {
		page, next, err := s.HomesAt(ctx, "sc-1", cursor, 10)
		ok(t, err)
		for _, h := range page {
			seen[h.ID]++
		}
		if next == "" {
			break
		}
		cursor = next
		// Odd ones below 300 stay; the others come and go during the reads.
		for k := range 10 {
			even := App((turn*20 + 2*k) % 300)
			if turn%2 == 0 {
				ok(t, s.Forget(ctx, even, "sc-1", 0))
			} else {
				claimed[int64](t)(s.Claim(ctx, even, "sc-1", nil))
			}
		}
	}
	for i := 1; i < 300; i += 2 {
		same(t, fmt.Sprintf("times that %v is listed", App(i)), seen[App(i)], 1)
	}
}

func uamRecord(n, a int, revision int64, phase string) statestore.UAMRecord {
	return statestore.UAMRecord{
		Attempt:  Attempt(n, a),
		Revision: revision,
		Home:     "sc-1",
		Proxy:    "proxy-1",
		State:    []byte{0, 1, 0xff},
		UAMs: []statestore.UAM{
			{Member: "sc-2", Attempt: 2, Epoch: 3, Phase: phase, Token: []byte("sealed\x00")},
		},
	}
}

func uamRecords(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	revision := must[int64](t)
	_, err := s.UAMRecord(ctx, Attempt(1, 1))
	refused(t, err, creel.ErrAttemptNotFound)
	_, err = s.SaveUAMRecord(ctx, uamRecord(1, 1, 4, "launching"))
	refused(t, err, creel.ErrConflict)
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 1, 0, "launching"))), 1)
	same(t, "revision of a repeat", revision(s.SaveUAMRecord(ctx, uamRecord(1, 1, 0, "launching"))), 1)
	_, err = s.SaveUAMRecord(ctx, uamRecord(1, 1, 0, "other"))
	refused(t, err, creel.ErrConflict)
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 1, 1, "running"))), 2)
	got := must[statestore.UAMRecord](t)(s.UAMRecord(ctx, Attempt(1, 1)))
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", uamRecord(1, 1, 2, "running")) {
		t.Fatalf("the record came back as %+v", got)
	}
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 12, 0, "launching"))), 1)
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 2, 0, "launching"))), 1)
	all := must[[]statestore.UAMRecord](t)(s.UAMRecordsOf(ctx, App(1)))
	if len(all) != 3 || all[0].Attempt.Attempt != 1 || all[1].Attempt.Attempt != 2 || all[2].Attempt.Attempt != 12 ||
		all[0].Revision != 2 {
		t.Fatalf("the records are %+v", all)
	}
	ok(t, s.DropUAMRecord(ctx, Attempt(1, 1)))
	ok(t, s.DropUAMRecord(ctx, Attempt(1, 1)))
	same(t, "records left", len(must[[]statestore.UAMRecord](t)(s.UAMRecordsOf(ctx, App(1)))), 2)
	same(t, "records of another", len(must[[]statestore.UAMRecord](t)(s.UAMRecordsOf(ctx, App(2)))), 0)
}

func lateUAMRecord(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	revision := must[int64](t)
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 2, 0, "running"))), 1)
	ok(t, s.DropUAMRecord(ctx, Attempt(1, 2)))
	for _, late := range []statestore.UAMRecord{
		uamRecord(1, 2, 0, "running"), uamRecord(1, 2, 1, "running"), uamRecord(1, 1, 0, "launching"),
	} {
		_, err := s.SaveUAMRecord(ctx, late)
		refused(t, err, creel.ErrConflict)
	}
	ok(t, s.DropUAMRecord(ctx, Attempt(1, 1))) // an earlier drop does not undo it
	_, err := s.SaveUAMRecord(ctx, uamRecord(1, 2, 0, "running"))
	refused(t, err, creel.ErrConflict)
	same(t, "records", len(must[[]statestore.UAMRecord](t)(s.UAMRecordsOf(ctx, App(1)))), 0)
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 3, 0, "running"))), 1)
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(1, 3, 1, "running"))), 2)
	all := must[[]statestore.UAMRecord](t)(s.UAMRecordsOf(ctx, App(1)))
	if len(all) != 1 || all[0].Attempt.Attempt != 3 || all[0].Revision != 2 {
		t.Fatalf("of a later attempt the records are %+v", all)
	}
	same(t, "revision", revision(s.SaveUAMRecord(ctx, uamRecord(2, 1, 0, "running"))), 1)
}

func uamRecordsGo(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil))
	must[int64](t)(s.SaveUAMRecord(ctx, uamRecord(1, 1, 0, "running")))
	ok(t, s.Forget(ctx, App(1), "sc-1", 0))
	same(t, "freed", must[int](t)(s.Sweep(ctx, 10)), 1)
	_, err := s.UAMRecord(ctx, Attempt(1, 1))
	refused(t, err, creel.ErrAttemptNotFound)
}

func put(q creel.QueuePath, expect int64, doc string) statestore.PolicyWrite {
	return statestore.PolicyWrite{
		Queue:    q,
		Expect:   expect,
		Document: []byte(doc),
		Author:   "alice",
		Comment:  "because " + doc,
	}
}

func policies(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote := must[subcluster.Policy](t)
	p1 := wrote(s.PutPolicy(ctx, put("root", 0, "one")))
	if p1.Version <= 0 || p1.Author != "alice" || p1.Comment != "because one" || string(p1.Document) != "one" ||
		p1.Time.IsZero() ||
		p1.Queue != "root" {
		t.Fatalf("first version is %+v", p1)
	}
	again := wrote(s.PutPolicy(ctx, put("root", 0, "one")))
	same(t, "version of a repeat", again.Version, p1.Version)
	_, err := s.PutPolicy(ctx, put("root", 0, "other"))
	refused(t, err, creel.ErrConflict)
	p2 := wrote(s.PutPolicy(ctx, put("root", p1.Version, "two")))
	a := wrote(s.PutPolicy(ctx, put("root.a", 0, "a")))
	if p2.Version <= p1.Version || a.Version <= p2.Version {
		t.Fatalf("versions %d, %d, %d do not rise", p1.Version, p2.Version, a.Version)
	}
	v := view(t, s)
	for q, want := range map[creel.QueuePath]string{
		"root":       "two",
		"root.b.c":   "two",
		"root.a":     "a",
		"root.a.x.y": "a",
	} {
		p, found := v.Policy(q)
		if !found || string(p.Document) != want {
			t.Fatalf("policy for %s is %+v, want %q", q, p, want)
		}
	}
	same(t, "version of the set", v.Policies.Version, a.Version)

	history := must[[]subcluster.Policy](t)
	h := history(s.PolicyHistory(ctx, "root", 0, 10))
	if len(h) != 2 || h[0].Version != p2.Version || h[1].Version != p1.Version || string(h[1].Document) != "one" ||
		!h[1].Time.Equal(p1.Time) {
		t.Fatalf("history is %+v", h)
	}
	same(t, "history below a version", len(history(s.PolicyHistory(ctx, "root", p2.Version, 10))), 1)
	same(t, "history cut", history(s.PolicyHistory(ctx, "root", 0, 1))[0].Version, p2.Version)
	same(t, "history of an unknown queue", len(history(s.PolicyHistory(ctx, "root.z", 0, 10))), 0)

	rollback := statestore.PolicyWrite{
		Queue: "root", Expect: p2.Version, Document: h[1].Document, Author: "bob", Comment: "two was wrong",
	}
	back := wrote(s.PutPolicy(ctx, rollback))
	if string(back.Document) != "one" || back.Version <= a.Version || back.Author != "bob" {
		t.Fatalf("an earlier document as a new version is %+v", back)
	}
	rollback.Author = "carol"
	_, err = s.PutPolicy(ctx, rollback)
	refused(t, err, creel.ErrConflict)

	wrote(s.PutPolicy(ctx, statestore.PolicyWrite{Queue: "root.a", Expect: a.Version, Author: "alice"}))
	p, _ := view(t, s).Policy("root.a")
	same(t, "policy after its removal, the parent's,", string(p.Document), "one")
}

func badPolicies(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	good := must[subcluster.Policy](t)(s.PutPolicy(ctx, put("root", 0, "good")))
	for _, w := range []statestore.PolicyWrite{put(
		"root",
		good.Version,
		"bad",
	), put("root..x", 0, "good"), put("", 0, "good"),
		put("root", good.Version, string(make([]byte, statestore.MaxPolicy+1))), put("root", -1, "good")} {
		_, err := s.PutPolicy(ctx, w)
		refused(t, err, creel.ErrInvalidRequest)
	}
	p, _ := view(t, s).Policy("root")
	same(t, "document", string(p.Document), "good")
	same(t, "version", p.Version, good.Version)
}

func policyVersions(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	var last int64
	for i := range statestore.KeptVersions + 20 {
		p := must[subcluster.Policy](t)(s.PutPolicy(ctx, put("root", last, fmt.Sprint(i))))
		if p.Version <= last {
			t.Fatalf("version %d after %d", p.Version, last)
		}
		last = p.Version
	}
	h := must[[]subcluster.Policy](t)(s.PolicyHistory(ctx, "root", 0, statestore.MaxPage))
	same(t, "kept versions", len(h), statestore.KeptVersions)
	same(t, "newest", string(h[0].Document), fmt.Sprint(statestore.KeptVersions+19))
	same(t, "oldest", string(h[len(h)-1].Document), "20")
}

func leases(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	got := must[statestore.Lease](t)
	same(t, "holder of a free lease", got(s.Holder(ctx, "rebalancer")).Holder, "")
	a := got(s.Acquire(ctx, "rebalancer", "a", time.Hour))
	if a.Holder != "a" || a.Token <= 0 || a.Name != "rebalancer" || a.Expires.IsZero() {
		t.Fatalf("lease is %+v", a)
	}
	same(t, "token of a repeat", got(s.Acquire(ctx, "rebalancer", "a", time.Hour)).Token, a.Token)
	is, err := s.Acquire(ctx, "rebalancer", "b", time.Hour)
	refused(t, err, creel.ErrConflict)
	same(t, "holder told with the conflict", is.Holder, "a")
	same(t, "holder", got(s.Holder(ctx, "rebalancer")).Holder, "a")
	same(t, "holder of another lease", got(s.Acquire(ctx, "janitor", "b", time.Hour)).Holder, "b")

	a2 := got(s.Renew(ctx, a, 100*time.Millisecond))
	same(t, "token after renewal", a2.Token, a.Token)
	d.Advance(150 * time.Millisecond)
	same(t, "holder when it ran out", got(s.Holder(ctx, "rebalancer")).Holder, "")
	a3 := got(s.Renew(ctx, a, 50*time.Millisecond)) // late, but there is no other holder
	same(t, "token after a late renewal", a3.Token, a.Token)
	d.Advance(100 * time.Millisecond)
	b := got(s.Acquire(ctx, "rebalancer", "b", time.Hour))
	if b.Token <= a.Token {
		t.Fatalf("token %d of the next holder is not above %d", b.Token, a.Token)
	}
	_, err = s.Renew(ctx, a, time.Hour)
	refused(t, err, creel.ErrStale)
	ok(t, s.Release(ctx, a)) // already lost: no error
	same(t, "holder", got(s.Holder(ctx, "rebalancer")).Holder, "b")
	ok(t, s.Release(ctx, b))
	ok(t, s.Release(ctx, b))
	same(t, "holder after release", got(s.Holder(ctx, "rebalancer")).Holder, "")
	_, err = s.Renew(ctx, b, time.Hour)
	refused(t, err, creel.ErrStale)
	c := got(s.Acquire(ctx, "rebalancer", "a", time.Hour))
	if c.Token <= b.Token {
		t.Fatalf("token %d of the next holder is not above %d", c.Token, b.Token)
	}
}

func fences(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	home := must[creel.SubclusterID](t)
	ok(t, s.Register(ctx, member("sc-1", 1)))
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil))
	a := must[statestore.Lease](t)(s.Acquire(ctx, "rebalancer", "a", 50*time.Millisecond))
	old := statestore.Under(ctx, a)
	d.Advance(100 * time.Millisecond)
	claimed[int64](t)(s.Claim(old, App(2), "sc-1", nil)) // expired, but without a later holder
	b := must[statestore.Lease](t)(s.Acquire(ctx, "rebalancer", "b", time.Hour))
	new := statestore.Under(ctx, b)
	id := creel.ReservationID{ClusterTimestamp: 1, ID: 1}
	writes := map[string]func(ctx context.Context) error{
		"Register":     func(ctx context.Context) error { return s.Register(ctx, member("sc-1", 1)) },
		"Heartbeat":    func(ctx context.Context) error { return s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 1}) },
		"Drain":        func(ctx context.Context) error { return s.Drain(ctx, "sc-1", "x") },
		"RemoveMember": func(ctx context.Context) error { return s.RemoveMember(ctx, "sc-9") },
		"Claim":        func(ctx context.Context) error { _, _, err := s.Claim(ctx, App(3), "sc-1", nil); return err },
		"Move":         func(ctx context.Context) error { _, err := s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil); return err },
		"Forget":       func(ctx context.Context) error { return s.Forget(ctx, App(2), "sc-1", time.Hour) },
		"Sweep":        func(ctx context.Context) error { _, err := s.Sweep(ctx, 10); return err },
		"claim of a reservation": func(ctx context.Context) error {
			_, _, err := s.Reservations().Claim(ctx, id, "sc-1", nil)
			return err
		},
		"SaveUAMRecord": func(ctx context.Context) error { _, err := s.SaveUAMRecord(ctx, uamRecord(1, 1, 0, "x")); return err },
		"DropUAMRecord": func(ctx context.Context) error { return s.DropUAMRecord(ctx, Attempt(7, 7)) },
		"PutPolicy":     func(ctx context.Context) error { _, err := s.PutPolicy(ctx, put("root", 0, "x")); return err },
		"PutDocument": func(ctx context.Context) error {
			_, err := s.PutDocument(ctx, statestore.DocumentWrite{Class: "plan", Name: "x", Data: []byte("x")})
			return err
		},
		"IssueToken": func(ctx context.Context) error {
			_, err := s.IssueToken(ctx, statestore.Token{Owner: "a"}, time.Hour, time.Hour)
			return err
		},
		"DropToken": func(ctx context.Context) error { return s.DropToken(ctx, 7) },
		"RotateKey": func(ctx context.Context) error { _, err := s.RotateKey(ctx, "r", 0, []byte("x"), 0); return err },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			refused(t, write(old), creel.ErrStale)
			ok(t, write(new))
		})
	}
	same(t, "home", home(s.Home(ctx, App(1))), "sc-2")
	ok(t, s.Release(ctx, b))
	refused(t, s.Drain(old, "sc-1", "y"), creel.ErrStale)
}

func keys(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	ring := must[[]statestore.Key](t)
	key := must[statestore.Key](t)
	same(t, "keys of an empty ring", len(ring(s.Keys(ctx, "tokens"))), 0)
	changes := func() int64 { return must[subcluster.Records](t)(s.Records(ctx)).KeyChanges }
	before := changes()
	heard := listen(t, s)
	k1 := key(s.RotateKey(ctx, "tokens", 0, []byte("secret\x00one"), time.Hour))
	await(t, heard, func(c statestore.Change) bool { return c.Kind == statestore.ChangeKeys })
	if changes() == before {
		t.Fatalf("%d changes of keys before one and after it", before)
	}
	before = changes()
	same(t, "first id", k1.ID, 1)
	same(t, "id of a repeat", key(s.RotateKey(ctx, "tokens", 0, []byte("secret\x00one"), time.Hour)).ID, 1)
	_, err := s.RotateKey(ctx, "tokens", 0, []byte("another"), time.Hour)
	refused(t, err, creel.ErrConflict)
	same(t, "changes by a repeat and a refusal", changes(), before)
	k2 := key(s.RotateKey(ctx, "tokens", 1, []byte("two"), 2*time.Second)) // read below, even on a slow machine
	all := ring(s.Keys(ctx, "tokens"))
	if len(all) != 2 || all[0].ID != k2.ID || string(all[0].Secret) != "two" || !all[0].Expires.IsZero() ||
		all[1].ID != 1 || string(all[1].Secret) != "secret\x00one" || all[1].Expires.IsZero() ||
		all[0].Created.IsZero() {
		t.Fatalf("ring is %+v", all)
	}
	d.Advance(2 * time.Second)
	all = ring(s.Keys(ctx, "tokens"))
	if len(all) != 1 || all[0].ID != 2 {
		t.Fatalf("ring after the old key's time is %+v", all)
	}
	key(s.RotateKey(ctx, "tokens", 2, []byte("three"), time.Hour))
	same(t, "keys", len(ring(s.Keys(ctx, "tokens"))), 2)
	same(t, "keys of another ring", len(ring(s.Keys(ctx, "other"))), 0)
	key(s.RotateKey(ctx, "third", 0, []byte("four"), time.Hour))
	several := must[[][]statestore.Key](t)(s.KeysOf(ctx, []string{"tokens", "other", "third"}))
	if len(several) != 3 || len(several[0]) != 2 || len(several[1]) != 0 || string(several[2][0].Secret) != "four" {
		t.Fatalf("keys of three rings are %+v", several)
	}
	same(t, "keys of no ring", len(must[[][]statestore.Key](t)(s.KeysOf(ctx, nil))), 0)

	sealed := must[[]byte](
		t,
	)(
		statestore.Seal(
			bytes.NewReader(make([]byte, 12)),
			ring(s.Keys(ctx, "tokens"))[1],
			[]byte("here"),
			[]byte("token"),
		),
	)
	same(
		t,
		"opened",
		string(must[[]byte](t)(statestore.Open(ring(s.Keys(ctx, "tokens")), []byte("here"), sealed))),
		"token",
	)
}

func schema(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	ok(t, s.CheckSchema(ctx))
	ok(t, s.CheckSchema(ctx))
	for _, word := range []string{"2", "0", "banana", "99999999999999999999"} {
		d.SetSchema(t, word)
		refused(t, s.CheckSchema(ctx), creel.ErrNotPermitted)
	}
	d.SetSchema(t, "1")
	ok(t, s.CheckSchema(ctx))
}

// listen starts a watch and returns a channel of its changes.
func listen(t *testing.T, s statestore.Store) <-chan statestore.Change {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan statestore.Change, 1024)
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(c statestore.Change) {
			select {
			case heard <- c:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("watch ended with %v", err)
		}
	})
	await(t, heard, func(c statestore.Change) bool { return c.Kind == statestore.ChangeResync })
	return heard
}

// await reads changes until one matches wanted.
func await(t *testing.T, heard <-chan statestore.Change, wanted func(statestore.Change) bool) statestore.Change {
	t.Helper()
	for {
		select {
		case c := <-heard:
			if wanted(c) {
				return c
			}
		case <-t.Context().Done():
			t.Fatal("the change was not heard")
		}
	}
}

func watching(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	heard := listen(t, s)
	kind := func(k statestore.ChangeKind) func(statestore.Change) bool {
		return func(c statestore.Change) bool { return c.Kind == k }
	}
	ok(t, s.Register(ctx, member("sc-1", 1)))
	await(t, heard, kind(statestore.ChangeMembers))
	ok(t, s.Drain(ctx, "sc-1", "x"))
	await(t, heard, kind(statestore.ChangeMembers))
	p := must[subcluster.Policy](t)(s.PutPolicy(ctx, put("root", 0, "x")))
	same(t, "version heard", await(t, heard, kind(statestore.ChangePolicies)).Version, p.Version)
	claimed[int64](t)(s.Claim(ctx, App(1), "sc-1", nil))
	must[creel.SubclusterID](t)(s.Move(ctx, App(1), "sc-1", "sc-2", 0, nil))
	same(t, "application heard", await(t, heard, kind(statestore.ChangeHome)).Application, App(1))
	ok(t, s.Deregister(ctx, "sc-1", 1))
	await(t, heard, kind(statestore.ChangeMembers))
}

func twoProcesses(t *testing.T, d Deployment) {
	if d.Again == nil {
		return // this store serves only one process
	}
	a, b, ctx := d.Store, d.Again(t), t.Context()
	heard := listen(t, b)
	claimed[int64](t)(a.Claim(ctx, App(1), "sc-1", nil))
	same(t, "winner at the other", claimed[int64](t)(b.Claim(ctx, App(1), "sc-2", nil)), "sc-1")
	ok(t, a.Register(ctx, member("sc-1", 2)))
	refused(t, b.Register(ctx, member("sc-1", 1)), creel.ErrStale)
	p := must[subcluster.Policy](t)(a.PutPolicy(ctx, put("root", 0, "x")))
	same(
		t,
		"version heard at the other",
		await(t, heard, func(c statestore.Change) bool { return c.Kind == statestore.ChangePolicies }).Version,
		p.Version,
	)
	ra, rb := must[subcluster.Records](t)(a.Records(ctx)), must[subcluster.Records](t)(b.Records(ctx))
	same(t, "identity", rb.Store, ra.Store)
	same(t, "members at the other", len(rb.Members), 1)
}

func badArguments(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	bad := func(name string, err error) {
		t.Helper()
		t.Run(name, func(t *testing.T) { refused(t, err, creel.ErrInvalidRequest) })
	}
	_, _, err := s.Claim(ctx, creel.ApplicationID{}, "sc-1", nil)
	bad("a zero application", err)
	_, _, err = s.Claim(ctx, App(1), "", nil)
	bad("no member", err)
	_, _, err = s.Claim(ctx, App(1), "sc 1\n", nil)
	bad("a member with spaces", err)
	_, err = s.Move(ctx, App(1), "sc-1", "{x}", 0, nil)
	bad("a member with braces", err)
	bad("a negative time to live", s.Forget(ctx, App(1), "sc-1", -1))
	bad("an endless time to live", s.Forget(ctx, App(1), "sc-1", statestore.MaxTTL+1))
	m := member("sc-1", -1)
	bad("a negative epoch", s.Register(ctx, m))
	m = member("sc-1", 1)
	m.Capability = "{"
	bad("a broken capability", s.Register(ctx, m))
	m = member("sc-1", 1)
	m.Addresses.Web = "a b"
	bad("an address with a space", s.Register(ctx, m))
	m = member("sc-1", 1)
	m.Lease = time.Nanosecond
	bad("a lease of no length", s.Register(ctx, m))
	_, err = s.Acquire(ctx, "", "a", time.Hour)
	bad("a lease without name", err)
	_, err = s.Acquire(ctx, "x", "a", 0)
	bad("a lease of no length", err)
	_, err = s.SaveUAMRecord(ctx, statestore.UAMRecord{})
	bad("an empty UAM record", err)
	big := uamRecord(1, 1, 0, "x")
	big.State = make([]byte, statestore.MaxUAMRecord+1)
	_, err = s.SaveUAMRecord(ctx, big)
	bad("a huge UAM record", err)
	_, err = s.RotateKey(ctx, "r", 0, nil, 0)
	bad("an empty secret", err)
	_, err = s.RotateKey(ctx, "r r", 0, []byte("x"), 0)
	bad("a ring with a space", err)
	_, err = s.Sweep(ctx, 0)
	bad("a sweep of nothing", err)
	d1 := daemon("router", "r1")
	bad("a daemon for no time", s.KeepDaemon(ctx, d1, 0))
	bad("a daemon for ever", s.KeepDaemon(ctx, d1, statestore.MaxTTL+1))
	d1.NotReady = strings.Repeat("x", statestore.MaxDaemon)
	bad("a daemon with a long record", s.KeepDaemon(ctx, d1, time.Hour))
	bad("a daemon with a space in its kind", s.KeepDaemon(ctx, daemon("a b", "x"), time.Hour))
	bad("a daemon without a name", s.KeepDaemon(ctx, daemon("router", ""), time.Hour))
	bad("no daemon to drop", s.DropDaemon(ctx, statestore.Daemon{}))
	_, _, err = s.Daemons(ctx, "", statestore.MaxPage+1)
	bad("a huge page of daemons", err)
	bad("a long drain reason", s.Drain(ctx, "sc-1", string(make([]byte, 2000))))
	if r := must[subcluster.Records](t)(s.Records(ctx)); len(r.Members)+len(r.Policies) != 0 {
		t.Fatalf("refused requests left %+v", r)
	}
}

func concurrentClaims(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	const callers, apps = 16, 50
	type answer struct {
		app    int
		winner creel.SubclusterID
		number int64
		err    error
	}
	answers := make(chan answer, callers*apps)
	for c := range callers {
		go func() {
			for i := range apps {
				w, number, err := s.Claim(ctx, App(i), creel.SubclusterID(fmt.Sprintf("sc-%d", c)), nil)
				answers <- answer{i, w, number, err}
			}
		}()
	}
	winners, made := map[int]creel.SubclusterID{}, map[int]int{}
	for range callers * apps {
		a := <-answers
		ok(t, a.err)
		if before, seen := winners[a.app]; seen && before != a.winner {
			t.Fatalf("application %d has two homes: %s and %s", a.app, before, a.winner)
		}
		winners[a.app] = a.winner
		if a.number == 1 {
			made[a.app]++
		}
	}
	for i := range apps {
		same(t, fmt.Sprintf("fresh claims of application %d", i), made[i], 1)
	}
	total := 0
	for c := range callers {
		total += len(list(t, s, creel.SubclusterID(fmt.Sprintf("sc-%d", c)), 100))
	}
	same(t, "lines in all listings", total, apps)
}

func endedContext(t *testing.T, d Deployment) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := d.Store.Claim(ctx, App(1), "sc-1", nil); err == nil {
		t.Fatal("a claim with an ended context succeeded")
	}
	_, err := d.Store.Home(t.Context(), App(1))
	refused(t, err, creel.ErrApplicationNotFound)
}
