// SPDX-License-Identifier: Apache-2.0

package intents_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// atHome is a store in which the application is at home in "a".
func atHome(t *testing.T) *memory.Store {
	t.Helper()
	s := memory.New(memory.NewState("test", nil), time.Now)
	if _, _, err := s.Claim(t.Context(), app, "a", nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// fill records so many kills that wait for "a", each of another application and of the user that of returns.
func fill(t *testing.T, s *memory.Store, n int, of func(n int) string) {
	t.Helper()
	for k := range n {
		id := creel.ApplicationID{ClusterTimestamp: 5, ID: int32(k + 1)}
		if _, _, err := s.Claim(t.Context(), id, "a", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: "intents", Name: fmt.Sprintf("%s/%s/kill", id, of(k)), Data: []byte("{}"), Quiet: true,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func someUser(n int) string { return fmt.Sprint("user", n) }

// The record is full. Recorded intents are still carried out, and a home's success is still recorded for the members
// with UAMs; so the record drains.
func TestAFullRecordDrains(t *testing.T) {
	ctx := t.Context()
	s := atHome(t)
	record := statestore.UAMRecord{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "a", UAMs: []statestore.UAM{{Member: "b"}},
	}
	if _, err := s.SaveUAMRecord(ctx, record); err != nil {
		t.Fatal(err)
	}
	if err := intents.Record(ctx, s, intents.Intent{
		Application: app, User: "ann", Verb: intents.Move, Queue: "root.x",
	}); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 9_999, someUser)
	if err := intents.Record(ctx, s, kill("ann", "")); !errors.Is(err, creel.ErrBusy) {
		t.Fatalf("one too many: %v", err)
	}
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
	}, nil)
	var last string
	loop := intents.New(s, intents.Config{
		View: func() *subcluster.View { return view },
		Do: func(_ context.Context, m *subcluster.Status, i intents.Intent) (bool, error) {
			last = fmt.Sprintf("%s: %s", m.ID, &i)
			return true, nil
		},
	})
	for range 2 {
		if err := loop.Round(ctx); err != nil {
			t.Error(err)
		}
	}
	left, err := intents.Waiting(ctx, s, creel.ApplicationID{})
	if err != nil || len(left) != 0 || last != "b: move to queue root.x" {
		t.Errorf("%d are left, %v; last was %s", len(left), err, last)
	}
}

// One user's intents leave capacity for the others.
func TestOneUserDoesNotFillTheRecord(t *testing.T) {
	ctx := t.Context()
	s := atHome(t)
	fill(t, s, 4_999, func(int) string { return "eve" })
	signal := func(user string, n int64) error {
		return intents.Record(ctx, s, intents.Intent{
			Application: app, User: user, Verb: intents.Signal, Command: 1,
			Container: creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, 1, n),
		})
	}
	if err := signal("eve", 1); err != nil {
		t.Fatalf("while there is room for all: %v", err)
	}
	for range 2 {
		if err := signal("eve", 2); !errors.Is(err, creel.ErrBusy) {
			t.Errorf("eve, who fills half of the record: %v", err)
		}
	}
	if err := signal("eve", 1); err != nil {
		t.Errorf("what eve has on record, again: %v", err)
	}
	if err := intents.Record(ctx, s, kill("ann", "")); err != nil {
		t.Errorf("ann: %v", err)
	}
}

// A part of an application that cannot be read stops no other.
func TestOneFailureStopsNoOther(t *testing.T) {
	ctx := t.Context()
	s := atHome(t)
	fill(t, s, 3, someUser)
	first := creel.ApplicationID{ClusterTimestamp: 5, ID: 1}
	done := 0
	loop := intents.New(unreadable{s, first}, intents.Config{
		View: func() *subcluster.View {
			return subcluster.NewView(time.Now(), []subcluster.Status{
				{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
			}, nil)
		},
		Do: func(context.Context, *subcluster.Status, intents.Intent) (bool, error) { done++; return true, nil },
	})
	if err := loop.Round(ctx); !errors.Is(err, creel.ErrInvalidRequest) || done != 2 {
		t.Errorf("%d were carried out, %v; want the two that can be read", done, err)
	}
}

// unreadable is a store in which the home of one application cannot be read.
type unreadable struct {
	*memory.Store
	app creel.ApplicationID
}

func (u unreadable) Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	if app == u.app {
		return "", &creel.Error{Kind: creel.ErrInvalidRequest, What: "the record cannot be read"}
	}
	return u.Store.Home(ctx, app)
}
