// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Memory wraps a State for concurrent callers: the embedded store of one process.
type Memory struct {
	clock func() time.Time
	mu    sync.Mutex
	state *State
	subs  map[*subscriber]struct{}
}

var _ Store = (*Memory)(nil)

type subscriber struct {
	changes chan Change
	missed  bool // guarded by Memory.mu
}

// NewMemory makes a store around a state, which the store then owns. clock is the store's clock:
// time.Now or a simulation's.
func NewMemory(state *State, clock func() time.Time) *Memory {
	return &Memory{clock: clock, state: state, subs: map[*subscriber]struct{}{}}
}

// read locks and returns the state and the time.
func (m *Memory) read() (t *State, now time.Time, unlock func()) {
	m.mu.Lock()
	return m.state, m.clock(), m.mu.Unlock
}

// write is read for changes: it also checks the context and the lease attached to it.
func (m *Memory) write(ctx context.Context) (t *State, now time.Time, unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, nil, err
	}
	if err := CheckRecording(ctx); err != nil {
		return nil, time.Time{}, nil, err
	}
	m.mu.Lock()
	if l, ok := FenceOf(ctx); ok {
		if err := m.state.Check(l); err != nil {
			m.mu.Unlock()
			return nil, time.Time{}, nil, err
		}
	}
	return m.state, m.clock(), m.mu.Unlock, nil
}

// tell passes a change to the subscribers; the caller has locked m.mu. It never blocks.
func (m *Memory) tell(c Change) {
	for s := range m.subs {
		select {
		case s.changes <- c:
		default:
			s.missed = true
		}
	}
}

// Watch implements Watch.
func (m *Memory) Watch(ctx context.Context, notify func(Change)) error {
	s := &subscriber{changes: make(chan Change, 64)}
	m.mu.Lock()
	m.subs[s] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.subs, s)
		m.mu.Unlock()
	}()
	notify(Change{Kind: ChangeResync})
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
			notify(Change{Kind: ChangeResync})
		}
	}
}

// Snapshot writes the whole store as JSON, for Restore.
func (m *Memory) Snapshot() ([]byte, error) {
	t, _, unlock := m.read()
	defer unlock()
	return t.Snapshot()
}

// Restore replaces the whole store by a snapshot.
func (m *Memory) Restore(data []byte) error {
	t, _, unlock := m.read()
	defer unlock()
	if err := t.Restore(data); err != nil {
		return err
	}
	m.tell(Change{Kind: ChangeResync})
	return nil
}

// NextEpoch implements Members.
func (m *Memory) NextEpoch(
	ctx context.Context,
	id creel.SubclusterID,
	previous int64,
	takeOver bool,
) (int64, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return t.NextEpoch(now, id, previous, takeOver)
}

// Register implements Members.
func (m *Memory) Register(ctx context.Context, member subcluster.Member) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Register(now, member); err != nil {
		return err
	}
	m.tell(Change{Kind: ChangeMembers})
	return nil
}

// Heartbeat implements Members.
func (m *Memory) Heartbeat(ctx context.Context, b subcluster.Heartbeat) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return t.Heartbeat(now, b)
}

// Drain implements Members.
func (m *Memory) Drain(ctx context.Context, id creel.SubclusterID, reason string) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Drain(id, reason); err != nil {
		return err
	}
	m.record(ctx, t, now)
	m.tell(Change{Kind: ChangeMembers})
	return nil
}

// Deregister implements Members.
func (m *Memory) Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Deregister(id, epoch); err != nil {
		return err
	}
	m.record(ctx, t, now)
	m.tell(Change{Kind: ChangeMembers})
	return nil
}

// RemoveMember implements Members.
func (m *Memory) RemoveMember(ctx context.Context, id creel.SubclusterID) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.RemoveMember(now, id); err != nil {
		return err
	}
	m.record(ctx, t, now)
	m.tell(Change{Kind: ChangeMembers})
	return nil
}

// Records implements Members.
func (m *Memory) Records(context.Context) (subcluster.Records, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.Records(now), nil
}

// RecordsOf implements Members.
func (m *Memory) RecordsOf(_ context.Context, queues []string, _ bool) (subcluster.Records, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.RecordsOf(now, queues), nil
}

// Claim implements Homes.
func (m *Memory) Claim(
	ctx context.Context,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return "", 0, err
	}
	defer unlock()
	return t.Claim(now, app, member, placement)
}

// Move implements Homes.
func (m *Memory) Move(
	ctx context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	is, moved, err := t.Move(now, app, from, to, number, placement)
	if moved {
		m.tell(Change{Kind: ChangeHome, Application: app})
	}
	return is, err
}

// Absent implements Homes.
func (m *Memory) Absent(
	ctx context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return t.Absent(now, app, home, number, surely)
}

// Accept implements Homes.
func (m *Memory) Accept(ctx context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if err := CheckLife(app, life); err != nil { // before the lease of a fenced write is checked
		return err
	}
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return t.Accept(now, app, home, life)
}

// AcceptedIn implements Homes.
func (m *Memory) AcceptedIn(_ context.Context, app creel.ApplicationID) (int64, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.AcceptedIn(now, app)
}

// Home implements Homes.
func (m *Memory) Home(_ context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.Home(now, app)
}

// Placement implements Homes.
func (m *Memory) Placement(_ context.Context, app creel.ApplicationID) ([]byte, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.Placement(now, app)
}

