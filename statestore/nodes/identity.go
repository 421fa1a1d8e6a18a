// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// A store has an identity, made by the process that opens it first, and again by each rebuild. It has Stat.Created of
// its node: a copy of the node, restored from a backup or written into another system, has another one.
// So no process serves a copy, whose homes may be too old, before Reopen has written the homes that ResourceManagers
// report.

// meta is the identity, as it is stored.
type meta struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"`
	State   string `json:"state"`
	Made    int64  `json:"made"` // Stat.Created of the node
	created int64
}

// The states of a store.
const (
	stateReady   = "ready"      // opened as an empty store
	stateRebuild = "rebuilding" // homes are being written back: claims fail
	stateRebuilt = "rebuilt"    // ready, with the homes of all applications that the ResourceManagers run
)

// identity names the store in its present state.
func (m *meta) identity() string { return m.ID + "-" + strconv.FormatInt(m.created, 16) }

// whole reports that the store has all homes.
func (m *meta) whole() bool { return m.State != stateRebuild && m.Made == m.created }

func (t *txn) meta() (*meta, error) {
	n, err := t.get(t.store.paths.meta)
	if err != nil {
		return nil, err
	}
	if !n.is { // the nodes were deleted
		t.store.prepared.Store(false)
		if err := t.store.prepare(t.ctx); err != nil {
			return nil, err
		}
		return nil, errSoon
	}
	m := &meta{created: n.stat.Created}
	if err := json.Unmarshal(n.data, m); err != nil {
		return nil, statestore.Unreadable("the identity", err)
	}
	if m.State == "" {
		return nil, errSoon
	}
	return m, nil
}

// makeMeta creates the identity of an empty store.
func (s *engine) makeMeta(ctx context.Context) error {
	m := meta{Schema: strconv.Itoa(statestore.SchemaVersion), ID: rand.Text()}
	_, err := s.tree.Apply(ctx, []Op{{Kind: OpCreate, Path: s.paths.meta, Data: jsonOf(m)}})
	if err != nil && !errors.Is(err, ErrConflict) {
		return &lostCall{err}
	}
	data, stat, err := s.tree.Get(ctx, s.paths.meta)
	if err != nil {
		return &lostCall{err}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return statestore.Unreadable("the identity", err)
	}
	if m.State != "" {
		return nil
	}
	m.State, m.Made = stateReady, stat.Created
	if s.cfg.Confirm {
		m.State = stateRebuild
	}
	_, err = s.tree.Apply(ctx, []Op{{Kind: OpSet, Path: s.paths.meta, Data: jsonOf(m), Version: stat.Version}})
	if err != nil && !errors.Is(err, ErrConflict) {
		return &lostCall{err}
	}
	return nil
}

// serves waits for a store that may lack homes.
func (t *txn) serves() error {
	err := t.whole()
	if errors.Is(err, creel.ErrUnavailable) {
		return soonError{err}
	}
	return err
}

// whole returns creel.ErrUnavailable for a store that may lack homes.
func (t *txn) whole() error {
	m, err := t.meta()
	if err != nil {
		return err
	}
	switch known := t.store.known.Load(); {
	case !m.whole():
		return statestore.Unavailable(
			"the store is new, came back empty or is a copy, and its homes are being written back", 5*time.Second)
	case known == nil, m.State == stateRebuilt && *known != m.identity():
		id := m.identity()
		t.store.known.Store(&id)
	case *known != m.identity():
		return statestore.Unavailable("the store was replaced by a new one, which was not rebuilt", 5*time.Second)
	}
	return nil
}

// unknown is the error for a record that is not there: in a store that may lack some, it may be missing.
func (t *txn) unknown(err error) error {
	if lost := t.serves(); lost != nil {
		return lost
	}
	return err
}

// Lost reports whether the store came back empty or is a copy, and waits for Reopen.
func (s *Store) Lost(ctx context.Context) (lost bool, err error) {
	err = s.look(ctx, func(t *txn) error {
		err := t.whole()
		lost = errors.Is(err, creel.ErrUnavailable)
		if lost {
			return nil
		}
		return err
	})
	return lost, err
}

