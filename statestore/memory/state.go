// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// State is the store as a plain value: each promise is a method of the clock and the arguments,
// without context or lock. The simulator owns one directly; Store makes it a Store for many
// goroutines. It is also the slow, obvious model that tests compare other stores with.
type State struct {
	identity     string
	schema       string // "" until CheckSchema wrote it
	valid        statestore.Validate
	members      map[creel.SubclusterID]*subcluster.Record
	parts        map[creel.SubclusterID]map[string]string // of loads, by leaf name; a load without parts is read whole
	epochs       map[creel.SubclusterID]int64             // the newest that NextEpoch issued
	apps         homeTable[creel.ApplicationID]
	reservations homeTable[creel.ReservationID]
	uams         map[creel.ApplicationID][]statestore.UAMRecord // sorted by attempt
	dropped      map[creel.ApplicationID]int32                  // latest attempt whose UAM record was dropped
	policies     map[creel.QueuePath][]subcluster.Policy
	version      int64 // newest of any policy
	documents    map[string]*documentClass
	restored     int // snapshots restored so far
	leases       map[string]statestore.Lease
	rings        map[string][]statestore.Key // newest first
	tokens       tokenTable
	daemons      map[string]keptDaemon // by Daemon.ID
	events       []keptEvent           // oldest first
	keyChanges   int64
}

// NewState makes an empty store. identity names it (subcluster.Records.Store);
// valid checks policy documents and may be nil.
func NewState(identity string, valid statestore.Validate) *State {
	return &State{
		identity: identity, valid: valid,
		members:      map[creel.SubclusterID]*subcluster.Record{},
		parts:        map[creel.SubclusterID]map[string]string{},
		epochs:       map[creel.SubclusterID]int64{},
		apps:         newHomeTable(appIDs),
		reservations: newHomeTable(reservationIDs),
		uams:         map[creel.ApplicationID][]statestore.UAMRecord{},
		dropped:      map[creel.ApplicationID]int32{},
		policies:     map[creel.QueuePath][]subcluster.Policy{},
		documents:    map[string]*documentClass{},
		leases:       map[string]statestore.Lease{},
		rings:        map[string][]statestore.Key{},
		tokens:       tokenTable{of: map[int32]statestore.Token{}},
		daemons:      map[string]keptDaemon{},
	}
}

// Reopen gives the store another identity, as after a rebuild of its homes: processes save their records again.
func (t *State) Reopen(identity string) { t.identity = identity }

// Check returns an error if a write under the lease would be refused.
func (t *State) Check(l statestore.Lease) error {
	if is := t.leases[l.Name]; is.Token > l.Token {
		return statestore.Fenced(l, is.Token)
	}
	return nil
}

// NextEpoch: see Members.
func (t *State) NextEpoch(
	now time.Time,
	id creel.SubclusterID,
	previous int64,
	takeOver bool,
) (epoch int64, err error) {
	if err := subcluster.ValidID(id); err != nil {
		return 0, err
	}
	epoch = max(t.epochs[id], now.UnixMilli(), previous)
	if r := t.members[id]; r != nil {
		age := now.Sub(r.Heartbeat)
		// A lower epoch than previous is the caller's own of earlier, in a store that went back.
		if !takeOver && !r.Deregistered && r.Epoch > previous && age <= r.LeaseOrDefault() {
			return 0, statestore.AliveMember(id, r.Epoch, age)
		}
		epoch = max(epoch, r.Epoch)
	}
	epoch++
	t.epochs[id] = epoch
	return epoch, nil
}

// Register: see Members.
func (t *State) Register(now time.Time, m subcluster.Member) error {
	if err := m.Validate(); err != nil {
		return err
	}
	r := t.members[m.ID]
	if r == nil {
		r = &subcluster.Record{}
		t.members[m.ID] = r
	} else if m.Epoch < r.Epoch {
		return statestore.OldEpoch(m.ID, r.Epoch, m.Epoch)
	}
	if m.Epoch != r.Epoch {
		r.Load, r.Parsed = "", nil // the load of an earlier epoch is void
		delete(t.parts, m.ID)
	}
	r.Member, r.Registered, r.Heartbeat, r.Deregistered = m, now, now, false
	return nil
}

// Heartbeat: see Members.
func (t *State) Heartbeat(now time.Time, b subcluster.Heartbeat) error {
	load, err := statestore.ReadHeartbeat(b)
	if err != nil {
		return err
	}
	r, err := t.epoch(b.ID, b.Epoch)
	if err != nil {
		return err
	}
	if r.Deregistered {
		return statestore.NotMember(b.ID)
	}
	r.Heartbeat = now
	if len(b.Load) > 0 {
		r.Load, r.Parsed = string(b.Load), load
		t.takeParts(b)
	}
	return nil
}