// Ended implements Homes.
func (m *Memory) Ended(_ context.Context, app creel.ApplicationID) (time.Time, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.Ended(now, app)
}

// Forget implements Homes.
func (m *Memory) Forget(
	ctx context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	ttl time.Duration,
) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Forget(now, app, home, ttl); err != nil {
		return err
	}
	m.tell(Change{Kind: ChangeHome, Application: app})
	return nil
}

// HomesAt implements Homes.
func (m *Memory) HomesAt(
	_ context.Context,
	member creel.SubclusterID,
	cursor string,
	limit int,
) ([]Home, string, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.HomesAt(now, member, cursor, limit)
}

// Sweep implements Homes.
func (m *Memory) Sweep(ctx context.Context, limit int) (int, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return t.Sweep(now, limit)
}

// ClaimReservation implements Reservations.
func (m *Memory) ClaimReservation(
	ctx context.Context,
	id creel.ReservationID,
	member creel.SubclusterID,
) (home creel.SubclusterID, fresh bool, err error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	return t.ClaimReservation(now, id, member)
}

// MoveReservation implements Reservations.
func (m *Memory) MoveReservation(
	ctx context.Context,
	id creel.ReservationID,
	from, to creel.SubclusterID,
) (creel.SubclusterID, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	return t.MoveReservation(now, id, from, to)
}

// ReservationHome implements Reservations.
func (m *Memory) ReservationHome(_ context.Context, id creel.ReservationID) (creel.SubclusterID, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.ReservationHome(now, id)
}

// ForgetReservation implements Reservations.
func (m *Memory) ForgetReservation(
	ctx context.Context,
	id creel.ReservationID,
	home creel.SubclusterID,
	ttl time.Duration,
) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return t.ForgetReservation(now, id, home, ttl)
}

// ReservationsAt implements Reservations.
func (m *Memory) ReservationsAt(
	_ context.Context,
	member creel.SubclusterID,
	cursor string,
	limit int,
) ([]ReservationHome, string, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.ReservationsAt(now, member, cursor, limit)
}

// SaveUAMRecord implements UAMRecords.
func (m *Memory) SaveUAMRecord(ctx context.Context, s UAMRecord) (int64, error) {
	t, _, unlock, err := m.write(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return t.SaveUAMRecord(s)
}

// UAMRecord implements UAMRecords.
func (m *Memory) UAMRecord(_ context.Context, a creel.AttemptID) (UAMRecord, error) {
	t, _, unlock := m.read()
	defer unlock()
	return t.UAMRecord(a)
}

// UAMRecordsOf implements UAMRecords.
func (m *Memory) UAMRecordsOf(_ context.Context, app creel.ApplicationID) ([]UAMRecord, error) {
	t, _, unlock := m.read()
	defer unlock()
	return t.UAMRecordsOf(app), nil
}

// DropUAMRecord implements UAMRecords.
func (m *Memory) DropUAMRecord(ctx context.Context, a creel.AttemptID) error {
	t, _, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	t.DropUAMRecord(a)
	return nil
}

// PutPolicy implements Policies.
func (m *Memory) PutPolicy(ctx context.Context, w PolicyWrite) (subcluster.Policy, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return subcluster.Policy{}, err
	}
	defer unlock()
	p, err := t.PutPolicy(now, w)
	if err == nil {
		m.record(ctx, t, now)
		m.tell(Change{Kind: ChangePolicies, Version: p.Version})
	}
	return p, err
}

// PolicyHistory implements Policies.
func (m *Memory) PolicyHistory(
	_ context.Context,
	q creel.QueuePath,
	before int64,
	limit int,
) ([]subcluster.Policy, error) {
	t, _, unlock := m.read()
	defer unlock()
	return t.PolicyHistory(q, before, limit)
}

// Acquire implements Leases.
func (m *Memory) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	return t.Acquire(now, name, holder, ttl)
}

// Renew implements Leases.
func (m *Memory) Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	return t.Renew(now, l, ttl)
}

// Release implements Leases.
func (m *Memory) Release(ctx context.Context, l Lease) error {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return t.Release(now, l)
}

// Holder implements Leases.
func (m *Memory) Holder(_ context.Context, name string) (Lease, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.Holder(now, name), nil
}

// Keys implements Keys.
func (m *Memory) Keys(_ context.Context, ring string) ([]Key, error) {
	t, now, unlock := m.read()
	defer unlock()
	return t.Keys(now, ring), nil
}

// KeysOf implements Keys.
func (m *Memory) KeysOf(_ context.Context, rings []string) ([][]Key, error) {
	t, now, unlock := m.read()
	defer unlock()
	out := make([][]Key, len(rings))
	for i, ring := range rings {
		out[i] = t.Keys(now, ring)
	}
	return out, nil
}

// RotateKey implements Keys.
func (m *Memory) RotateKey(
	ctx context.Context,
	ring string,
	expect int32,
	secret []byte,
	keep time.Duration,
) (Key, error) {
	t, now, unlock, err := m.write(ctx)
	if err != nil {
		return Key{}, err
	}
	defer unlock()
	key, err := t.RotateKey(now, ring, expect, secret, keep)
	if err == nil {
		m.tell(Change{Kind: ChangeKeys})
	}
	return key, err
}

// CheckSchema implements Schema.
func (m *Memory) CheckSchema(context.Context) error {
	t, _, unlock := m.read()
	defer unlock()
	return t.CheckSchema()
}
