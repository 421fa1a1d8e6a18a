// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/moves"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// homes has the applications' homes, and is the store of their moves.
type homes struct {
	*memory.Store
	at       map[creel.ApplicationID]creel.SubclusterID
	conflict string // the document of this name is written by others at the same time
	away     string // at the document of this name the store fails
}

func (h *homes) Home(_ context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	return h.at[app], nil
}

func (h *homes) Claim(_ context.Context, app creel.ApplicationID, _ creel.SubclusterID, _ []byte) (
	creel.SubclusterID, int64, error) {
	return h.at[app], 1, nil
}

func (h *homes) Move(_ context.Context, app creel.ApplicationID, _, to creel.SubclusterID, _ int64, _ []byte) (
	creel.SubclusterID, error) {
	h.at[app] = to
	return to, nil
}

func (h *homes) PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error) {
	if w.Name == h.conflict {
		return statestore.Document{}, creel.ErrConflict
	}
	if w.Name == h.away {
		return statestore.Document{}, statestore.Unavailable("it fails over", 0)
	}
	return h.Store.PutDocument(ctx, w)
}

// round carries out the moves on record.
func (h *homes) round(t *testing.T, view func() *subcluster.View) {
	t.Helper()
	loop := moves.New(moves.Config[string]{Store: h, View: view, Mover: router.Mover[string]{
		Homes: h, Now: time.Now,
		Disown: func(context.Context, creel.SubclusterID, creel.ApplicationID, int64) (router.Standing, error) {
			return router.Disowned, nil
		},
		Hold: func(context.Context, creel.SubclusterID, creel.ApplicationID, int64, string) (string, error) {
			return "message", nil
		},
		Release: func(context.Context, creel.SubclusterID, creel.ApplicationID, int64) error { return nil },
		Drop:    func(context.Context, creel.SubclusterID, creel.ApplicationID, int64) error { return nil },
		Submit: func(context.Context, creel.SubclusterID, creel.ApplicationID, string, int64) (router.Verdict, error) {
			return router.Accepted, nil
		},
	}})
	if err := loop.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An undone move is undone again only by name, and one that others change does not stop the rest from being undone.
func TestMovesAreUndoneOnce(t *testing.T) {
	ctx := t.Context()
	app := func(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
	}, nil)
	now := func() *subcluster.View { return view }
	h := &homes{
		Store: memory.New(memory.NewState("test", nil), time.Now),
		at:    map[creel.ApplicationID]creel.SubclusterID{app(1): "a", app(2): "a"},
	}
	o := operator.New(operator.Config{View: now, Store: h})
	undo := func(step, one, two string, apps ...creel.ApplicationID) {
		t.Helper()
		out, err := o.UndoMoves(ctx, "ann", apps)
		got := map[creel.ApplicationID]string{}
		for _, u := range out {
			got[u.Application] += u.Result
		}
		for n, want := range []string{one, two} {
			if is, ok := got[app(int32(n+1))]; err != nil || ok != (want != "") || !strings.Contains(is, want) {
				t.Errorf("%s: %v: %v, want of the %d. %q", step, got, err, n+1, want)
			}
		}
	}
	at := func(step string, one, two creel.SubclusterID) {
		t.Helper()
		h.round(t, now)
		if want := map[creel.ApplicationID]creel.SubclusterID{app(1): one, app(2): two}; !maps.Equal(h.at, want) {
			t.Errorf("%s: at %v, want %v", step, h.at, want)
		}
	}

	for n := range int32(2) {
		if err := moves.Begin(ctx, h, moves.Record{
			HomeMove: router.HomeMove{Application: app(n + 1), From: "a", To: "b", Why: "a is drained"}, By: "rebalancer",
		}); err != nil {
			t.Fatal(err)
		}
	}
	at("moved", "b", "b")
	h.conflict = app(2).String()
	undo("one of them moves again", "it goes back to a", "`creel rebalancer moves`")
	h.conflict = ""
	undo("one is under way", "it is already moving back to a", "it goes back to a, if")
	undo("both are, and one is named", "", "it is already moving back to a", app(2))
	at("undone", "a", "a")
	undo("again", "it went back to a", "it went back to a")
	at("not undone again", "a", "a")
	undo("again by name", "", "it goes back to b", app(2))
	at("undone again by name", "a", "b")
	undo("once more", "it went back to a", "it went back to b")

	// As older versions write it there is no mark.
	set, err := h.Documents(ctx, "moves-done")
	if err != nil || len(set.Documents) != 1 {
		t.Fatal(set, err)
	}
	old := set.Documents[0]
	_, err = h.Store.PutDocument(ctx, statestore.DocumentWrite{
		Class: old.Class, Name: old.Name, Expect: old.Version,
		Data: []byte(strings.ReplaceAll(string(old.Data), `,"undo":true`, "")),
	})
	if err != nil {
		t.Fatal(err)
	}
	undo("an older version's", "it goes back to b", "it goes back to a")
}

// The store fails in the middle of an undo: the undos begun so far are reported. Applications of a removed member
// cannot move back.
func TestUndoReportsProgress(t *testing.T) {
	ctx := t.Context()
	app := func(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }
	member := func(id creel.SubclusterID, state subcluster.State) subcluster.Status {
		return subcluster.Status{Member: subcluster.Member{ID: id}, State: state}
	}
	all := subcluster.NewView(time.Now(), []subcluster.Status{
		member("a", subcluster.StateActive), member("b", subcluster.StateActive), member("c", subcluster.StateActive),
		member("d", subcluster.StateActive),
	}, nil)
	view := all
	h := &homes{
		Store: memory.New(memory.NewState("test", nil), time.Now),
		at:    map[creel.ApplicationID]creel.SubclusterID{},
	}
	for n, to := range []creel.SubclusterID{"b", "b", "c", "d"} {
		h.at[app(int32(n+1))] = "a"
		if err := moves.Begin(ctx, h, moves.Record{
			HomeMove: router.HomeMove{Application: app(int32(n + 1)), From: "a", To: to, Why: "a is drained"}, By: "rebalancer",
		}); err != nil {
			t.Fatal(err)
		}
		h.round(t, func() *subcluster.View { return all }) // newest first they are undone
	}
	view = subcluster.NewView(time.Now(), []subcluster.Status{
		member("a", subcluster.StateActive), member("b", subcluster.StateActive), member("c", subcluster.StateLost),
	}, nil)
	o := operator.New(operator.Config{View: func() *subcluster.View { return view }, Store: h})
	h.away = app(2).String()
	if out, err := o.UndoMoves(ctx, "ann", []creel.ApplicationID{app(2)}); err == nil || len(out) != 0 {
		t.Errorf("nothing was begun: %v, %v", out, err)
	}
	h.away = app(1).String()
	out, err := o.UndoMoves(ctx, "ann", nil)
	want := []string{
		"it does not go back: d, to which it went, is not in the federation any more",
		"it does not go back: c, to which it went, is lost", "it goes back to a, if it still waits",
		"its move is not undone, nor are others that are not named here: state store unavailable",
	}
	if err != nil || len(out) != len(want) {
		t.Fatalf("%v, %v", out, err)
	}
	for i, u := range out {
		if u.Application != app(int32(4-i)) || !strings.HasPrefix(u.Result, want[i]) {
			t.Errorf("%d. is %s: %s, want %s", i+1, u.Application, u.Result, want[i])
		}
	}
	if under, _, err := moves.All(ctx, h); err != nil || len(under) != 1 || under[0].Application != app(2) {
		t.Errorf("under way are %+v, %v", under, err)
	}
}
