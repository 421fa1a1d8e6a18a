// SPDX-License-Identifier: Apache-2.0

// Package statetest tests the contract of package state. The journal and every shared state pass the same tests.
//
//	func TestContract(t *testing.T) {
//		statetest.Run(t, func(t *testing.T) statetest.Deployment { ... })
//	}
package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// Deployment is a state under test, empty at first.
type Deployment struct {
	// Open makes a new holder, as another process would.
	Open func() (state.Log, error)
	// Exclusive: Open fails while there is a holder. Else it fences the holder.
	Exclusive bool
	// Follow makes a follower; nil if the state has none.
	Follow func() (state.Follower, error)
}

// Holder is an open log with its Run goroutine.
type Holder struct {
	state.Log
	stop  context.CancelFunc
	ended chan error
}

// tester is a test or a run of a property.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Start opens the state and runs the log. The caller ends it.
func (d Deployment) Start(t tester) *Holder {
	t.Helper()
	l, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	return start(l)
}

func start(l state.Log) *Holder {
	ctx, stop := context.WithCancel(context.Background())
	h := &Holder{Log: l, stop: stop, ended: make(chan error, 1)}
	go func() { h.ended <- l.Run(ctx) }()
	return h
}

// Save commits a change and waits until it is durable.
func (h *Holder) Save(change func(tx *state.Tx)) error {
	var tx state.Tx
	change(&tx)
	return <-h.queue(&tx)
}

func (h *Holder) queue(tx *state.Tx) <-chan error {
	done := make(chan error, 1)
	h.Commit(tx, func(err error) { done <- err })
	return done
}

// End stops Run and returns its error.
func (h *Holder) End() error {
	h.stop()
	return h.Ended()
}

// Ended waits until Run has ended by itself, and returns its error.
func (h *Holder) Ended() error {
	defer h.stop()
	return <-h.ended
}

// Put makes a change of one key.
func Put(key, value string) func(*state.Tx) {
	return func(tx *state.Tx) { tx.Put(key, []byte(value)) }
}

// Content returns the entries that the next holder reads. The state must have no holder that still writes.
func (d Deployment) Content(t tester) map[string]string {
	t.Helper()
	l, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	return content(t, l)
}

// content reads the entries of an opened log, and closes it.
func content(t tester, l state.Log) map[string]string {
	t.Helper()
	got, last := map[string]string{}, ""
	err := l.Each(func(key string, value []byte) error {
		if key <= last && len(got) > 0 {
			return fmt.Errorf("%q follows %q", key, last)
		}
		got[key], last = string(value), key
		return nil
	})
	if err = errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return got
}

func (d Deployment) expect(t tester, want map[string]string) {
	t.Helper()
	if got := d.Content(t); !maps.Equal(got, want) {
		t.Fatalf("the next holder reads %d entries %.200v, want %d %.200v", len(got), got, len(want), want)
	}
}

// Run runs the whole contract, each part on a fresh state.
func Run(t *testing.T, open func(t *testing.T) Deployment) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Deployment)
	}{
		{"NewStateIsEmpty", func(t *testing.T, d Deployment) { d.expect(t, map[string]string{}) }},
		{"LastValueOfAKeyStays", lastValueStays},
		{"AnyBytesAreStored", anyBytes},
		{"LargeTransactionIsWhole", largeTransaction},
		{"TransactionMayBeReusedAtOnce", reusedAtOnce},
		{"GroupsKeepTheOrderOfCommit", groups},
		{"CommitsBeforeTheEndAreWritten", endWrites},
		{"CommitsAfterTheEndFail", afterTheEnd},
		{"OneHolderAtATime", oneHolder},
		{"StateEqualsAMap", equalsMap},
		{"FollowerLeads", followerLeads},
		{"FollowedStateEqualsAMap", followedEqualsMap},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t)) })
	}
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lastValueStays(t *testing.T, d Deployment) {
	h := d.Start(t)
	must(t, h.Save(Put("a", "1")))
	must(t, h.Save(func(tx *state.Tx) {
		tx.Put("b", []byte("1"))
		tx.Put("b", []byte("2"))
		tx.Put("c", nil)
		tx.Delete("c")
		tx.Delete("absent")
		tx.Delete("d")
		tx.Put("d", []byte("again"))
	}))
	must(t, h.Save(Put("a", "2")))
	must(t, h.End())
	d.expect(t, map[string]string{"a": "2", "b": "2", "d": "again"})
}

func anyBytes(t *testing.T, d Deployment) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := map[string]string{"empty": "", string(every): string(every), "app/x y\r\n{}": "\x00", "1": "-0"}
	h := d.Start(t)
	must(t, h.Save(func(tx *state.Tx) {
		for key, value := range want {
			tx.Put(key, []byte(value))
		}
	}))
	must(t, h.End())
	d.expect(t, want)
}

func largeTransaction(t *testing.T, d Deployment) {
	want := map[string]string{"one": string(bytes.Repeat([]byte("v"), 9<<20))}
	for i := range 20_000 {
		want[fmt.Sprint("key", i)] = fmt.Sprint(i)
	}
	h := d.Start(t)
	must(t, h.Save(func(tx *state.Tx) {
		for _, key := range slices.Sorted(maps.Keys(want)) {
			tx.Put(key, []byte(want[key]))
		}
	}))
	must(t, h.End())
	d.expect(t, want)
}

