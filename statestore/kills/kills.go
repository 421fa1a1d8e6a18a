// SPDX-License-Identifier: Apache-2.0

// Package kills remembers kills that an application's home could not be told of,
// and tells it when it is back.
//
// A kill is recorded in the state store when the home did not answer, one document
// for each application and user, so that the answer "it will be killed" holds
// whatever happens to the router that gave it. Every router carries recorded kills
// out: it makes the call at the home in the user's name, until the home says that
// the application has ended, or that it does not know it, or refuses. A kill is
// made twice without harm, so no lease is needed. The home decides whether the user
// may: nothing is decided here.
//
// A state store that comes back empty has lost what was recorded: the user asks
// again.
package kills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// class of the documents, named APPLICATION/USER.
const class = "kills"

// most bounds the kills that are recorded at a time.
const most = 10_000

// Store is what the package needs of a state store.
type Store interface {
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Kill is one that waits for its application's home.
type Kill struct {
	Application creel.ApplicationID `json:"-"`
	User        string              `json:"user"`
	Diagnostics string              `json:"diagnostics,omitempty"` // what the user said
	Asked       time.Time           `json:"-"`                     // store's clock
	Age         time.Duration       `json:"-"`                     // by the store's clock
}

// Record keeps a kill until it is carried out. The same user's second is success. A
// user without a name and an application without a home are refused: nobody could
// say later whether the one may, nor where the other is.
func Record(ctx context.Context, s Store, k Kill) error {
	if k.User == "" {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the kill of " + k.Application.String() + " is not kept for later",
			Why:  "it came without a user's name",
			Try:  "give one (user.name, HADOOP_USER_NAME)",
		}
	}
	if _, err := s.Home(ctx, k.Application); err != nil {
		return err
	}
	set, err := s.Documents(ctx, class)
	if err != nil {
		return err
	}
	name := k.Application.String() + "/" + k.User
	if _, there := set.Find(name); there {
		return nil
	}
	if len(set.Documents) >= most {
		return &creel.Error{
			Kind:       creel.ErrBusy,
			What:       "the kill of " + k.Application.String() + " is not kept for later",
			Why:        fmt.Sprintf("%d kills wait for their applications' homes already", len(set.Documents)),
			Try:        "again when the home answers",
			RetryAfter: 30 * time.Second,
		}
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	_, err = s.PutDocument(
		ctx,
		statestore.DocumentWrite{Class: class, Name: name, Data: data, Author: k.User, Quiet: true},
	)
	if errors.Is(err, creel.ErrConflict) {
		return nil // recorded meanwhile
	}
	return err
}

// Waiting are the kills that wait, by application and user.
func Waiting(ctx context.Context, s Store) ([]Kill, error) {
	set, err := s.Documents(ctx, class)
	if err != nil {
		return nil, err
	}
	var out []Kill
	for i := range set.Documents {
		if k, err := read(&set.Documents[i], set.Now); err == nil {
			out = append(out, k)
		}
	}
	return out, nil
}

func read(d *statestore.Document, now time.Time) (Kill, error) {
	id, _, _ := strings.Cut(d.Name, "/")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		return Kill{}, err
	}
	k := Kill{Application: app, Asked: d.Time, Age: max(0, now.Sub(d.Time))}
	return k, json.Unmarshal(d.Data, &k)
}

// Config of a Loop. View and Kill are required.
type Config struct {
	View func() *subcluster.View // nil at first
	// Kill asks a member to kill an application in a user's name, and reports
	// whether it has ended there. creel.ErrUnavailable: the member did not answer;
	// any other error is its refusal.
	Kill  func(ctx context.Context, m *subcluster.Status, k Kill) (ended bool, err error)
	Every time.Duration // between rounds [5 s]
	Log   *slog.Logger  // nil: silent
}

// Loop carries out what is recorded. Make one with New, run it with Run.
type Loop struct {
	store Store
	cfg   Config
}

// New makes a Loop.
func New(store Store, cfg Config) *Loop {
	if cfg.Every <= 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Loop{store: store, cfg: cfg}
}

// Run goes on until ctx ends, then returns nil.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := l.round(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, creel.ErrUnavailable) {
				l.cfg.Log.Warn("recorded kills are not carried out", "error", err)
			}
		}
	}
}

// round tries each recorded kill once.
func (l *Loop) round(ctx context.Context) error {
	view := l.cfg.View()
	if view == nil {
		return nil
	}
	set, err := l.store.Documents(ctx, class)
	if err != nil {
		return err
	}
	for i := range set.Documents {
		d := &set.Documents[i]
		k, err := read(d, set.Now)
		if err != nil {
			l.cfg.Log.Warn("a recorded kill cannot be read, and goes", "name", d.Name, "error", err)
			l.drop(ctx, d)
			continue
		}
		done, err := l.carryOut(ctx, view, k)
		if err != nil {
			return err
		}
		if done {
			l.drop(ctx, d)
		}
	}
	return nil
}

// carryOut makes the call at the home, if that is alive, and reports whether the
// kill is over. The error is the store's.
func (l *Loop) carryOut(ctx context.Context, view *subcluster.View, k Kill) (done bool, err error) {
	attrs := []any{
		"application",
		k.Application.String(),
		"user",
		k.User,
		"asked_before",
		k.Age.Round(time.Second).String(),
	}
	home, err := l.store.Home(ctx, k.Application)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		l.cfg.Log.Info("a recorded kill is over: the application's record is gone", attrs...)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	m, ok := view.Member(home)
	if !ok || !m.State.Alive() {
		return false, nil
	}
	attrs = append(attrs, "home", string(home))
	ended, err := l.cfg.Kill(ctx, m, k)
	switch {
	case errors.Is(err, creel.ErrUnavailable):
		return false, nil
	case errors.Is(err, creel.ErrApplicationNotFound):
		l.cfg.Log.Info("a recorded kill is over: the home does not know the application", attrs...)
		return true, nil
	case err != nil:
		l.cfg.Log.Warn("a recorded kill is refused by the application's home", append(attrs, "error", err)...)
		return true, nil
	case ended:
		l.cfg.Log.Info("a recorded kill is carried out", attrs...)
	}
	return ended, nil
}

// drop removes a record; one that was written again meanwhile stays.
func (l *Loop) drop(ctx context.Context, d *statestore.Document) {
	_, err := l.store.PutDocument(ctx,
		statestore.DocumentWrite{Class: class, Name: d.Name, Expect: d.Version, Quiet: true, Author: d.Author})
	if err != nil && !errors.Is(err, creel.ErrConflict) && ctx.Err() == nil {
		l.cfg.Log.Warn("a recorded kill stays recorded", "name", d.Name, "error", err)
	}
}
