// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store wraps a State for concurrent callers: the embedded store of one process.
type Store struct {
	homes[creel.ApplicationID]
	clock func() time.Time
	mu    sync.Mutex
	state *State
	subs  map[*subscriber]struct{}
}

var _ statestore.Store = (*Store)(nil)

type subscriber struct {
	changes chan statestore.Change
	missed  bool // guarded by Store.mu
}

// New makes a store around a state, which the store then owns. clock is the store's clock:
// time.Now or a simulation's.
func New(state *State, clock func() time.Time) *Store {
	m := &Store{clock: clock, state: state, subs: map[*subscriber]struct{}{}}
	m.homes = homes[creel.ApplicationID]{
		store: m,
		in:    func(t *State) Homes[creel.ApplicationID] { return t },
		tell: func(app creel.ApplicationID) {
			m.tell(statestore.Change{Kind: statestore.ChangeHome, Application: app})
		},
	}
	return m
}

// read makes one read of the state.
func read[T any](m *Store, call func(t *State, now time.Time) (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return call(m.state, m.clock())
}

// write makes one change of the state, under the lease attached to ctx.
func (m *Store) write(ctx context.Context, call func(t *State, now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := statestore.CheckRecording(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := statestore.FenceOf(ctx); ok {
		if err := m.state.Check(l); err != nil {
			return err
		}
	}
	return call(m.state, m.clock())
}

// write is Store.write for a change with a result. Without it, the result is the zero value.
func write[T any](ctx context.Context, m *Store, call func(t *State, now time.Time) (T, error)) (out T, err error) {
	err = m.write(ctx, func(t *State, now time.Time) (err error) {
		out, err = call(t, now)
		return err
	})
	return out, err
}

// recorded records the event attached to ctx if the change was made, and returns the change's error. Only the writes
// that Recording names call it.
func (m *Store) recorded(ctx context.Context, now time.Time, err error) error {
	if e, ok := statestore.RecordingOf(ctx); ok && err == nil {
		_ = m.state.AppendEvent(now, e) // write has checked it
	}
	return err
}

// told notifies the subscribers of a change that was made, and returns its error.
func (m *Store) told(err error, c statestore.Change) error {
	if err == nil {
		m.tell(c)
	}
	return err
}

// tell passes a change to the subscribers; the caller has locked m.mu. It never blocks.
func (m *Store) tell(c statestore.Change) {
	for s := range m.subs {
		select {
		case s.changes <- c:
		default:
			s.missed = true
		}
	}
}

// Watch implements Watch.
func (m *Store) Watch(ctx context.Context, notify func(statestore.Change)) error {
	s := &subscriber{changes: make(chan statestore.Change, 64)}
	m.mu.Lock()
	m.subs[s] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.subs, s)
		m.mu.Unlock()
	}()
	notify(statestore.Change{Kind: statestore.ChangeResync})
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.changes:
			notify(c)
		}
		m.mu.Lock()
		missed := s.missed
		s.missed = false
		m.mu.Unlock()
		if missed {
			notify(statestore.Change{Kind: statestore.ChangeResync})
		}
	}
}

// Snapshot writes the whole store as JSON, for Restore.
func (m *Store) Snapshot() ([]byte, error) {
	return read(m, func(t *State, _ time.Time) ([]byte, error) { return t.Snapshot() })
}

// Restore replaces the whole store by a snapshot.
func (m *Store) Restore(data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told(m.state.Restore(data), statestore.Change{Kind: statestore.ChangeResync})
}

// NextEpoch implements Members.
func (m *Store) NextEpoch(
	ctx context.Context,
	id creel.SubclusterID,
	previous int64,
	takeOver bool,
) (int64, error) {
	return write(ctx, m, func(t *State, now time.Time) (int64, error) {
		return t.NextEpoch(now, id, previous, takeOver)
	})
}

// Register implements Members.
func (m *Store) Register(ctx context.Context, member subcluster.Member) error {
	return m.write(ctx, func(t *State, now time.Time) error {
		return m.told(t.Register(now, member), statestore.Change{Kind: statestore.ChangeMembers})
	})
}

// Heartbeat implements Members.
func (m *Store) Heartbeat(ctx context.Context, b subcluster.Heartbeat) error {
	return m.write(ctx, func(t *State, now time.Time) error { return t.Heartbeat(now, b) })
}

// Drain implements Members.
func (m *Store) Drain(ctx context.Context, id creel.SubclusterID, reason string) error {
	return m.write(ctx, func(t *State, now time.Time) error {
		return m.told(m.recorded(ctx, now, t.Drain(id, reason)), statestore.Change{Kind: statestore.ChangeMembers})
	})
}

// Deregister implements Members.
func (m *Store) Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error {
	return m.write(ctx, func(t *State, now time.Time) error {
		return m.told(m.recorded(ctx, now, t.Deregister(id, epoch)), statestore.Change{Kind: statestore.ChangeMembers})
	})
}

// RemoveMember implements Members.
func (m *Store) RemoveMember(ctx context.Context, id creel.SubclusterID) error {
	return m.write(ctx, func(t *State, now time.Time) error {
		return m.told(m.recorded(ctx, now, t.RemoveMember(now, id)), statestore.Change{Kind: statestore.ChangeMembers})
	})
}

// Records implements Members.
func (m *Store) Records(context.Context) (subcluster.Records, error) {
	return read(m, func(t *State, now time.Time) (subcluster.Records, error) { return t.Records(now), nil })
}

// RecordsOf implements Members.
func (m *Store) RecordsOf(_ context.Context, queues []string, _ bool) (subcluster.Records, error) {
	return read(m, func(t *State, now time.Time) (subcluster.Records, error) {
		return t.RecordsOf(now, queues), nil
	})
}

