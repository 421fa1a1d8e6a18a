// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"context"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// The member that an application should leave was removed from the federation: its move is over, as completed if the
// next home has it. While a member is silent its moves wait.
func TestMoveFromRemovedMemberEnds(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		arrived := record(2)
		arrived.Arrived = 7
		for _, r := range []Record{record(1), arrived} {
			if err := Begin(ctx, s, r); err != nil {
				t.Fatal(err)
			}
		}
		view := viewOf("sc-1", "sc-2")
		view().Members[0].State = subcluster.StateLost
		m := &members{home: "sc-1", held: map[creel.SubclusterID]int64{}, has: map[creel.SubclusterID]bool{}}
		l := New(Config[string]{Store: s, View: func() *subcluster.View { return view() }, Mover: m.mover()})
		ended := func(when string, want int) []FinishedMove {
			t.Helper()
			if err := l.Round(ctx); err != nil {
				t.Fatal(err)
			}
			last, err := Last(ctx, s)
			if err != nil || len(last) != want {
				t.Fatalf("%s: over are %+v, %v; want %d", when, last, err, want)
			}
			return last
		}
		ended("it is silent", 0)
		view = viewOf("sc-2")
		ended("the store has lost it", 0)
		if err := statestore.NoteRemoval(ctx, s, "sc-1", "ann"); err != nil {
			t.Fatal(err)
		}
		last := ended("it was removed", 2)
		if !last[0].Moved || last[1].Moved || last[1].Because != "sc-1 was removed from the federation" {
			t.Errorf("%+v", last)
		}
	})
}

// The home has changed already, and the next one was removed before the application arrived there. It is released
// where it is held, which is its home again.
func TestMoveToRemovedMemberIsReverted(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		if err := Begin(ctx, s, record(1)); err != nil {
			t.Fatal(err)
		}
		m := &members{
			home: "sc-2", held: map[creel.SubclusterID]int64{"sc-1": 1}, has: map[creel.SubclusterID]bool{"sc-1": true},
		}
		mover := m.mover()
		mover.Disown = func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, _ int64) (router.Standing, error) {
			return 0, &creel.Error{Kind: creel.ErrUnavailable, What: string(at) + " is not in the view"}
		}
		if err := statestore.NoteRemoval(ctx, s, "sc-2", "ann"); err != nil {
			t.Fatal(err)
		}
		l := New(Config[string]{Store: s, View: viewOf("sc-1"), Mover: mover})
		if err := l.Round(ctx); err != nil {
			t.Fatal(err)
		}
		last, err := Last(ctx, s)
		if err != nil || len(last) != 1 || last[0].Moved || last[0].Because != "sc-2 is not in the federation any more" {
			t.Errorf("over are %+v, %v", last, err)
		}
		if m.home != "sc-1" || len(m.held) != 0 {
			t.Errorf("its home is %s, and held it is %v", m.home, m.held)
		}
	})
}
