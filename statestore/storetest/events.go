// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

func event(key, subject string) statestore.Event {
	return statestore.Event{
		Key: key, Kind: statestore.EventPolicy, Subject: subject, User: "alice", From: "10.0.0.7:4711", By: "router a",
		Before: "hash", After: "load", Result: statestore.EventDone, Detail: "why",
	}
}

func events(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	read := must[[]statestore.Event](t)
	same(t, "events of an empty store", len(read(s.Events(ctx, "", 10))), 0)
	for i := range 3 {
		for range 2 { // a repeat, or another reporter of the same event
			if err := s.AppendEvent(ctx, event(fmt.Sprint("key", i), fmt.Sprint("root.q", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := read(s.Events(ctx, "", 10))
	same(t, "events", len(all), 3)
	want := event("", "root.q0")
	want.ID, want.Time = all[0].ID, all[0].Time
	same(t, "event", all[0], want)
	now := must[statestore.DocumentSet](t)(s.Documents(ctx, "queues")).Now
	if age := now.Sub(all[0].Time); all[0].ID == "" || age < -time.Second || age > time.Minute {
		t.Fatalf("event has id %q and age %v", all[0].ID, age)
	}
	if !(statestore.CompareEventIDs(all[0].ID, all[1].ID) < 0 && statestore.CompareEventIDs(all[1].ID, all[2].ID) < 0) {
		t.Fatalf("ids %q, %q, %q do not rise", all[0].ID, all[1].ID, all[2].ID)
	}
	rest := read(s.Events(ctx, all[0].ID, 1))
	if len(rest) != 1 || rest[0].Subject != "root.q1" {
		t.Fatalf("one event after the first is %+v", rest)
	}
	same(t, "events after the last", len(read(s.Events(ctx, all[2].ID, 10))), 0)
	same(t, "events after an old cursor", len(read(s.Events(ctx, statestore.EventCursor(all[0].Time), 10))), 3)

	long := event("long", "root.long")
	long.Before, long.After = strings.Repeat("ü", 3000), strings.Repeat("\x01", 3000)
	if err := s.AppendEvent(ctx, long); err != nil {
		t.Fatal(err)
	}
	last := read(s.Events(ctx, all[2].ID, 10))
	if len(last) != 1 || len(last[0].Before) > 1000 || !strings.HasSuffix(last[0].Before, "ü…") {
		t.Fatalf("long event is %+v", last)
	}
	for _, e := range []statestore.Event{
		{Key: "k", Kind: "nonsense", Subject: "a"}, {Key: "k", Kind: statestore.EventPolicy},
		{Kind: statestore.EventPolicy, Subject: "a"},
	} {
		refused(t, s.AppendEvent(ctx, e), creel.ErrInvalidRequest)
	}
	for _, cursor := range []string{"x", "1", "1-x", "-1-0"} {
		_, err := s.Events(ctx, cursor, 10)
		refused(t, err, creel.ErrInvalidRequest)
	}
	for _, limit := range []int{0, statestore.MaxPage + 1} {
		_, err := s.Events(ctx, "", limit)
		refused(t, err, creel.ErrInvalidRequest)
	}
}

// recordings: a write that is made records the event of its context once; a rejected write records none.
func recordings(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	wrote, read := must[statestore.Document](t), must[[]statestore.Event](t)
	with := statestore.Recording(ctx, event("first", "the tree"))
	one := wrote(s.PutDocument(with, document("queues", "a", 0, "one")))
	wrote(s.PutDocument(with, document("queues", "a", 0, "one"))) // the repeat of a lost answer
	_, err := s.PutDocument(statestore.Recording(ctx, event("second", "the tree")), document("queues", "a", 7, "two"))
	refused(t, err, creel.ErrConflict)
	same(t, "events of a write, its repeat and a rejected one", len(read(s.Events(ctx, "", 10))), 1)

	parts := document("queues", "a", one.Version, "[1]")
	parts.Parts = []subcluster.Part{{Text: []byte("head")}, {Leaf: "leaf", Text: []byte("rows")}}
	wrote(s.PutDocument(statestore.Recording(ctx, event("parts", "the tree")), parts))
	got := must[statestore.Document](t)(s.DocumentOf(ctx, "queues", "a", []string{"leaf"}))
	if !strings.Contains(string(got.Data), "rows") {
		t.Fatalf("parts of a recorded write: %q", got.Data)
	}
	if _, err := s.PutPolicy(statestore.Recording(ctx, event("policy", "root.a")), statestore.PolicyWrite{
		Queue: "root.a", Document: []byte(`{"a":1}`), Author: "alice",
	}); err != nil {
		t.Fatal(err)
	}
	joined := member("sc-events", 1)
	unrecorded := statestore.Recording(ctx, event("join", "a registration")) // Recording does not name Register
	if err := s.Register(unrecorded, joined); err != nil {
		t.Fatal(err)
	}
	for i, write := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return s.Drain(ctx, joined.ID, "disks") },
		func(ctx context.Context) error { return s.Drain(ctx, joined.ID, "") },
		func(ctx context.Context) error { return s.Deregister(ctx, joined.ID, joined.Epoch) },
		func(ctx context.Context) error { return s.RemoveMember(ctx, joined.ID) },
	} {
		if err := write(statestore.Recording(ctx, event(fmt.Sprint("member", i), "sc-events"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drain(statestore.Recording(ctx, event("late", "sc-events")), joined.ID, ""); err == nil {
		t.Fatal("a removed member is drained")
	}
	of := map[string]int{}
	for _, e := range read(s.Events(ctx, "", 100)) {
		of[e.Subject]++
	}
	same(t, "events by subject", fmt.Sprint(of), "map[root.a:1 sc-events:4 the tree:2]")
	invalid := statestore.Recording(ctx, statestore.Event{Kind: "nonsense"})
	_, err = s.PutDocument(invalid, document("queues", "b", 0, "b"))
	refused(t, err, creel.ErrInvalidRequest)
}
