// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/creelrm/creel/statestore"
)

// storedDaemon is the node of a daemon. Its record expires after Life from the node's last change.
type storedDaemon struct {
	Record json.RawMessage `json:"record"`
	Life   time.Duration   `json:"life"`
}

func (s *engine) daemonNode(id string) string { return s.paths.daemons + "/" + name(id) }

// read parses a daemon's node. live is false if its time is over.
func readDaemon(t *txn, n *node) (d statestore.LiveDaemon, live bool, err error) {
	var stored storedDaemon
	if err := json.Unmarshal(n.data, &stored); err != nil {
		return d, false, statestore.Unreadable("a daemon", err)
	}
	d.Age = max(0, t.now.Sub(n.written()))
	d.Daemon, err = statestore.ParseDaemon(stored.Record)
	return d, d.Age < stored.Life, err
}

// KeepDaemon implements statestore.Daemons. Daemons that store their first record at the same moment may exceed the
// bound by their number.
func (s *Store) KeepDaemon(ctx context.Context, d statestore.Daemon, life time.Duration) error {
	record, err := statestore.EncodeDaemon(d, life)
	if err != nil {
		return err
	}
	path := s.daemonNode(d.ID())
	return s.change(ctx, false, func(t *txn) error {
		n, err := t.get(path)
		if err != nil {
			return err
		}
		t.put(path, jsonOf(storedDaemon{record, life}))
		if n.is {
			return nil
		}
		parent, err := t.apart().get(s.paths.daemons)
		if err != nil || parent.stat.Children < statestore.MaxDaemons {
			return err
		}
		return t.makeRoom(d)
	})
}

// makeRoom deletes expired records, and refuses a further one if there are too many.
func (t *txn) makeRoom(d statestore.Daemon) error {
	parent := t.store.paths.daemons
	names, err := t.children(parent)
	if err != nil {
		return err
	}
	expired := make([]*node, len(names))
	err = each(len(names), func(i int) error {
		n, err := t.apart().get(parent + "/" + names[i])
		if err == nil && n.is {
			if _, live, err := readDaemon(t, n); err != nil || !live {
				expired[i] = n
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	gone := 0
	for _, n := range expired {
		if n != nil && gone < spare {
			t.nodes[n.path], gone = n, gone+1
			t.remove(n.path)
		}
	}
	if len(names)-gone >= statestore.MaxDaemons {
		return statestore.TooManyDaemons(d)
	}
	return nil
}

// DropDaemon implements statestore.Daemons.
func (s *Store) DropDaemon(ctx context.Context, d statestore.Daemon) error {
	if err := statestore.CheckDaemon(&d); err != nil {
		return err
	}
	path := s.daemonNode(d.ID())
	return s.change(ctx, false, func(t *txn) error {
		n, err := t.get(path)
		if err == nil && n.is {
			t.remove(path)
		}
		return err
	})
}

// Daemons implements statestore.Daemons.
func (s *Store) Daemons(
	ctx context.Context, cursor string, limit int,
) (page []statestore.LiveDaemon, next string, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = s.look(ctx, func(t *txn) error {
		page, next = nil, ""
		names, err := t.children(s.paths.daemons)
		if err != nil {
			return err
		}
		ids := make([]string, 0, len(names))
		for _, n := range names {
			if id := named(n); id > cursor {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for len(ids) > 0 {
			block := ids[:min(len(ids), limit)]
			ids = ids[len(block):]
			live := make([]*statestore.LiveDaemon, len(block))
			err := each(len(block), func(i int) error {
				n, err := t.apart().get(s.daemonNode(block[i]))
				if err != nil || !n.is {
					return err
				}
				d, ok, err := readDaemon(t, n)
				if ok {
					live[i] = &d
				}
				return err
			})
			if err != nil {
				return err
			}
			for i, d := range live {
				if d == nil {
					continue
				}
				page = append(page, *d)
				if len(page) == limit {
					next = block[i]
					return nil
				}
			}
		}
		return nil
	})
	return page, next, err
}
