// SPDX-License-Identifier: Apache-2.0

// Package cache has the homes of applications that were used last, in front of a store. So most lookups need no call to
// the store, and known homes are served while the store does not answer. Claims and moves always go to the store.
package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// Config of a cache.
type Config struct {
	// Size is the number of homes it holds: 100,000 (16 MB).
	Size int
	// Fresh is the time for which an answer is used without asking again: 30s. An announced change (Changed) ends it at
	// once.
	Fresh time.Duration
	// Patience limits a lookup's wait for the store when the cache has an answer that is not fresh:
	// 50ms. Then that answer is used.
	Patience time.Duration
	// Rest is the time after a failure in which the store is not asked for cached homes: 1s.
	Rest time.Duration
}

// Homes caches the homes of a store. Calls that it has no method for go to the store. It is safe for concurrent use.
type Homes struct {
	statestore.Homes // the store's

	cfg    Config
	memory memory
	began  time.Time    // times below are ns since then
	ill    atomic.Int64 // end of the rest after a failure
	resync atomic.Int64 // answers older than this are not fresh

	hits, misses, stale atomic.Int64
}

// New makes an empty cache in front of a store.
func New(store statestore.Homes, cfg Config) *Homes {
	if cfg.Size <= 0 {
		cfg.Size = 100_000
	}
	if cfg.Fresh <= 0 {
		cfg.Fresh = 30 * time.Second
	}
	if cfg.Patience <= 0 {
		cfg.Patience = 50 * time.Millisecond
	}
	if cfg.Rest <= 0 {
		cfg.Rest = time.Second
	}
	h := &Homes{Homes: store, cfg: cfg, began: time.Now()}
	h.memory.init(cfg.Size)
	return h
}

func (h *Homes) now() int64 { return int64(time.Since(h.began)) }

// Home is the home of an application: from memory if it is fresh, else from the store. If the store
// cannot answer, it is from memory again.
func (h *Homes) Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	home, at, ok := h.memory.get(app)
	now := h.now()
	if ok && now-at < int64(h.cfg.Fresh) && at >= h.resync.Load() {
		h.hits.Add(1)
		return home, nil
	}
	if ok && now < h.ill.Load() {
		h.stale.Add(1)
		return home, nil
	}
	h.misses.Add(1)
	if ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.cfg.Patience)
		defer cancel()
	}
	is, err := h.Homes.Home(ctx, app)
	switch {
	case err == nil:
		h.memory.put(app, is, now)
	case errors.Is(err, creel.ErrApplicationNotFound):
		h.memory.expire(app, h.now(), true)
	case ok:
		h.ill.Store(h.now() + int64(h.cfg.Rest))
		h.stale.Add(1)
		return home, nil
	}
	return is, err
}

// Claim goes to the store and is remembered.
func (h *Homes) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	now := h.now()
	is, number, err := h.Homes.Claim(ctx, app, member, placement)
	if err == nil {
		h.memory.put(app, is, now)
	}
	return is, number, err
}

// Move goes to the store; the current home is remembered.
func (h *Homes) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	now := h.now()
	is, err := h.Homes.Move(ctx, app, from, to, number, placement)
	switch {
	case err == nil, errors.Is(err, creel.ErrConflict) && is != "":
		h.memory.put(app, is, now)
	default:
		h.memory.expire(app, h.now(), errors.Is(err, creel.ErrApplicationNotFound))
	}
	return is, err
}

// Forget goes to the store.
func (h *Homes) Forget(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration) error {
	err := h.Homes.Forget(ctx, app, home, ttl)
	h.memory.expire(app, h.now(), false)
	return err
}

// Changed applies a change announced by the store's Watch (watch.Config.OnChange).
func (h *Homes) Changed(c statestore.Change) {
	switch c.Kind {
	case statestore.ChangeHome:
		h.memory.expire(c.Application, h.now(), false)
	case statestore.ChangeResync:
		h.resync.Store(h.now())
	}
}

// Stats of a cache.
type Stats struct {
	Hits   int64 // answered from memory
	Misses int64 // asked of the store
	Stale  int64 // answered from memory although not fresh, because the store was in trouble
}

// Stats are the counts now.
func (h *Homes) Stats() Stats {
	return Stats{h.hits.Load(), h.misses.Load(), h.stale.Load()}
}
