// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"fmt"
	"sync"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// Follower is the copy of a state that another process holds.
type Follower struct {
	cfg     Config
	scripts Server
	keys    []string

	mu    sync.Mutex // of the copy; locked during calls
	copy  *mirror    // nil: all entries must be read
	reads int        // times that all entries were read
}

var _ state.Follower = (*Follower)(nil)

// NewFollower makes a follower. It connects at the first call of Follow or Lead.
func NewFollower(cfg Config) (*Follower, error) {
	cfg = cfg.withDefaults()
	scripts, err := cfg.Connect()
	if err != nil {
		return nil, err
	}
	return &Follower{cfg: cfg, scripts: scripts, keys: keysOf(scripts, cfg.Name)}, nil
}

// Follow implements state.Follower.
func (f *Follower) Follow(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy == nil {
		m, err := f.readAll(ctx)
		if err != nil {
			return fmt.Errorf("resource manager's state in Redis: %w", err)
		}
		f.copy = m
	}
	current, err := f.copy.update(ctx, f.scripts, f.keys)
	if err != nil || !current {
		f.copy = nil // an answer may be applied in part
	}
	if err != nil {
		return fmt.Errorf("resource manager's state in Redis: %w", err)
	}
	return nil
}

// readAll reads the entries while the holder changes them. The tail from the group before the scan has every change
// that the scan may have missed. A scan that a failover made incomplete is noticed by the number of entries.
func (f *Follower) readAll(ctx context.Context) (*mirror, error) {
	f.reads++
	epoch, number, err := head(ctx, f.scripts, f.keys)
	if err != nil {
		return nil, err
	}
	entries, err := scanAll(func(cursor string) ([]any, string, error) {
		return f.scripts.Scan(ctx, f.keys[1], cursor, scanCount)
	})
	return &mirror{epoch: epoch, number: number, entries: entries}, err
}

// Lead implements state.Follower.
func (f *Follower) Lead(ctx context.Context) (state.Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	warm := f.copy
	f.copy = nil
	l, err := open(ctx, f.cfg, warm)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Health returns the findings about the deployment that an operator should know.
func (f *Follower) Health(ctx context.Context) ([]statestore.Finding, error) {
	return f.scripts.Health(ctx)
}

// Close implements state.Follower.
func (f *Follower) Close() error { return f.scripts.Close() }
