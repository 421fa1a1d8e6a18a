// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
)

// backends runs a test on each store that has moves.
func backends(t *testing.T, tell func(t *testing.T, s statestore.Store)) {
	t.Run("memory", func(t *testing.T) {
		tell(t, memory.New(memory.NewState("test", nil), time.Now))
	})
	t.Run("Redis", func(t *testing.T) {
		s, err := redis.Open(redis.Config{URL: redistest.Start(t).URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		tell(t, s)
	})
}

func app(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }

func record(n int32) Record {
	return Record{
		HomeMove: router.HomeMove{Application: app(n), From: "sc-1", To: "sc-2", Why: "sc-1 is drained"},
		Queue:    "root.a", By: "ann",
	}
}

func TestMoveRecordLastsUntilEnd(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		for n := range int32(3) {
			if err := Begin(ctx, s, record(n+1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := Begin(ctx, s, record(2)); err != nil {
			t.Errorf("the same again: %v", err)
		}
		other := record(2)
		if other.To = "sc-3"; !errors.Is(Begin(ctx, s, other), creel.ErrConflict) {
			t.Error("an application that moves is moved elsewhere")
		}
		if there, err := GiveUp(ctx, s, app(2), "undone by ann"); err != nil || !there {
			t.Fatal(there, err)
		}
		if there, err := GiveUp(ctx, s, app(9), "x"); err != nil || there {
			t.Errorf("a move that nobody asked for: %v %v", there, err)
		}
		all, now, err := All(ctx, s)
		if err != nil || len(all) != 3 || all[0].Application != app(1) || now.IsZero() {
			t.Fatalf("%+v %v", all, err)
		}
		if r, there, err := Of(ctx, s, app(2)); err != nil || !there || r.GiveUp != "undone by ann" || r.By != "ann" ||
			r.Queue != "root.a" || r.To != "sc-2" {
			t.Errorf("%+v %v %v", r, there, err)
		}
		if _, there, err := end(ctx, s, all[0], true, "", now, nil); err != nil || !there {
			t.Fatal(there, err)
		}
		if _, there, err := end(ctx, s, all[0], true, "", now, nil); err != nil || there {
			t.Errorf("another router ends it again: %v %v", there, err)
		}
		if _, _, err := end(ctx, s, all[1], false, "it has been granted a container", now, nil); err != nil {
			t.Fatal(err)
		}
		last, err := Last(ctx, s)
		if err != nil || len(last) != 2 || last[0].Application != app(3) || last[0].Moved || !last[1].Moved {
			t.Errorf("%+v %v", last, err)
		}
	})
}

// A move that is an undo is one on record, when it is changed, and when it is over.
func TestAnUndoIsMarked(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		undo := record(2)
		undo.Undo = true
		for _, r := range []Record{record(1), undo} {
			if err := Begin(ctx, s, r); err != nil {
				t.Fatal(err)
			}
			if _, err := GiveUp(ctx, s, r.Application, "given up"); err != nil {
				t.Fatal(err)
			}
		}
		all, now, err := All(ctx, s)
		if err != nil || len(all) != 2 || all[0].Undo || !all[1].Undo {
			t.Fatalf("%+v %v", all, err)
		}
		for _, r := range all {
			if _, _, err := end(ctx, s, r, false, r.GiveUp, now, nil); err != nil {
				t.Fatal(err)
			}
		}
		if last, err := Last(ctx, s); err != nil || len(last) != 2 || !last[0].Undo || last[1].Undo {
			t.Errorf("%+v %v", last, err)
		}
	})
}

// members plays the part of two ResourceManagers and of the homes in the store.
type members struct {
	router.Homes
	home   creel.SubclusterID
	number int64
	held   map[creel.SubclusterID]int64
	has    map[creel.SubclusterID]bool
	refuse bool // by the next home
}

func (m *members) Home(context.Context, creel.ApplicationID) (creel.SubclusterID, error) {
	return m.home, nil
}

func (m *members) Claim(_ context.Context, _ creel.ApplicationID, _ creel.SubclusterID, _ []byte) (
	creel.SubclusterID, int64, error) {
	m.number++
	return m.home, m.number, nil
}

func (m *members) Move(_ context.Context, _ creel.ApplicationID, from, to creel.SubclusterID, number int64, _ []byte) (
	creel.SubclusterID, error) {
	if m.home != from || m.number != number {
		return m.home, creel.ErrConflict
	}
	m.home, m.number = to, number+1
	return to, nil
}

func (m *members) mover() router.Mover[string] {
	return router.Mover[string]{
		Homes: m, Now: time.Now,
		Disown: func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, _ int64) (router.Standing, error) {
			if m.has[at] {
				return router.Running, nil
			}
			return router.Disowned, nil
		},
		Hold: func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, claim int64, _ string) (string, error) {
			m.held[at] = claim
			return "message", nil
		},
		Release: func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, claim int64) error {
			if m.held[at] <= claim {
				delete(m.held, at)
			}
			return nil
		},
		Drop: func(_ context.Context, at creel.SubclusterID, _ creel.ApplicationID, claim int64) error {
			if m.held[at] > claim {
				return creel.ErrInvalidRequest
			}
			delete(m.held, at)
			delete(m.has, at)
			return nil
		},
		Submit: func(_ context.Context, to creel.SubclusterID, _ creel.ApplicationID, held string, _ int64) (
			router.Verdict, error) {
			if m.refuse || held != "message" {
				return router.Refused, fmt.Errorf("no such queue: %w", creel.ErrInvalidRequest)
			}
			m.has[to] = true
			return router.Accepted, nil
		},
	}
}

