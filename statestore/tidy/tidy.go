// SPDX-License-Identifier: Apache-2.0

// Package tidy is the loop that deletes the records of ended applications from a state store: without it homes and UAM
// records would only grow.
//
// Every router runs it; a lease lets one at a time work. An application's record starts to expire when its home's
// ResourceManager reports the end; repeats of its submission are rejected until the record expires. The record is
// deleted at once if the home has not known the application for as long as an ended one is remembered. Either its
// submission never arrived, or no router saw its end, because a ResourceManager drops its oldest applications. Records
// of a member that does not answer stay. Records of a member removed from the federation (statestore.NoteRemoval)
// expire if it does not return within the same time.
package tidy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store is the part of a state store that the loop needs.
type Store interface {
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error)
	Release(ctx context.Context, l statestore.Lease) error
	HomesAt(
		ctx context.Context,
		member creel.SubclusterID,
		cursor string,
		limit int,
	) (page []statestore.ApplicationHome, next string, err error)
	Forget(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration) error
	Sweep(ctx context.Context, limit int) (freed int, err error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
}

// Config of a Keeper. View, Ask and TTL are required.
type Config struct {
	View func() *subcluster.View // nil at first
	// Ask returns a member's applications, including ended ones.
	Ask func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error)

	TTL   time.Duration // time for which the home of an ended application is remembered
	Name  string        // of this process, as holder of the lease
	Every time.Duration // between rounds; TTL/24, at least 10 s and at most 10 min, if zero
	Log   *slog.Logger  // nil: silent
}

// Keeper is the loop. Make one with New, run it with Run.
type Keeper struct {
	cfg   Config
	store Store
	// unknown lists the applications that their homes did not know at the last look, and since when, by this process's
	// clock. looked is the time of that look.
	unknown map[creel.SubclusterID]map[creel.ApplicationID]time.Time
	looked  time.Time
}

// New makes a Keeper.
func New(store Store, cfg Config) *Keeper {
	if cfg.Every <= 0 {
		cfg.Every = min(max(cfg.TTL/24, 10*time.Second), 10*time.Minute)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{cfg: cfg, store: store, unknown: map[creel.SubclusterID]map[creel.ApplicationID]time.Time{}}
}

// Run tidies until ctx ends, then returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(k.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if err := k.round(ctx, now); err != nil && ctx.Err() == nil {
				k.cfg.Log.Warn("failed to tidy the state store", "error", err)
			}
		}
	}
}

// round checks all members once, if no other process does.
func (k *Keeper) round(ctx context.Context, now time.Time) error {
	view := k.cfg.View()
	if view == nil || view.Freeze != nil {
		return nil // a failed read is no evidence
	}
	lease, err := k.store.Acquire(ctx, "tidy", k.cfg.Name, k.cfg.Every)
	if errors.Is(err, creel.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = k.store.Release(bye, lease) // else the lease expires
	}()
	ctx, cancel := context.WithTimeout(statestore.Under(ctx, lease), k.cfg.Every)
	defer cancel()
	long := now.Sub(k.looked) > max(k.cfg.TTL/2, 2*k.cfg.Every) // an application may have come and gone meanwhile
	maps.DeleteFunc(k.unknown, func(id creel.SubclusterID, _ map[creel.ApplicationID]time.Time) bool {
		return long || !slices.ContainsFunc(view.Members, func(m subcluster.Status) bool { return m.ID == id })
	})
	k.looked = now
	errs := []error{k.removed(ctx, view)}
	for i := range view.Members {
		if m := &view.Members[i]; m.State == subcluster.StateActive || m.State == subcluster.StateDraining {
			if err := k.member(ctx, now, m); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m.ID, err))
			}
		}
	}
	for {
		freed, err := k.store.Sweep(ctx, statestore.MaxPage)
		if err != nil {
			errs = append(errs, err)
		}
		if err != nil || freed < statestore.MaxPage {
			return errors.Join(errs...)
		}
	}
}

// member compares the records of one home with its ResourceManager's list. The records are read first, so that the
// list cannot lack a claim among them.
func (k *Keeper) member(ctx context.Context, now time.Time, m *subcluster.Status) error {
	var live []creel.ApplicationID
	for cursor := ""; ; {
		page, next, err := k.store.HomesAt(ctx, m.ID, cursor, statestore.MaxPage)
		if err != nil {
			return err
		}
		for _, h := range page {
			if h.Ends.IsZero() {
				live = append(live, h.ID)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(live) == 0 {
		delete(k.unknown, m.ID)
		return nil
	}
	apps, err := k.cfg.Ask(ctx, m)
	if err != nil {
		return err
	}
	ended := make(map[creel.ApplicationID]bool, len(apps))
	for _, a := range apps {
		ended[a.ID] = a.Ended
	}
	before, unknown := k.unknown[m.ID], map[creel.ApplicationID]time.Time{}
	for _, app := range live {
		over, known := ended[app]
		since, waits := before[app]
		if !waits {
			since = now
		}
		ttl := k.cfg.TTL
		switch {
		case known && !over:
			continue
		case !known && now.Sub(since) < k.cfg.TTL:
			unknown[app] = since
			continue
		case !known:
			ttl = 0
		}
		if err := k.store.Forget(
			ctx,
			app,
			m.ID,
			ttl,
		); err != nil && !errors.Is(err, creel.ErrConflict) &&
			!errors.Is(err, creel.ErrApplicationNotFound) {
			return err
		}
	}
	k.unknown[m.ID] = unknown // not earlier: if the store fails, the others stay unknown since the same time
	return nil
}