// takeParts stores the parts of a load beside it. If parts are missing and their content is unknown, or there are none,
// the load is read whole.
func (t *State) takeParts(b subcluster.Heartbeat) {
	parts := t.parts[b.ID]
	if b.AllParts {
		parts = map[string]string{}
	}
	if len(b.Parts) == 0 || parts == nil {
		delete(t.parts, b.ID)
		return
	}
	for _, p := range b.Parts {
		parts[p.Leaf] = string(p.Text)
	}
	t.parts[b.ID] = parts
}

// epoch finds the record of a member, if it has this epoch.
func (t *State) epoch(id creel.SubclusterID, epoch int64) (*subcluster.Record, error) {
	r := t.members[id]
	switch {
	case r == nil || epoch > r.Epoch:
		return nil, statestore.NotMember(id)
	case epoch < r.Epoch:
		return nil, statestore.OldEpoch(id, r.Epoch, epoch)
	}
	return r, nil
}

// Drain: see Members.
func (t *State) Drain(id creel.SubclusterID, reason string) error {
	if err := statestore.CheckDrain(reason); err != nil {
		return err
	}
	r := t.members[id]
	if r == nil {
		return statestore.NoMember(id)
	}
	r.Draining = reason
	return nil
}

// Deregister: see Members.
func (t *State) Deregister(id creel.SubclusterID, epoch int64) error {
	r, err := t.epoch(id, epoch)
	if err != nil {
		return err
	}
	r.Deregistered = true
	return nil
}

// RemoveMember: see Members.
func (t *State) RemoveMember(now time.Time, id creel.SubclusterID) error {
	r := t.members[id]
	if r == nil {
		return nil
	}
	if !r.Deregistered && now.Sub(r.Heartbeat) <= 3*r.LeaseOrDefault() {
		return statestore.StillMember(id)
	}
	delete(t.members, id)
	delete(t.parts, id)
	return nil
}

// RecordsOf: see Members.
func (t *State) RecordsOf(now time.Time, queues []string) subcluster.Records {
	out := t.Records(now)
	for i := range out.Members {
		r := &out.Members[i]
		parts, ok := t.parts[r.ID]
		if !ok {
			continue
		}
		texts := []string{parts[""]}
		for _, leaf := range queues {
			if rows, ok := parts[leaf]; ok && leaf != "" {
				texts = append(texts, rows)
			}
		}
		r.Load, r.Parsed = subcluster.JoinParts(texts), nil
	}
	return out
}

// Records: see Members. Members are sorted by id, policies by queue.
func (t *State) Records(now time.Time) subcluster.Records {
	out := subcluster.Records{Now: now, Store: t.identity, KeyChanges: t.keyChanges}
	for _, r := range t.members {
		out.Members = append(out.Members, *r)
	}
	slices.SortFunc(
		out.Members,
		func(a, b subcluster.Record) int { return strings.Compare(string(a.ID), string(b.ID)) },
	)
	for _, h := range t.policies {
		out.Policies = append(out.Policies, h[len(h)-1])
	}
	slices.SortFunc(
		out.Policies,
		func(a, b subcluster.Policy) int { return strings.Compare(string(a.Queue), string(b.Queue)) },
	)
	return out
}

// Claim: see Homes.
func (t *State) Claim(
	now time.Time,
	app creel.ApplicationID,
	member creel.SubclusterID,
	placement []byte,
) (home creel.SubclusterID, number int64, err error) {
	_, there := t.apps.of[app]
	_, valid := t.apps.find(now, app)
	home, number, err = t.apps.Claim(now, app, member, placement)
	if err == nil && there && !valid {
		delete(t.uams, app) // they end with the expired record
		delete(t.dropped, app)
	}
	return home, number, err
}

