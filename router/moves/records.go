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

// Documents: one of class for each application that moves, by its id; one of doneClass.
const (
	class     = "moves"
	doneClass = "moves-done"
	doneName  = "last"
)

// Kept is how many finished moves are stored.
const Kept = 500

// most bounds the moves that are on record at a time.
const most = 1000

// tries bounds how often a record that others write at the same time is written.
const tries = 5

// Store is the part of a state store that the package needs.
type Store interface {
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Record is a move on record.
type Record struct {
	router.HomeMove
	Queue creel.QueuePath
	By    string        // its origin: an administrator who drains, or "rebalancer"
	Asked time.Time     // or last changed, by the store's clock
	Age   time.Duration // since then, by the store's clock
	Undo  bool          // it undoes a move
	// Unreadable: it was written by a version whose records this one cannot read, and only the application, By, Asked
	// and Why are known. It is left to routers that can.
	Unreadable bool

	version int64
	newer   map[string]json.RawMessage // fields of another version, which go on with it
}

// document is a Record in the store.
type document struct {
	From    creel.SubclusterID `json:"from"`
	To      creel.SubclusterID `json:"to"`
	Queue   creel.QueuePath    `json:"queue,omitempty"`
	Why     string             `json:"why"`
	Arrived int64              `json:"arrived,omitempty"`
	GiveUp  string             `json:"give_up,omitempty"`
	Undo    bool               `json:"undo,omitempty"`
}

// FinishedMove is a move that is over.
type FinishedMove struct {
	Application creel.ApplicationID `json:"application"`
	From        creel.SubclusterID  `json:"from"`
	To          creel.SubclusterID  `json:"to"`
	Queue       creel.QueuePath     `json:"queue,omitempty"`
	By          string              `json:"by,omitempty"`
	Why         string              `json:"why"`
	Moved       bool                `json:"moved"`             // false: it stays at From
	Because     string              `json:"because,omitempty"` // why it stays
	At          time.Time           `json:"at"`                // store's clock
	Undo        bool                `json:"undo,omitempty"`    // it undid a move
}

// All are the moves on record, oldest first, with the store's time. Those that cannot be read are among them.
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

// read reads a document; false if it is of no application.
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

// Of is the move of an application, false if it does not move.
func Of(ctx context.Context, s Store, app creel.ApplicationID) (Record, bool, error) {
	all, _, err := All(ctx, s)
	i := slices.IndexFunc(all, func(r Record) bool { return r.Application == app })
	if err != nil || i < 0 {
		return Record{}, false, err
	}
	return all[i], true, nil
}

// Begin records a move. One of an application that moves already is rejected with creel.ErrConflict.
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

// change writes a record again as edit makes it. It reports whether there is one. One that cannot be read is
// not changed.
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

// GiveUp has a move that has not happened be given up, for a reason. It reports whether
// the application was on record as moving.
func GiveUp(ctx context.Context, s Store, app creel.ApplicationID, why string) (there bool, err error) {
	return change(ctx, s, app, func(r *Record) { r.GiveUp = why })
}

// Last are the moves that are over, newest first.
func Last(ctx context.Context, s Store) ([]FinishedMove, error) {
	_, list, err := done(ctx, s)
	slices.Reverse(list)
	return list, err
}

// done reads the moves that are over, oldest first, with the version of the document.
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
		list = nil // the list starts again
	}
	return d.Version, list, nil
}

// end removes a move from the record and stores its outcome. It reports whether the move was there: another router
// may have ended it.
func end(
	ctx context.Context, s Store, r Record, moved bool, because string, now time.Time,
) (over FinishedMove, there bool, err error) {
	over = FinishedMove{
		Application: r.Application, From: r.From, To: r.To, Queue: r.Queue, By: r.By, Why: r.Why,
		Moved: moved, Because: because, At: now, Undo: r.Undo,
	}
	for range tries {
		var is Record
		if is, there, err = Of(ctx, s, r.Application); err != nil || !there || is.Unreadable {
			return over, false, err
		}
		_, err = s.PutDocument(ctx, statestore.DocumentWrite{
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
