// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"
	"time"

	"github.com/creelrm/creel/statestore"
)

// keptDaemon is a record in memory.
type keptDaemon struct {
	record        []byte
	kept, expires time.Time
}

// KeepDaemon: see Daemons.
func (t *State) KeepDaemon(now time.Time, d statestore.Daemon, life time.Duration) error {
	record, err := statestore.EncodeDaemon(d, life)
	if err != nil {
		return err
	}
	for id, k := range t.daemons {
		if !now.Before(k.expires) {
			delete(t.daemons, id)
		}
	}
	if _, known := t.daemons[d.ID()]; !known && len(t.daemons) >= statestore.MaxDaemons {
		return statestore.TooManyDaemons(d)
	}
	t.daemons[d.ID()] = keptDaemon{record, now, now.Add(life)}
	return nil
}

// DropDaemon: see Daemons.
func (t *State) DropDaemon(d statestore.Daemon) error {
	if err := statestore.CheckDaemon(&d); err != nil {
		return err
	}
	delete(t.daemons, d.ID())
	return nil
}

// Daemons: see Daemons.
func (t *State) Daemons(
	now time.Time, cursor string, limit int,
) (page []statestore.LiveDaemon, next string, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	var ids []string
	for id, k := range t.daemons {
		if id > cursor && now.Before(k.expires) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) >= limit {
		ids, next = ids[:limit], ids[limit-1]
	}
	for _, id := range ids {
		k := t.daemons[id]
		d, err := statestore.ParseDaemon(k.record)
		if err != nil {
			return nil, "", err
		}
		page = append(page, statestore.LiveDaemon{Daemon: d, Age: now.Sub(k.kept)})
	}
	return page, next, nil
}

// KeepDaemon implements Daemons. An invalid record is reported as invalid, as in every store, even if the caller has
// lost the lease.
func (m *Store) KeepDaemon(ctx context.Context, d statestore.Daemon, life time.Duration) error {
	if _, err := statestore.EncodeDaemon(d, life); err != nil {
		return err
	}
	return m.write(ctx, func(t *State, now time.Time) error { return t.KeepDaemon(now, d, life) })
}

// DropDaemon implements Daemons.
func (m *Store) DropDaemon(ctx context.Context, d statestore.Daemon) error {
	if err := statestore.CheckDaemon(&d); err != nil {
		return err
	}
	return m.write(ctx, func(t *State, _ time.Time) error { return t.DropDaemon(d) })
}

// Daemons implements Daemons.
func (m *Store) Daemons(_ context.Context, cursor string, limit int) ([]statestore.LiveDaemon, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Daemons(m.clock(), cursor, limit)
}