// Reopen makes a store serve homes again. It stops all claims, then calls collect for the correct homes, which it
// writes. Reported homes override claims of the store; each such case is a conflict in the result. Repeat it, in this
// or another process, until it returns no error.
func (s *Store) Reopen(
	ctx context.Context,
	collect func(context.Context) ([]statestore.ApplicationHome, error),
) ([]statestore.Conflict, error) {
	opened := rand.Text()
	var made int64
	err := s.change(ctx, false, func(t *txn) error {
		m, err := t.meta()
		if err != nil {
			return err
		}
		if err := statestore.ReadableSchema(m.Schema); err != nil {
			return err
		}
		m.State, m.ID, m.Made, made = stateRebuild, opened, m.created, m.created
		t.put(s.paths.meta, jsonOf(m))
		return nil
	})
	if err != nil {
		return nil, err
	}
	homes, err := collect(ctx)
	if err != nil {
		return nil, err
	}
	conflicts, err := statestore.Reclaim(ctx, s.applications.withoutIdentity(), homes)
	if err != nil {
		return conflicts, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		m, err := t.meta()
		switch {
		case err != nil:
			return err
		case m.ID != opened || m.created != made:
			return statestore.Unavailable("the store was replaced again during the rebuild", time.Second)
		case m.State == stateRebuilt:
			return nil // the repeat of a lost answer
		}
		m.State = stateRebuilt
		t.put(s.paths.meta, jsonOf(m))
		id := m.identity()
		s.known.Store(&id)
		names, err := t.children(s.paths.reported)
		for _, name := range names {
			if _, err := t.get(s.paths.reported + "/" + name); err != nil {
				return err
			}
			t.remove(s.paths.reported + "/" + name)
		}
		return err
	})
	return conflicts, err
}

// Remember stores the members that the caller knew before the loss, for the process that rebuilds the store.
func (s *Store) Remember(ctx context.Context, members []subcluster.Member) error {
	return s.remember(ctx, func(t *txn) error {
		for _, m := range members {
			if err := t.reportMember(m.ID, jsonOf(m)); err != nil {
				return err
			}
		}
		return nil
	})
}

// AcceptMissing excludes a member from the rebuild in progress: the rebuild does not wait for its report.
func (s *Store) AcceptMissing(ctx context.Context, id creel.SubclusterID) error {
	return s.remember(ctx, func(t *txn) error { return t.reportMember(id, []byte("null")) })
}

func (t *txn) reportMember(id creel.SubclusterID, data []byte) error {
	path := t.store.paths.reported + "/" + name(string(id))
	n, err := t.get(path)
	if err == nil && string(n.data) != string(data) {
		t.put(path, data)
	}
	return err
}

func (s *engine) remember(ctx context.Context, f func(t *txn) error) error {
	return s.change(ctx, false, func(t *txn) error {
		m, err := t.meta()
		if err != nil {
			return err
		}
		if m.whole() {
			return &creel.Error{
				Kind: creel.ErrConflict, What: "the state store is not being rebuilt", Why: "its homes are complete",
				Try: "nothing: no report is needed",
			}
		}
		return f(t)
	})
}

// Remembered returns the members reported for the rebuild in progress: members that must answer, and excluded members.
func (s *Store) Remembered(ctx context.Context) (members []subcluster.Member, missing []creel.SubclusterID, err error) {
	err = s.look(ctx, func(t *txn) error {
		members, missing = nil, nil
		names, err := t.children(s.paths.reported)
		if err != nil {
			return err
		}
		for _, one := range names {
			n, err := t.get(s.paths.reported + "/" + one)
			if err != nil {
				return err
			}
			var m subcluster.Member
			switch err := json.Unmarshal(n.data, &m); {
			case !n.is:
			case err != nil:
				return statestore.Unreadable("a member of the rebuild", fmt.Errorf("%s: %w", one, err))
			case m.ID == "":
				missing = append(missing, creel.SubclusterID(named(one)))
			default:
				members = append(members, m)
			}
		}
		return nil
	})
	return members, missing, err
}
