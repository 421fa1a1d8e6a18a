// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
)

// Classes of documents. class has a document for each moving application, named by its id; doneClass has one
// document.
const (
	class     = "moves"
	doneClass = "moves-done"
	doneName  = "last"
)

// Kept is the number of finished moves that are stored.
const Kept = 500

// most bounds the moves under way.
const most = 1000

// ByRebalancer is the origin of moves that no administrator ordered.
const ByRebalancer = "rebalancer"

// tries bounds the attempts to write a record that other routers write at the same time.
const tries = 5

// Store is the part of the state store that this package needs.
type Store interface {
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Record is a recorded move.
type Record struct {
	router.HomeMove
	Queue creel.QueuePath
	By    string        // the origin: an administrator, or ByRebalancer
	Asked time.Time     // time of the request or the last change, by the store's clock
	Age   time.Duration // time since Asked, by the store's clock
	Undo  bool          // the move undoes another
	// Unreadable: another version wrote the record, and this one cannot read it. Only the application, By, Asked and
	// Why are set. The move is left to routers that can read it.
	Unreadable bool

	version int64
	newer   map[string]json.RawMessage // fields of a newer version, which are written back
}

// document is the stored form of a Record.
type document struct {
	From    creel.SubclusterID `json:"from"`
	To      creel.SubclusterID `json:"to"`
	Queue   creel.QueuePath    `json:"queue,omitempty"`
	Why     string             `json:"why"`
	Arrived int64              `json:"arrived,omitempty"`
	GiveUp  string             `json:"give_up,omitempty"`
	Undo    bool               `json:"undo,omitempty"`
}

// FinishedMove is a move that has ended.
type FinishedMove struct {
	Application creel.ApplicationID `json:"application"`
	From        creel.SubclusterID  `json:"from"`
	To          creel.SubclusterID  `json:"to"`
	Queue       creel.QueuePath     `json:"queue,omitempty"`
	By          string              `json:"by,omitempty"`
	Why         string              `json:"why"`
	Moved       bool                `json:"moved"`             // false: it stayed at From
	Because     string              `json:"because,omitempty"` // reason why it stayed
	At          time.Time           `json:"at"`                // store's clock
	Undo        bool                `json:"undo,omitempty"`    // it undid another move
}

// All returns the recorded moves, oldest first, and the store's time. It includes unreadable ones.
func All(ctx context.Context, s Store) ([]Record, time.Time, error) {
	set, err := s.Documents(ctx, class)
	if err != nil {
		return nil, time.Time{}, err
	}
	var out []Record
	for i := range set.Documents {
		if r, ok := read(&set.Documents[i], set.Now); ok {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Record) int { return int(a.version - b.version) })
	return out, set.Now, nil
}

// read reads a document; false if its name is not an application id.
func read(d *statestore.Document, now time.Time) (Record, bool) {
	app, err := creel.ParseApplicationID(d.Name)
	if err != nil {
		return Record{}, false
	}
	r := Record{By: d.Author, Asked: d.Time, Age: max(0, now.Sub(d.Time)), version: d.Version}
	var v document
	if err = json.Unmarshal(d.Data, &v); err == nil {
		r.newer, err = statestore.OtherFields[document](d.Data)
	}
	if err != nil {
		r.Unreadable, r.HomeMove = true, router.HomeMove{Application: app, Why: "this version cannot read its record"}
		return r, true
	}
	r.HomeMove = router.HomeMove{
		Application: app, From: v.From, To: v.To, Why: v.Why, Arrived: v.Arrived, GiveUp: v.GiveUp,
	}
	r.Queue, r.Undo = v.Queue, v.Undo
	return r, true
}

// Of returns the move of an application, false if it is not moving.
func Of(ctx context.Context, s Store, app creel.ApplicationID) (Record, bool, error) {
	all, _, err := All(ctx, s)
	i := slices.IndexFunc(all, func(r Record) bool { return r.Application == app })
	if err != nil || i < 0 {
		return Record{}, false, err
	}
	return all[i], true, nil
}

// Begin records a move. If the application is already moving, the error is creel.ErrConflict.
func Begin(ctx context.Context, s Store, r Record) error {
	set, err := s.Documents(ctx, class)
	if err != nil {
		return err
	}
	if len(set.Documents) >= most {
		return &creel.Error{
			Kind: creel.ErrBusy, What: fmt.Sprintf("%s is not moved now", r.Application),
			Why: fmt.Sprintf("%d applications move already", len(set.Documents)), Try: "try again when they have moved",
			RetryAfter: 10 * time.Second,
		}
	}
	r.version = 0
	return put(ctx, s, r)
}

func put(ctx context.Context, s Store, r Record) error {
	data, err := statestore.WithFields(
		document{r.From, r.To, r.Queue, r.Why, r.Arrived, r.GiveUp, r.Undo}, r.newer)
	if err == nil {
		_, err = s.PutDocument(ctx, statestore.DocumentWrite{
			Class: class, Name: r.Application.String(), Expect: r.version, Data: data, Author: r.By,
			Quiet: true,
		})
	}
	return err
}

// change edits a record. It reports whether there is one. It does not change an unreadable record.
func change(ctx context.Context, s Store, app creel.ApplicationID, edit func(*Record)) (there bool, err error) {
	for range tries {
		var r Record
		if r, there, err = Of(ctx, s, app); err != nil || !there {
			return there, err
		}
		if r.Unreadable {
			return true, &creel.Error{
				Kind: creel.ErrInvalidRequest, What: fmt.Sprintf("the move of %s is not changed", app),
				Why: r.Why, Try: "a router of the version that began it",
			}
		}
		edit(&r)
		if err = put(ctx, s, r); !errors.Is(err, creel.ErrConflict) {
			break
		}
	}
	return there, err
}

// GiveUp requests that a move is abandoned if it has not arrived, for the reason why. It reports whether the
// application was moving.
func GiveUp(ctx context.Context, s Store, app creel.ApplicationID, why string) (there bool, err error) {
	return change(ctx, s, app, func(r *Record) { r.GiveUp = why })
}

// Last returns the finished moves, newest first.
func Last(ctx context.Context, s Store) ([]FinishedMove, error) {
	_, list, err := done(ctx, s)
	slices.Reverse(list)
	return list, err
}

// done reads the finished moves, oldest first, and the version of their document.
func done(ctx context.Context, s Store) (version int64, list []FinishedMove, err error) {
	set, err := s.Documents(ctx, doneClass)
	if err != nil {
		return 0, nil, err
	}
	d, ok := set.Find(doneName)
	if !ok {
		return 0, nil, nil
	}
	if err := json.Unmarshal(d.Data, &list); err != nil {
		list = nil // an unreadable list starts again empty
	}
	return d.Version, list, nil
}

// end removes the record of a move and stores its outcome. It reports whether the record existed: another router may
// have ended the move.
func end(
	ctx context.Context, s Store, r Record, moved bool, because string, now time.Time,
	recording func(context.Context, FinishedMove) context.Context,
) (over FinishedMove, there bool, err error) {
	over = FinishedMove{
		Application: r.Application, From: r.From, To: r.To, Queue: r.Queue, By: r.By, Why: r.Why,
		Moved: moved, Because: because, At: now, Undo: r.Undo,
	}
	under := ctx
	if recording != nil {
		under = recording(ctx, over)
	}
	for range tries {
		var is Record
		if is, there, err = Of(ctx, s, r.Application); err != nil || !there || is.Unreadable {
			return over, false, err
		}
		_, err = s.PutDocument(under, statestore.DocumentWrite{
			Class: class, Name: r.Application.String(), Expect: is.version, Author: r.By, Quiet: true,
		})
		if !errors.Is(err, creel.ErrConflict) {
			break
		}
	}
	if err != nil {
		return over, there, err
	}
	for range tries {
		version, list, e := done(ctx, s)
		if e != nil {
			return over, there, e
		}
		list = append(list, over)
		data, e := json.Marshal(list[max(0, len(list)-Kept):])
		if e != nil {
			return over, there, e
		}
		_, err = s.PutDocument(ctx, statestore.DocumentWrite{
			Class: doneClass, Name: doneName, Expect: version, Data: data, Quiet: true,
		})
		if !errors.Is(err, creel.ErrConflict) {
			break
		}
	}
	return over, there, err
}
