// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the loop that compares the members' applications with their homes in the state store, and
// repairs differences. The fence of package router prevents differences; this loop finds those with other causes: a
// store that lost acknowledged writes, an administrator.
//
// Every router runs it; a lease lets one at a time work. A difference counts only if two rounds in a row find it,
// because a home may move between the reads of the store and of a member's list.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store is the part of a state store that the loop needs.
type Store interface {
	statestore.Claims[creel.ApplicationID]
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error)
	Release(ctx context.Context, l statestore.Lease) error
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
}

// Config of a Loop. View, Ask and End are required.
type Config struct {
	View func() *subcluster.View // nil at first
	// Ask returns a member's applications: all live ones, and ended ones, some of which may be missing.
	Ask func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error)
	// Whole returns all applications of a member, including ended ones. It is called before the loop concludes
	// that a home does not know an application. nil: Ask does.
	Whole func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error)
	// End kills an application at a member that is not its home.
	End func(ctx context.Context, m *subcluster.Status, app creel.ApplicationID) error

	Name  string        // of this process, as holder of the lease
	Every time.Duration // between rounds, a minute if zero
	Log   *slog.Logger  // nil: silent
}

// Loop compares and mends. Make one with New, run it with Run.
type Loop struct {
	cfg   Config
	store Store
	seen  map[place]bool // differences found by the previous round
	stats Stats
}

// Stats are totals since the start.
type Stats struct {
	Rounds  atomic.Int64 // done by this process
	Found   atomic.Int64 // applications away from home in two rounds
	Ended   atomic.Int64 // of those, ended away from home
	Rehomed atomic.Int64 // of those, home changed to the member that runs them
}

type place struct {
	app creel.ApplicationID
	at  creel.SubclusterID
}

// New makes a Loop.
func New(store Store, cfg Config) *Loop {
	if cfg.Every <= 0 {
		cfg.Every = time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Loop{cfg: cfg, store: store, seen: map[place]bool{}}
}

// Stats returns the totals, which continue to rise.
func (l *Loop) Stats() *Stats { return &l.stats }

// Run compares until ctx ends, then returns nil.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := l.Round(ctx); err != nil && ctx.Err() == nil {
				l.cfg.Log.Warn("failed to compare homes with the members' applications", "error", err)
			}
		}
	}
}

// Round checks all members once, if no other process does.
func (l *Loop) Round(ctx context.Context) error {
	view := l.cfg.View()
	if view == nil || view.Freeze != nil {
		return nil // a failed read is no evidence
	}
	lease, err := l.store.Acquire(ctx, "reconcile", l.cfg.Name, l.cfg.Every)
	if errors.Is(err, creel.ErrConflict) {
		clear(l.seen) // another process checks; these differences would be too old for the next turn
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = l.store.Release(bye, lease) // else the lease expires
	}()
	ctx, cancel := context.WithTimeout(statestore.Under(ctx, lease), l.cfg.Every)
	defer cancel()
	l.stats.Rounds.Add(1)
	apps, silent := l.lists(ctx, view)
	var errs []error
	for _, err := range silent {
		errs = append(errs, err)
	}
	r := &round{view: view, apps: apps, whole: map[creel.SubclusterID]answer{}, found: map[place]bool{}}
	for at, list := range apps {
		for _, a := range list {
			if a.Ended || a.Unmanaged || a.Held > 0 { // held: package router/moves handles it
				continue
			}
			if err := l.look(ctx, r, place{a.ID, at}, a); err != nil {
				errs = append(errs, err)
			}
		}
	}
	l.seen = r.found
	return errors.Join(errs...)
}

// lists asks all serving members.
func (l *Loop) lists(
	ctx context.Context,
	view *subcluster.View,
) (apps map[creel.SubclusterID][]statestore.ReportedApplication, silent map[creel.SubclusterID]error) {
	apps = map[creel.SubclusterID][]statestore.ReportedApplication{}
	silent = map[creel.SubclusterID]error{}
	for i := range view.Members {
		m := &view.Members[i]
		if m.State != subcluster.StateActive && m.State != subcluster.StateDraining {
			continue
		}
		list, err := l.cfg.Ask(ctx, m)
		if err != nil {
			silent[m.ID] = fmt.Errorf("%s: %w", m.ID, err)
			continue
		}
		apps[m.ID] = list
	}
	return apps, silent
}

// round is a round's input and findings.
type round struct {
	view  *subcluster.View
	apps  map[creel.SubclusterID][]statestore.ReportedApplication
	whole map[creel.SubclusterID]answer // of members that were asked for all applications
	found map[place]bool
}

type answer struct {
	apps []statestore.ReportedApplication
	err  error
}

// look compares one living application with its home. An application without a record was submitted past the routers
// and is ignored.
func (l *Loop) look(ctx context.Context, r *round, p place, run statestore.ReportedApplication) error {
	home, err := l.store.Home(ctx, p.app)
	if errors.Is(err, creel.ErrApplicationNotFound) || err == nil && home == p.at {
		return nil
	}
	if err != nil {
		return err
	}
	r.found[p] = true
	if !l.seen[p] {
		return nil
	}
	l.stats.Found.Add(1)
	answered, its := l.knows(ctx, r, home, p.app)
	verdict, why := statestore.JudgeAway(answered, its, run)
	log := l.cfg.Log.With("application", p.app, "home", home, "lives", p.at, "why", why)
	switch verdict {
	case statestore.AwayEnd:
		log.Error("application found in two subclusters; ending it outside its home")
		m, _ := r.view.Member(p.at)
		if err := l.cfg.End(ctx, m, p.app); err != nil {
			return fmt.Errorf("ending %s at %s: %w", p.app, p.at, err)
		}
		l.stats.Ended.Add(1)
		delete(r.found, p)
	case statestore.AwayRehome:
		log.Error("application found outside its home; moving its home record")
		if _, err := l.store.Move(ctx, p.app, home, p.at, 0, nil); err != nil {
			return fmt.Errorf("moving the home of %s: %w", p.app, err)
		}
		l.stats.Rehomed.Add(1)
		delete(r.found, p)
	default:
		log.Warn("application found outside its home; not changed yet")
	}
	return nil
}

// knows asks a home for its run of an application, nil if it knows none. If the application runs there, the member's
// list decides; else its complete list, because it may have dropped ended ones from the first.
func (l *Loop) knows(
	ctx context.Context, r *round, home creel.SubclusterID, app creel.ApplicationID,
) (answered bool, run *statestore.ReportedApplication) {
	list, answered := r.apps[home]
	if run = find(list, app, false); run != nil {
		return answered, run
	}
	if l.cfg.Whole == nil || !answered {
		return answered, find(list, app, true)
	}
	whole, asked := r.whole[home]
	if !asked {
		m, _ := r.view.Member(home)
		whole.apps, whole.err = l.cfg.Whole(ctx, m)
		r.whole[home] = whole
	}
	return whole.err == nil, find(whole.apps, app, true)
}

// find returns the run of an application in a list; ended includes ended runs.
func find(list []statestore.ReportedApplication, app creel.ApplicationID, ended bool) *statestore.ReportedApplication {
	i := slices.IndexFunc(list, func(a statestore.ReportedApplication) bool {
		return a.ID == app && !a.Unmanaged && (ended || !a.Ended)
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}
