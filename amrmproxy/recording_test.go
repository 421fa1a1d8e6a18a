// SPDX-License-Identifier: Apache-2.0

package amrmproxy_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/stored"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

// lossyStore performs its calls, and loses the next few answers.
type lossyStore struct {
	*memory.Store
	lose int
	down bool // removals fail
}

func (s *lossyStore) SaveUAMRecord(ctx context.Context, e statestore.UAMRecord) (int64, error) {
	revision, err := s.Store.SaveUAMRecord(ctx, e)
	if s.lose > 0 {
		s.lose--
		return 0, creel.ErrUnavailable
	}
	return revision, err
}

func (s *lossyStore) DropUAMRecord(ctx context.Context, a creel.AttemptID) error {
	if s.down {
		return creel.ErrUnavailable
	}
	return s.Store.DropUAMRecord(ctx, a)
}

func newLossyStore() *lossyStore {
	return &lossyStore{Store: memory.New(memory.NewState("test", nil), time.Now)}
}

func attempt(n int32) creel.AttemptID {
	return creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: n}
}

// writers counts recordings, each of which has a name of its own.
var writers atomic.Int64

func recording(store *lossyStore, n int32) *amrmproxy.Recording {
	records := &stored.Records{
		Records: store,
		Secrets: func(context.Context) ([]statestore.Key, error) {
			return []statestore.Key{{ID: 1, Secret: []byte("a secret of the cluster, long enough")}}, nil
		},
		Random: rand.Reader,
	}
	return &amrmproxy.Recording{Attempt: attempt(n), Proxy: "p", Writer: fmt.Sprint("writer ", writers.Add(1)), Store: records, Sealer: records}
}

// A save whose answer was lost is sealed again when it is repeated, so the store cannot see that it is the same. It
// must not be taken for another proxy's.
func TestSaveWithLostAnswerIsRecognized(t *testing.T) {
	ctx := context.Background()
	store := newLossyStore()
	first := recording(store, 1)
	save := func(r *amrmproxy.Recording, user string) error {
		return r.Save(ctx, &amrmproxy.Record{Attempt: attempt(1), Home: "sc-a", User: user})
	}
	store.lose = 2
	for range 2 {
		if err := save(first, "ann"); !errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrStale) {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"ann", "bob", "eve"} { // changes made meanwhile are saved as well
		if err := save(first, user); err != nil {
			t.Fatalf("%s: %v", user, err)
		}
	}
	other := recording(store, 1)
	known, err := other.Load(ctx)
	if err != nil || known.User != "eve" {
		t.Fatalf("the store has %+v, %v", known, err)
	}
	if err := save(other, "theirs"); err != nil {
		t.Fatal(err)
	}
	store.lose = 1
	if err := save(first, "ours"); !errors.Is(err, creel.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := save(first, "ours"); !errors.Is(err, creel.ErrStale) {
		t.Errorf("another proxy has the attempt, and saving says %v", err)
	}
}

// The store goes back to an earlier state between any two saves: of this recording, of the one that it took over
// from, and of the attempt before. The recording replaces the older entry, and the other one stops.
func TestSaveAfterStoreGoesBack(t *testing.T) {
	ctx := t.Context()
	save := func(r *amrmproxy.Recording, user string) error {
		return r.Save(ctx, &amrmproxy.Record{Attempt: r.Attempt, Home: "sc-a", User: user})
	}
	const steps = 7
	for back := range steps {
		store := newLossyStore()
		var snapshots [][]byte
		keep := func() {
			data, err := store.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			snapshots = append(snapshots, data)
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("back to step %d: %v", back, err)
			}
		}
		load := func(r *amrmproxy.Recording) {
			_, err := r.Load(ctx)
			must(err)
		}
		keep() // 0: empty
		first, former, owner := recording(store, 1), recording(store, 2), recording(store, 2)
		must(save(first, "first"))
		keep() // 1: the first attempt's entry
		load(former)
		must(save(former, "former 1"))
		keep() // 2
		must(save(former, "former 2"))
		keep() // 3
		load(owner)
		keep() // 4: the same
		must(save(owner, "owner 1"))
		keep() // 5
		must(save(owner, "owner 2"))
		keep() // 6
		must(store.Restore(snapshots[back]))
		if back < 5 {
			must(save(former, "former, which does not know"))
		}
		must(save(owner, "owner 3"))
		if err := save(former, "former"); !errors.Is(err, creel.ErrStale) {
			t.Errorf("back to step %d: the recording that was taken over from saves: %v", back, err)
		}
		must(save(owner, "owner 4"))
		entries, err := store.UAMRecordsOf(ctx, attempt(2).Application)
		must(err)
		next := recording(store, 2)
		known, err := next.Load(ctx)
		must(err)
		if len(entries) != 1 || known.User != "owner 4" {
			t.Errorf("back to step %d: %d entries, the newest of %q", back, len(entries), known.User)
		}
	}
}