// Move: see Homes. moved is false if the home was to already.
func (t *State) Move(
	now time.Time,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (is creel.SubclusterID, moved bool, err error) {
	return t.apps.Move(now, app, from, to, number, placement)
}

// Accept: see Homes. The caller has checked the life.
func (t *State) Accept(now time.Time, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	switch is := t.apps.accept(now, app, home, life); is {
	case home:
		return nil
	case "":
		return statestore.NoHome(app)
	default:
		return statestore.OtherHome(app, home, is)
	}
}

// AcceptedIn: see Homes.
func (t *State) AcceptedIn(now time.Time, app creel.ApplicationID) (int64, error) {
	p, ok := t.apps.find(now, app)
	if !ok {
		return 0, statestore.NoHome(app)
	}
	return p.life, nil
}

// Home: see Homes.
func (t *State) Home(now time.Time, app creel.ApplicationID) (creel.SubclusterID, error) {
	return t.apps.Home(now, app)
}

// Placement: see Homes.
func (t *State) Placement(now time.Time, app creel.ApplicationID) ([]byte, error) {
	p, ok := t.apps.find(now, app)
	if !ok {
		return nil, statestore.NoHome(app)
	}
	return slices.Clone(p.placement), nil
}

// Ended: see Homes.
func (t *State) Ended(now time.Time, app creel.ApplicationID) (time.Time, error) {
	p, ok := t.apps.find(now, app)
	if !ok {
		return time.Time{}, statestore.NoHome(app)
	}
	return p.ended, nil
}

// Forget: see Homes.
func (t *State) Forget(now time.Time, app creel.ApplicationID, home creel.SubclusterID, ttl time.Duration) error {
	return t.apps.Forget(now, app, home, ttl)
}

// HomesAt: see Homes.
func (t *State) HomesAt(
	now time.Time, member creel.SubclusterID, cursor string, limit int,
) ([]statestore.ApplicationHome, string, error) {
	return t.apps.HomesAt(now, member, cursor, limit)
}

// Adopt: see Homes.
func (t *State) Adopt(now time.Time, app creel.ApplicationID, home creel.SubclusterID, again bool) {
	t.apps.Adopt(now, app, home, again)
}

// Reservations returns the homes of reservations.
func (t *State) Reservations() Homes[creel.ReservationID] { return &t.reservations }

// Sweep: see Homes.
func (t *State) Sweep(now time.Time, limit int) (int, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return 0, err
	}
	apps := t.apps.over(now, limit)
	for _, id := range apps {
		delete(t.uams, id)
		delete(t.dropped, id)
	}
	return len(apps) + len(t.reservations.over(now, limit-len(apps))), nil
}

func compareAttempt(s statestore.UAMRecord, a creel.AttemptID) int { return s.Attempt.Compare(a) }

// SaveUAMRecord: see UAMRecords.
func (t *State) SaveUAMRecord(s statestore.UAMRecord) (int64, error) {
	if err := statestore.CheckUAMRecord(&s); err != nil {
		return 0, err
	}
	list := t.uams[s.Attempt.Application]
	i, ok := slices.BinarySearchFunc(list, s.Attempt, compareAttempt)
	var is int64
	if ok {
		is = list[i].Revision
	}
	next := cloneRecord(&s)
	next.Revision = s.Revision + 1
	switch {
	case is == next.Revision && sameRecord(&list[i], &next):
		return is, nil // the repeat of a lost answer
	case is != s.Revision:
		return 0, statestore.OtherUAMRecord(s.Attempt, is, s.Revision)
	case !ok && s.Attempt.Attempt <= t.dropped[s.Attempt.Application]:
		return 0, statestore.DroppedUAMRecord(s.Attempt)
	case ok:
		list[i] = next
	default:
		t.uams[s.Attempt.Application] = slices.Insert(list, i, next)
	}
	return next.Revision, nil
}

// UAMRecord: see UAMRecords.
func (t *State) UAMRecord(a creel.AttemptID) (statestore.UAMRecord, error) {
	list := t.uams[a.Application]
	i, ok := slices.BinarySearchFunc(list, a, compareAttempt)
	if !ok {
		return statestore.UAMRecord{}, statestore.NoUAMRecord(a)
	}
	return cloneRecord(&list[i]), nil
}

// UAMRecordsOf: see UAMRecords.
func (t *State) UAMRecordsOf(app creel.ApplicationID) []statestore.UAMRecord {
	var out []statestore.UAMRecord
	for i := range t.uams[app] {
		out = append(out, cloneRecord(&t.uams[app][i]))
	}
	return out
}

// DropUAMRecord: see UAMRecords.
func (t *State) DropUAMRecord(a creel.AttemptID) {
	t.dropped[a.Application] = max(t.dropped[a.Application], a.Attempt)
	list := t.uams[a.Application]
	i, ok := slices.BinarySearchFunc(list, a, compareAttempt)
	if !ok {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(t.uams, a.Application)
		return
	}
	t.uams[a.Application] = list
}

// PutPolicy: see Policies.
func (t *State) PutPolicy(now time.Time, w statestore.PolicyWrite) (subcluster.Policy, error) {
	if err := statestore.CheckPolicy(&w, t.valid); err != nil {
		return subcluster.Policy{}, err
	}
	h := t.policies[w.Queue]
	var last subcluster.Policy
	var before int64
	if len(h) > 0 {
		last = h[len(h)-1]
	}
	if len(h) > 1 {
		before = h[len(h)-2].Version
	}
	if last.Version != w.Expect {
		if before == w.Expect && last.Version != 0 && bytes.Equal(last.Document, w.Document) &&
			last.Author == w.Author &&
			last.Comment == w.Comment {
			return last, nil // the repeat of a lost answer
		}
		return last, statestore.OtherPolicy(w.Queue, last.Version, w.Expect)
	}
	t.version = max(t.version+1, now.UnixMilli())
	p := subcluster.Policy{
		Queue:    w.Queue,
		Version:  t.version,
		Document: slices.Clone(w.Document),
		Author:   w.Author,
		Comment:  w.Comment,
		Time:     now,
	}
	if len(h) == statestore.KeptVersions {
		h = slices.Clone(h[1:])
	}
	t.policies[w.Queue] = append(h, p)
	return p, nil
}