func TestLoopExecutesMovesAndRepairsUnrecorded(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		state := subcluster.StateActive
		view := func() *subcluster.View {
			list := []subcluster.Status{
				{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateDraining},
				{Member: subcluster.Member{ID: "sc-2"}, State: state},
			}
			list[0].Load.Metrics.AppsPending = 1
			return subcluster.NewView(time.Now(), list, nil)
		}
		var m *members
		var over []FinishedMove
		round := func(do func(l *Loop[string])) {
			m = &members{
				home: "sc-1", held: map[creel.SubclusterID]int64{}, has: map[creel.SubclusterID]bool{"sc-1": true},
			}
			over = nil
			l := New(Config[string]{
				Store: s, View: view, Mover: m.mover(), Over: func(d FinishedMove) { over = append(over, d) },
				Recording: func(ctx context.Context, d FinishedMove) context.Context {
					return statestore.Recording(ctx, statestore.Event{
						Key: d.Because + string(d.To), Kind: statestore.EventMove, Subject: d.Application.String(),
						After: string(d.To), Detail: d.Because, Result: statestore.EventDone,
					})
				},
				Held: func(_ context.Context, at *subcluster.Status) (out []Hold, err error) {
					if claim := m.held[at.ID]; claim > 0 {
						out = append(out, Hold{app(1), claim})
					}
					return out, nil
				},
			})
			do(l)
		}
		run := func(l *Loop[string]) {
			if err := l.Round(ctx); err != nil {
				t.Fatal(err)
			}
		}
		begin := func() {
			if err := Begin(ctx, s, record(1)); err != nil {
				t.Fatal(err)
			}
		}
		round(func(l *Loop[string]) {
			begin()
			run(l)
			if m.home != "sc-2" || !m.has["sc-2"] || m.has["sc-1"] || len(over) != 1 || !over[0].Moved {
				t.Errorf("moved: %+v %+v", m, over)
			}
		})
		round(func(l *Loop[string]) {
			begin()
			m.refuse = true
			run(l)
			if m.home != "sc-1" || !m.has["sc-1"] || len(m.held) != 0 || len(over) != 1 || over[0].Moved {
				t.Errorf("refused by its next home: %+v %+v", m, over)
			}
		})
		round(func(l *Loop[string]) {
			begin()
			state = subcluster.StateDraining
			run(l)
			state = subcluster.StateActive
			if m.home != "sc-1" || len(over) != 1 || over[0].Because != "sc-2 is draining" {
				t.Errorf("its next home is drained: %+v %+v", m, over)
			}
		})
		round(func(l *Loop[string]) {
			m.held["sc-1"] = 7
			for range 3 * mendEvery {
				run(l)
			}
			if m.home != "sc-1" || len(m.held) != 0 {
				t.Errorf("held, and nobody else has it: %+v", m)
			}
		})
		round(func(l *Loop[string]) {
			m.held["sc-1"], m.has["sc-2"] = 7, true
			for range 3 * mendEvery {
				run(l)
			}
			if m.home != "sc-2" || m.has["sc-1"] {
				t.Errorf("held, and another has it: %+v", m)
			}
		})
		recorded, err := s.Events(ctx, "", 10)
		if err != nil || len(recorded) != 3 || recorded[0].Subject != app(1).String() || recorded[0].After != "sc-2" ||
			recorded[2].Detail != "sc-2 is draining" {
			t.Errorf("events of the three finished moves: %+v, %v", recorded, err)
		}
	})
}
