// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// controls are several keys of the control slot.
func (s *Store) controls(names ...string) []string {
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = s.control(n)
	}
	return keys
}

// NextEpoch implements statestore.Members. A call that is sent again because its
// answer was lost gives a higher epoch; the one before is never used.
func (s *Store) NextEpoch(
	ctx context.Context,
	id creel.SubclusterID,
	previous int64,
	takeOver bool,
) (int64, error) {
	if err := subcluster.ValidID(id); err != nil {
		return 0, err
	}
	take := "0"
	if takeOver {
		take = "1"
	}
	list, err := s.write(
		ctx,
		nextEpochScript,
		s.controls("m", "e", "b", "x", "n"),
		string(id),
		previous,
		take,
		subcluster.DefaultLease.Nanoseconds(),
	)
	switch {
	case err != nil:
		return 0, err
	case list[0] == "OK":
		return num(at(list, 1)), nil
	case list[0] == "ALIVE":
		return 0, statestore.AliveMember(id, num(at(list, 1)), time.Duration(num(at(list, 2)))*time.Microsecond)
	}
	return 0, surprise(list)
}

// Register implements statestore.Members.
func (s *Store) Register(ctx context.Context, m subcluster.Member) error {
	if err := m.Validate(); err != nil {
		return err
	}
	record, err := statestore.EncodeMember(m)
	if err != nil {
		return err
	}
	list, err := s.write(
		ctx,
		registerScript,
		s.controls("m", "e", "b", "r", "l", "x", "v"),
		string(m.ID),
		m.Epoch,
		record,
		s.channel,
	)
	return memberAnswer(list, err, m.ID, m.Epoch)
}

// memberAnswer turns the words of the member scripts into errors.
func memberAnswer(list []any, err error, id creel.SubclusterID, epoch int64) error {
	switch {
	case err != nil:
		return err
	case list[0] == "OK":
		return nil
	case list[0] == "STALE":
		return statestore.OldEpoch(id, num(at(list, 1)), epoch)
	case list[0] == "NONE":
		return statestore.NotMember(id)
	}
	return surprise(list)
}

// Heartbeat implements statestore.Members. Heartbeats share pipelines like all calls.
func (s *Store) Heartbeat(ctx context.Context, b subcluster.Heartbeat) error {
	if err := statestore.CheckHeartbeat(b); err != nil {
		return err
	}
	keys := s.controls("e", "b", "l", "x", "m", "v", "lv")
	list, err := s.write(ctx, heartbeatScript, keys, string(b.ID), b.Epoch, b.Load)
	return memberAnswer(list, err, b.ID, b.Epoch)
}

// Drain implements statestore.Members.
func (s *Store) Drain(ctx context.Context, id creel.SubclusterID, reason string) error {
	if err := statestore.CheckDrain(reason); err != nil {
		return err
	}
	list, err := s.write(ctx, drainScript, s.controls("e", "d", "v"), string(id), reason, s.channel)
	if err == nil && list[0] == "NONE" {
		return statestore.NoMember(id)
	}
	return memberAnswer(list, err, id, 0)
}

// Deregister implements statestore.Members.
func (s *Store) Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error {
	list, err := s.write(ctx, deregisterScript, s.controls("e", "x", "v"), string(id), epoch, s.channel)
	return memberAnswer(list, err, id, epoch)
}

// RemoveMember implements statestore.Members.
func (s *Store) RemoveMember(ctx context.Context, id creel.SubclusterID) error {
	list, err := s.write(
		ctx,
		removeScript,
		s.controls("m", "e", "b", "r", "l", "d", "x", "v", "lv"),
		string(id),
		subcluster.DefaultLease.Nanoseconds(),
		s.channel,
	)
	if err == nil && list[0] == "OTHER" {
		return statestore.StillMember(id)
	}
	return memberAnswer(list, err, id, 0)
}