// A recording that loaded an entry of the store as it went back has the attempt: the one from before stops.
func TestSaveAfterTakeoverOfOlderEntry(t *testing.T) {
	ctx, store := t.Context(), newLossyStore()
	save := func(r *amrmproxy.Recording) error {
		return r.Save(ctx, &amrmproxy.Record{Attempt: attempt(1), Home: "sc-a", User: "ann"})
	}
	former, next, later := recording(store, 1), recording(store, 1), recording(store, 2)
	if err := save(former); err != nil {
		t.Fatal(err)
	}
	old, err := store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := save(former); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Restore(old); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := save(next); err != nil {
		t.Fatal(err)
	}
	if err := save(former); !errors.Is(err, creel.ErrStale) {
		t.Errorf("two recordings save the record of one attempt: %v", err)
	}
	if err := later.Save(ctx, &amrmproxy.Record{Attempt: attempt(2), Home: "sc-a", User: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := store.DropUAMRecord(ctx, attempt(1)); err != nil {
		t.Fatal(err)
	}
	if err := save(next); !errors.Is(err, creel.ErrStale) {
		t.Errorf("the record of an attempt is saved after that of a later one: %v", err)
	}
}

// A second attempt takes over the record of the first, removes it once its own
// is durable, and removes both at its end even if the store failed between.
func TestSecondAttemptRemovesFirstRecord(t *testing.T) {
	ctx := context.Background()
	store := newLossyStore()
	first, second := recording(store, 1), recording(store, 2)
	if err := first.Save(ctx, &amrmproxy.Record{Attempt: attempt(1), Home: "sc-a", User: "ann"}); err != nil {
		t.Fatal(err)
	}
	known, err := second.Load(ctx)
	if err != nil || known.Attempt != attempt(1) || known.User != "ann" {
		t.Fatalf("the second attempt reads %+v, %v", known, err)
	}
	store.down = true
	if err := second.Save(ctx, &amrmproxy.Record{Attempt: attempt(2), Home: "sc-a", User: "ann"}); err != nil {
		t.Fatal("the record is durable though the earlier one could not be removed:", err)
	}
	if err := second.Save(ctx, nil); !errors.Is(err, creel.ErrUnavailable) {
		t.Fatal("the earlier record is still there, and the removal says", err)
	}
	store.down = false
	if err := second.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if left, err := store.UAMRecordsOf(ctx, attempt(1).Application); err != nil || len(left) > 0 {
		t.Fatalf("%d records are left, %v", len(left), err)
	}
	if _, err := recording(store, 1).Load(ctx); err != nil {
		t.Fatal(err)
	}
}

// The first attempt's save arrives after the second attempt has read the records. The second removes it at its end.
func TestEndRemovesLateRecordOfFirstAttempt(t *testing.T) {
	ctx := context.Background()
	store := newLossyStore()
	first, second := recording(store, 1), recording(store, 2)
	for _, r := range []*amrmproxy.Recording{first, second} {
		if _, err := r.Load(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*amrmproxy.Recording{first, second} {
		if err := r.Save(ctx, &amrmproxy.Record{Attempt: r.Attempt, Home: "sc-a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if left, err := store.UAMRecordsOf(ctx, attempt(1).Application); err != nil || len(left) > 0 {
		t.Errorf("the records left are %+v, %v", left, err)
	}
	if err := first.Save(ctx, &amrmproxy.Record{Attempt: attempt(1), Home: "sc-a"}); err == nil {
		t.Error("a save of the first attempt is accepted after the end")
	}
}

// A call of an earlier attempt neither stops the later one nor is served.
func TestEarlierAttemptIsRefusedAfterLaterCall(t *testing.T) {
	other := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 2}, Attempt: 9}
	stop, err := amrmproxy.Supersede(attempt(2), []creel.AttemptID{attempt(1), other})
	if err != nil || len(stop) != 1 || stop[0] != attempt(1) {
		t.Fatalf("the second attempt stops %v, %v", stop, err)
	}
	if _, err := amrmproxy.Supersede(
		attempt(1),
		[]creel.AttemptID{attempt(2)},
	); !errors.Is(
		err,
		creel.ErrAttemptNotFound,
	) {
		t.Fatalf("the first attempt is told %v", err)
	}
}

// Routers read of a record, in the clear, where they find a UAM: not by its home's numbers.
func TestARecordNamesTheAttemptOfAUAM(t *testing.T) {
	store, own := newLossyStore(), creel.ApplicationID{ClusterTimestamp: 8, ID: 3}
	record := &amrmproxy.Record{Attempt: attempt(2), Home: "sc-a", UAMs: []amrmproxy.UAM{
		{Member: "sc-b", Attempt: attempt(1)},
		{Member: "sc-c", OwnID: own, Attempt: creel.AttemptID{Application: own, Attempt: 4}},
		{Member: "sc-d"},
	}}
	if err := recording(store, 2).Save(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	saved, err := store.UAMRecord(t.Context(), attempt(2))
	if err != nil {
		t.Fatal(err)
	}
	want := []statestore.UAM{
		{Member: "sc-b", Attempt: 1, Phase: "launching"},
		{Member: "sc-c", OwnID: own, Attempt: 4, Phase: "launching"},
		{Member: "sc-d", Phase: "launching"},
	}
	if got := fmt.Sprintf("%+v", saved.UAMs); got != fmt.Sprintf("%+v", want) {
		t.Errorf("the record has %s, want %+v", got, want)
	}
}
