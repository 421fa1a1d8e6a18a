// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"slices"
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
		s.controls("m", "e", "b", "r", "l", "x"),
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
	list, err := s.write(ctx, heartbeatScript, s.controls("e", "b", "l", "x", "m"), string(b.ID), b.Epoch, b.Load)
	return memberAnswer(list, err, b.ID, b.Epoch)
}

// Drain implements statestore.Members.
func (s *Store) Drain(ctx context.Context, id creel.SubclusterID, reason string) error {
	if err := statestore.CheckDrain(reason); err != nil {
		return err
	}
	list, err := s.write(ctx, drainScript, s.controls("e", "d"), string(id), reason, s.channel)
	if err == nil && list[0] == "NONE" {
		return statestore.NoMember(id)
	}
	return memberAnswer(list, err, id, 0)
}

// Deregister implements statestore.Members.
func (s *Store) Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error {
	list, err := s.write(ctx, deregisterScript, s.controls("e", "x"), string(id), epoch, s.channel)
	return memberAnswer(list, err, id, epoch)
}

// RemoveMember implements statestore.Members.
func (s *Store) RemoveMember(ctx context.Context, id creel.SubclusterID) error {
	list, err := s.write(
		ctx,
		removeScript,
		s.controls("m", "e", "b", "r", "l", "d", "x"),
		string(id),
		subcluster.DefaultLease.Nanoseconds(),
		s.channel,
	)
	if err == nil && list[0] == "OTHER" {
		return statestore.StillMember(id)
	}
	return memberAnswer(list, err, id, 0)
}

// Records implements statestore.Members. Policies travel only when they have
// changed since the last read.
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
	have := s.policies.Load()
	if have == nil {
		have = &policySet{version: "-"}
	}
	v, err := s.do(
		ctx,
		reading(recordsScript, s.controls("meta", "m", "e", "b", "r", "l", "d", "x", "p"), have.version, have.identity),
	)
	if err != nil {
		return subcluster.Records{}, err
	}
	list, _ := v.([]any)
	if len(list) != 11 && len(list) != 12 {
		return subcluster.Records{}, surprise(v)
	}
	out := subcluster.Records{Now: serverTime(list), Store: str(list[2])}
	out.Members, out.Problems = parseMembers(list[4:11])
	if len(list) == 12 {
		next := &policySet{identity: out.Store, version: str(list[3])}
		next.list, next.problems = parsePolicies(stringMap(list[11]))
		s.policies.Store(next)
		have = next
	}
	out.Policies = have.list
	out.Problems = append(out.Problems, have.problems...)
	return out, nil
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