// Absent implements Applications.
func (m *Store) Absent(
	ctx context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	return write(ctx, m, func(t *State, now time.Time) (time.Duration, error) {
		return t.Absent(now, app, home, number, surely)
	})
}

// Accept implements Applications.
func (m *Store) Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if err := statestore.CheckLife(app, life); err != nil { // before the lease of a fenced write is checked
		return err
	}
	return m.write(ctx, func(t *State, now time.Time) error { return t.Accept(now, app, home, life) })
}

// AcceptedIn implements Applications.
func (m *Store) AcceptedIn(_ context.Context, app creel.ApplicationID) (int64, error) {
	return read(m, func(t *State, now time.Time) (int64, error) { return t.AcceptedIn(now, app) })
}

// Placement implements Applications.
func (m *Store) Placement(_ context.Context, app creel.ApplicationID) ([]byte, error) {
	return read(m, func(t *State, now time.Time) ([]byte, error) { return t.Placement(now, app) })
}

// Ended implements Applications.
func (m *Store) Ended(_ context.Context, app creel.ApplicationID) (time.Time, error) {
	return read(m, func(t *State, now time.Time) (time.Time, error) { return t.Ended(now, app) })
}

// Sweep implements statestore.Store.
func (m *Store) Sweep(ctx context.Context, limit int) (int, error) {
	return write(ctx, m, func(t *State, now time.Time) (int, error) { return t.Sweep(now, limit) })
}

// SaveUAMRecord implements UAMRecords.
func (m *Store) SaveUAMRecord(ctx context.Context, s statestore.UAMRecord) (int64, error) {
	return write(ctx, m, func(t *State, _ time.Time) (int64, error) { return t.SaveUAMRecord(s) })
}

// UAMRecord implements UAMRecords.
func (m *Store) UAMRecord(_ context.Context, a creel.AttemptID) (statestore.UAMRecord, error) {
	return read(m, func(t *State, _ time.Time) (statestore.UAMRecord, error) { return t.UAMRecord(a) })
}

// UAMRecordsOf implements UAMRecords.
func (m *Store) UAMRecordsOf(_ context.Context, app creel.ApplicationID) ([]statestore.UAMRecord, error) {
	return read(m, func(t *State, _ time.Time) ([]statestore.UAMRecord, error) { return t.UAMRecordsOf(app), nil })
}

// DropUAMRecord implements UAMRecords.
func (m *Store) DropUAMRecord(ctx context.Context, a creel.AttemptID) error {
	return m.write(ctx, func(t *State, _ time.Time) error {
		t.DropUAMRecord(a)
		return nil
	})
}

// PutPolicy implements Policies.
func (m *Store) PutPolicy(ctx context.Context, w statestore.PolicyWrite) (subcluster.Policy, error) {
	return write(ctx, m, func(t *State, now time.Time) (subcluster.Policy, error) {
		p, err := t.PutPolicy(now, w)
		if err == nil {
			m.tell(statestore.Change{Kind: statestore.ChangePolicies, Version: p.Version})
		}
		return p, m.recorded(ctx, now, err)
	})
}

// PolicyHistory implements Policies.
func (m *Store) PolicyHistory(
	_ context.Context,
	q creel.QueuePath,
	before int64,
	limit int,
) ([]subcluster.Policy, error) {
	return read(m, func(t *State, _ time.Time) ([]subcluster.Policy, error) {
		return t.PolicyHistory(q, before, limit)
	})
}

// Acquire implements Leases.
func (m *Store) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error) {
	return write(ctx, m, func(t *State, now time.Time) (statestore.Lease, error) {
		return t.Acquire(now, name, holder, ttl)
	})
}

// Renew implements Leases.
func (m *Store) Renew(ctx context.Context, l statestore.Lease, ttl time.Duration) (statestore.Lease, error) {
	return write(ctx, m, func(t *State, now time.Time) (statestore.Lease, error) { return t.Renew(now, l, ttl) })
}

// Release implements Leases.
func (m *Store) Release(ctx context.Context, l statestore.Lease) error {
	return m.write(ctx, func(t *State, now time.Time) error { return t.Release(now, l) })
}

// Holder implements Leases.
func (m *Store) Holder(_ context.Context, name string) (statestore.Lease, error) {
	return read(m, func(t *State, now time.Time) (statestore.Lease, error) { return t.Holder(now, name), nil })
}

// Keys implements Keys.
func (m *Store) Keys(_ context.Context, ring string) ([]statestore.Key, error) {
	return read(m, func(t *State, now time.Time) ([]statestore.Key, error) { return t.Keys(now, ring), nil })
}

// KeysOf implements Keys.
func (m *Store) KeysOf(_ context.Context, rings []string) ([][]statestore.Key, error) {
	return read(m, func(t *State, now time.Time) ([][]statestore.Key, error) {
		out := make([][]statestore.Key, len(rings))
		for i, ring := range rings {
			out[i] = t.Keys(now, ring)
		}
		return out, nil
	})
}

// RotateKey implements Keys.
func (m *Store) RotateKey(
	ctx context.Context,
	ring string,
	expect int32,
	secret []byte,
	keep time.Duration,
) (statestore.Key, error) {
	return write(ctx, m, func(t *State, now time.Time) (statestore.Key, error) {
		key, err := t.RotateKey(now, ring, expect, secret, keep)
		if err == nil {
			m.tell(statestore.Change{Kind: statestore.ChangeKeys})
		}
		return key, err
	})
}

// CheckSchema implements Schema.
func (m *Store) CheckSchema(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.CheckSchema()
}