// Records implements statestore.Members. What has not changed since the last read
// does not travel again.
func (s *Store) Records(ctx context.Context) (subcluster.Records, error) {
	if s.identity.Load() == nil { // members are there before homes are
		_, schema, _, err := s.openMeta(ctx)
		if err == nil {
			err = statestore.ReadableSchema(schema)
		}
		if err != nil {
			return subcluster.Records{}, err
		}
	}
	policies, before := s.policies.Load(), s.members.Load()
	if policies == nil {
		policies = &policySet{version: "-"}
	}
	members := before
	if members == nil || members.identity != policies.identity || time.Since(members.read) > wholeEvery {
		members = &memberSet{}
	}
	args := []any{policies.version, policies.identity, members.changes, members.loads}
	for _, id := range members.uncounted {
		args = append(args, id)
	}
	keys := s.controls("meta", "m", "e", "b", "r", "l", "d", "x", "v", "lv", "p")
	v, err := s.do(ctx, reading(recordsScript, keys, args...))
	if err != nil {
		return subcluster.Records{}, err
	}
	list, _ := v.([]any)
	if len(list) != 8 && len(list) != 9 {
		return subcluster.Records{}, surprise(v)
	}
	out := subcluster.Records{Now: serverTime(list), Store: str(list[2]), KeyChanges: num(list[6])}
	switch part, _ := list[7].([]any); len(part) {
	case 2:
		members = members.with(stringMap(part[0]), stringMap(part[1]), str(list[5]))
	case 8:
		members = wholeSet(part)
		members.identity, members.changes, members.loads = out.Store, str(list[4]), str(list[5])
	default:
		return subcluster.Records{}, surprise(v)
	}
	members.parse(before)
	s.members.CompareAndSwap(before, members) // else all was asked for meanwhile, or somebody was faster
	if len(list) == 9 {
		policies = &policySet{identity: out.Store, version: str(list[3])}
		policies.list, policies.problems = parsePolicies(stringMap(list[8]))
		s.policies.Store(policies)
	}
	out.Members, out.Policies = members.list, policies.list
	out.Problems = slices.Concat(members.problems, policies.problems)
	return out, nil
}

// wholeEvery is how often all of the members is read though no change was heard of or
// counted: changes by a creel that counts none, while the subscription was lost, or
// counted twice alike by a store that failed over.
const wholeEvery = 30 * time.Second

// memberSet is what was read of all members. It is never changed.
type memberSet struct {
	identity       string
	changes, loads string    // how far it is: counts of hash v
	read           time.Time // when all of it was read
	list           []subcluster.Record
	problems       []string
	uncounted      []string // members whose process does not count its changes
}

// wholeSet reads the hashes of the members, in the order of parseMembers, and hash v.
func wholeSet(hashes []any) *memberSet {
	m := &memberSet{read: time.Now()}
	m.list, m.problems = parseMembers(hashes)
	counting := stringMap(hashes[7])
	for i := range m.list {
		r := &m.list[i]
		if counting[string(r.ID)] != strconv.FormatInt(r.Epoch, 10) {
			m.uncounted = append(m.uncounted, string(r.ID))
		}
	}
	return m
}

// parse reads the loads that the set before has not, once for all who look through this
// store. One that cannot be read is left to them, who say why.
func (m *memberSet) parse(before *memberSet) {
	byID := func(r subcluster.Record, id creel.SubclusterID) int { return strings.Compare(string(r.ID), string(id)) }
	for i := range m.list {
		r := &m.list[i]
		if r.Parsed != nil || r.Load == "" {
			continue
		}
		if before != nil {
			if at, ok := slices.BinarySearchFunc(before.list, r.ID, byID); ok && before.list[at].Load == r.Load {
				r.Parsed = before.list[at].Parsed
			}
		}
		if r.Parsed != nil {
			continue
		}
		if l, err := subcluster.ParseLoad([]byte(r.Load)); err == nil {
			r.Parsed = &l
		}
	}
}

// with is the set after a read of what has changed: all heartbeats, some loads.
func (m *memberSet) with(heartbeats, loads map[string]string, upTo string) *memberSet {
	next := *m
	next.loads, next.list = upTo, slices.Clone(m.list)
	for i := range next.list {
		r := &next.list[i]
		r.Heartbeat = micros(heartbeats[string(r.ID)])
		if load, ok := loads[string(r.ID)]; ok && load != r.Load {
			r.Load, r.Parsed = load, nil
		}
	}
	return &next
}

// parseMembers joins the hashes of the members: record, epoch, heartbeat, registered,
// load, drain, deregistered. A record that cannot be read is a problem told, it
// does not blind us to the others.
func parseMembers(hashes []any) (list []subcluster.Record, problems []string) {
	records, epochs, heartbeats, registered := stringMap(
		hashes[0],
	), stringMap(
		hashes[1],
	), stringMap(
		hashes[2],
	), stringMap(
		hashes[3],
	)
	loads, drains, gone := stringMap(hashes[4]), stringMap(hashes[5]), stringMap(hashes[6])
	for id, text := range records {
		m, err := statestore.ParseMember([]byte(text))
		if err == nil && (string(m.ID) != id || num(epochs[id]) != m.Epoch) {
			err = fmt.Errorf("it belongs to %q, epoch %d", m.ID, m.Epoch)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("member %.80q: %v", id, err))
			continue
		}
		list = append(
			list,
			subcluster.Record{Member: m, Heartbeat: micros(heartbeats[id]), Registered: micros(registered[id]),
				Load: loads[id], Draining: drains[id], Deregistered: gone[id] != ""},
		)
	}
	slices.SortFunc(list, func(a, b subcluster.Record) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.Sort(problems)
	return list, problems
}

func micros(s string) time.Time { return time.UnixMicro(num(s)) }