// PolicyHistory: see Policies.
func (t *State) PolicyHistory(q creel.QueuePath, before int64, limit int) ([]subcluster.Policy, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, err
	}
	var out []subcluster.Policy
	for _, p := range slices.Backward(t.policies[q]) {
		if (before == 0 || p.Version < before) && len(out) < limit {
			out = append(out, p)
		}
	}
	return out, nil
}

// Acquire: see Leases.
func (t *State) Acquire(now time.Time, name, holder string, ttl time.Duration) (statestore.Lease, error) {
	if err := statestore.CheckLease(name, holder, ttl); err != nil {
		return statestore.Lease{}, err
	}
	l := t.leases[name]
	if l.Holder != "" && now.Before(l.Expires) {
		if l.Holder != holder {
			return l, statestore.HeldLease(l)
		}
	} else {
		l.Token = max(l.Token+1, now.UnixMicro())
	}
	l.Name, l.Holder, l.Expires = name, holder, now.Add(ttl)
	t.leases[name] = l
	return l, nil
}

// Renew: see Leases.
func (t *State) Renew(now time.Time, l statestore.Lease, ttl time.Duration) (statestore.Lease, error) {
	if err := statestore.CheckLease(l.Name, l.Holder, ttl); err != nil {
		return statestore.Lease{}, err
	}
	is := t.leases[l.Name]
	if is.Token > l.Token || is.Token == l.Token && is.Holder != l.Holder {
		return is, statestore.LostLease(l)
	}
	is = l // a lower token is an earlier holder's, in a store that went back
	is.Expires = now.Add(ttl)
	t.leases[l.Name] = is
	return is, nil
}

// Release: see Leases.
func (t *State) Release(now time.Time, l statestore.Lease) error {
	if err := statestore.CheckLease(l.Name, l.Holder, 1); err != nil {
		return err
	}
	if is := t.leases[l.Name]; is.Token < l.Token || is.Holder == l.Holder && is.Token == l.Token {
		is = l
		is.Holder, is.Expires = "", now
		t.leases[l.Name] = is
	}
	return nil
}

// Holder: see Leases.
func (t *State) Holder(now time.Time, name string) statestore.Lease {
	l := t.leases[name]
	l.Name = name
	if !now.Before(l.Expires) {
		l.Holder = ""
	}
	return l
}

// Keys: see Keys.
func (t *State) Keys(now time.Time, ring string) []statestore.Key {
	var out []statestore.Key
	for _, k := range t.rings[ring] {
		if k.Expires.IsZero() || now.Before(k.Expires) {
			k.Secret = slices.Clone(k.Secret)
			out = append(out, k)
		}
	}
	return out
}

// RotateKey: see Keys.
func (t *State) RotateKey(
	now time.Time, ring string, expect int32, secret []byte, keep time.Duration,
) (statestore.Key, error) {
	if err := statestore.CheckName("key ring", ring); err != nil {
		return statestore.Key{}, err
	}
	if err := statestore.CheckSecret(secret); err != nil {
		return statestore.Key{}, err
	}
	if err := statestore.CheckTTL(keep); err != nil {
		return statestore.Key{}, err
	}
	keys := t.rings[ring]
	var is int32
	if len(keys) > 0 {
		is = keys[0].ID
	}
	if is == expect+1 && bytes.Equal(keys[0].Secret, secret) {
		return keys[0], nil // the repeat of a lost answer
	}
	if is != expect {
		return statestore.Key{}, statestore.OtherKey(ring, is, expect)
	}
	next := []statestore.Key{{ID: is + 1, Secret: slices.Clone(secret), Created: now}}
	for i, k := range keys {
		if i == 0 {
			k.Expires = now.Add(keep).Truncate(time.Millisecond)
		}
		if now.Before(k.Expires) {
			next = append(next, k)
		}
	}
	t.rings[ring] = next
	t.keyChanges++
	return next[0], nil
}

// CheckSchema: see Schema.
func (t *State) CheckSchema() error {
	if t.schema == "" {
		t.schema = strconv.Itoa(statestore.SchemaVersion)
	}
	return statestore.ReadableSchema(t.schema)
}
