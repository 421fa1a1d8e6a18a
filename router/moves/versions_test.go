// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// A newer version has begun a move whose record this one cannot read. The move is left to that version, counts as
// under way, and stops no other move.
func TestUnreadableMoveBlocksNoOther(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		newer := statestore.DocumentWrite{
			Class: "moves", Name: app(5).String(), Data: []byte(`{"from":{"id":"sc-1"},"to":"sc-2"}`), Author: "ann",
		}
		if _, err := s.PutDocument(ctx, newer); err != nil {
			t.Fatal(err)
		}
		if err := Begin(ctx, s, record(1)); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		m := &members{home: "sc-1", held: map[creel.SubclusterID]int64{}, has: map[creel.SubclusterID]bool{}}
		l := New(Config[string]{
			Store: s, View: viewOf("sc-1", "sc-2"), Mover: m.mover(), Log: slog.New(slog.NewTextHandler(&log, nil)),
			Held: func(context.Context, *subcluster.Status) ([]Hold, error) { return []Hold{{app(5), 7}}, nil },
		})
		for range 3 * mendEvery {
			if err := l.Round(ctx); err != nil {
				t.Fatal(err)
			}
			m.held["sc-1"] = 7 // from when the first is over
		}
		if last, err := Last(ctx, s); err != nil || len(last) != 1 || !last[0].Moved || last[0].Application != app(1) {
			t.Errorf("over are %+v, %v", last, err)
		}
		r, there, err := Of(ctx, s, app(5))
		if err != nil || !there || !r.Unreadable || r.By != "ann" {
			t.Errorf("what cannot be read is %+v %v %v", r, there, err)
		}
		if there, err := GiveUp(ctx, s, app(5), "x"); err == nil || !there {
			t.Errorf("what cannot be read is given up: %v %v", there, err)
		}
		if n := strings.Count(log.String(), "left to routers of another version"); n != 1 || m.held["sc-1"] != 7 {
			t.Errorf("told %d times, held %v: %s", n, m.held, log.String())
		}
		if _, err := s.PutDocument(ctx, statestore.DocumentWrite{
			Class: "moves", Name: app(5).String(), Expect: r.version, Author: "ann", // of no data: removed
		}); err != nil {
			t.Fatal(err)
		}
		if err := l.Round(ctx); err != nil || len(l.told) != 0 {
			t.Errorf("it is gone: %v, and remembered are %v", err, l.told)
		}
	})
}

// Unknown fields of another version survive when a move is changed.
func TestUnknownFieldsSurviveMoveUpdate(t *testing.T) {
	backends(t, func(t *testing.T, s statestore.Store) {
		ctx := t.Context()
		if _, err := s.PutDocument(ctx, statestore.DocumentWrite{
			Class: "moves", Name: app(5).String(), Author: "ann",
			Data: []byte(`{"from":"sc-1","to":"sc-2","why":"x","newer":{"than":["this"]}}`),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := GiveUp(ctx, s, app(5), "y"); err != nil {
			t.Fatal(err)
		}
		set, err := s.Documents(ctx, "moves")
		if err != nil {
			t.Fatal(err)
		}
		want := `{"from":"sc-1","give_up":"y","newer":{"than":["this"]},"to":"sc-2","why":"x"}`
		if got := string(set.Documents[0].Data); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	})
}

// viewOf is a view of active members with something that waits.
func viewOf(ids ...creel.SubclusterID) func() *subcluster.View {
	var list []subcluster.Status
	for _, id := range ids {
		s := subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
		s.Load.Metrics.AppsPending = 1
		list = append(list, s)
	}
	view := subcluster.NewView(time.Now(), list, nil)
	return func() *subcluster.View { return view }
}