func reusedAtOnce(t *testing.T, d Deployment) {
	l, err := d.Open()
	must(t, err)
	var tx state.Tx
	answers := make(chan error, 2)
	value := []byte("first")
	tx.Put("a", value)
	l.Commit(&tx, func(err error) { answers <- err })
	copy(value, "wrong")
	tx.Reset()
	tx.Put("b", []byte("second"))
	l.Commit(&tx, func(err error) { answers <- err })
	h := start(l)
	must(t, <-answers)
	must(t, <-answers)
	must(t, h.End())
	d.expect(t, map[string]string{"a": "first", "b": "second"})
}

func groups(t *testing.T, d Deployment) {
	const writers, each = 8, 100
	h := d.Start(t)
	// done runs on the log's own goroutine: the list needs no lock, and is complete when all were called.
	var order []string
	all := make(chan error, writers*each)
	for w := range writers {
		go func() {
			var tx state.Tx
			for i := range each {
				key := fmt.Sprintf("writer%d", w)
				tx.Reset()
				tx.Put(key, fmt.Append(nil, i))
				tx.Put(fmt.Sprintf("%s/%d", key, i), nil)
				h.Commit(&tx, func(err error) {
					order = append(order, fmt.Sprintf("%s/%d", key, i))
					all <- err
				})
			}
		}()
	}
	for range writers * each {
		must(t, <-all)
	}
	must(t, h.End())
	next := map[string]int{}
	want := map[string]string{}
	for _, at := range order {
		var w, i int
		if _, err := fmt.Sscanf(at, "writer%d/%d", &w, &i); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("writer%d", w)
		if next[key] != i {
			t.Fatalf("%s was answered out of turn: %d is next", at, next[key])
		}
		next[key]++
		want[at], want[key] = "", fmt.Sprint(i)
	}
	d.expect(t, want)
}

func endWrites(t *testing.T, d Deployment) {
	l, err := d.Open()
	must(t, err)
	answers := make(chan error, 50)
	want := map[string]string{}
	for i := range cap(answers) {
		var tx state.Tx
		tx.Put(fmt.Sprint(i), nil)
		want[fmt.Sprint(i)] = ""
		l.Commit(&tx, func(err error) { answers <- err })
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	must(t, l.Run(ctx))
	for range cap(answers) {
		must(t, <-answers)
	}
	d.expect(t, want)
}

func afterTheEnd(t *testing.T, d Deployment) {
	h := d.Start(t)
	must(t, h.Save(Put("a", "1")))
	must(t, h.Confirm(t.Context()))
	must(t, h.End())
	if err := h.Save(Put("b", "2")); !errors.Is(err, state.ErrClosed) {
		t.Errorf("a transaction after the end was answered %v", err)
	}
	if err := h.Confirm(t.Context()); err == nil {
		t.Error("a log that has ended was confirmed")
	}
	if err := h.Run(t.Context()); err == nil {
		t.Error("Run ran twice")
	}
	if err := h.Close(); err == nil {
		t.Error("Close closed a log that had run")
	}
	d.expect(t, map[string]string{"a": "1"})
}

func oneHolder(t *testing.T, d Deployment) {
	first := d.Start(t)
	must(t, first.Save(Put("a", "first")))
	l, err := d.Open()
	if d.Exclusive {
		if err == nil {
			t.Fatal("a second holder opened the state")
		}
		must(t, first.Save(Put("b", "first")))
		must(t, first.End())
		d.expect(t, map[string]string{"a": "first", "b": "first"})
		return
	}
	must(t, err)
	if err := first.Confirm(t.Context()); !errors.Is(err, state.ErrFenced) {
		t.Errorf("the first holder was confirmed with %v after the second opened the state", err)
	}
	if err := first.Save(Put("a", "too late")); !errors.Is(err, state.ErrFenced) {
		t.Errorf("the first holder's transaction was answered %v", err)
	}
	if err := first.Ended(); !errors.Is(err, state.ErrFenced) {
		t.Errorf("the first holder's Run returned %v", err)
	}
	second := start(l)
	must(t, second.Save(Put("b", "second")))
	must(t, second.Confirm(t.Context()))
	must(t, second.End())
	d.expect(t, map[string]string{"a": "first", "b": "second"})
}

// equalsMap is the property: after any transactions, by any number of holders, the state equals a plain map.
func equalsMap(t *testing.T, d Deployment) {
	propertytest.Check(t, func(t *rapid.T) {
		model := map[string]string{}
		left := d.Content(t) // by the run before
		h := d.Start(t)
		must(t, h.Save(func(tx *state.Tx) {
			for key := range left {
				tx.Delete(key)
			}
		}))
		must(t, h.End())
		for range rapid.IntRange(1, 3).Draw(t, "holders") {
			h := d.Start(t)
			for range rapid.IntRange(0, 10).Draw(t, "transactions") {
				must(t, h.Save(func(tx *state.Tx) { draw(t, tx, model) }))
			}
			must(t, h.End())
		}
		d.expect(t, model)
	})
}

// draw adds random operations to a transaction and to the model.
func draw(t *rapid.T, tx *state.Tx, model map[string]string) {
	for range rapid.IntRange(0, 4).Draw(t, "operations") {
		key := rapid.StringMatching("[a-d]{1,2}").Draw(t, "key")
		if rapid.Bool().Draw(t, "delete") {
			tx.Delete(key)
			delete(model, key)
			continue
		}
		value := rapid.StringN(0, 40, -1).Draw(t, "value")
		tx.Put(key, []byte(value))
		model[key] = value
	}
}
