// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// controls returns several keys of the control slot.
func (s *Store) controls(names ...string) []string {
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = s.control(n)
	}
	return keys
}

// NextEpoch implements statestore.Members. A call repeated after a lost answer returns a higher epoch; the previous one
// is never used.
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
		s.controls("m", "e", "b", "r", "l", "x", "v", "mv", "t", "s", "h"),
		string(m.ID),
		m.Epoch,
		record,
		s.channel,
	)
	return memberAnswer(list, err, m.ID, m.Epoch)
}

// memberAnswer converts the answer words of the member scripts to errors.
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
	keys := s.controls("e", "b", "l", "x", "m", "v", "lv", "h", "qn", "t", "s")
	args := []any{string(b.ID), b.Epoch, b.Load, "", "", s.leafKey(""), s.control("log:")}
	var names []string
	for _, p := range b.Parts {
		if p.Leaf == "" {
			args[3] = p.Text
			continue
		}
		names = append(names, p.Leaf)
		keys, args = append(keys, s.leafKey(p.Leaf)), append(args, p.Text)
	}
	if b.AllParts {
		args[4] = strings.Join(names, "\n") + "\n"
	}
	list, err := s.write(ctx, heartbeatScript, keys, args...)
	return memberAnswer(list, err, b.ID, b.Epoch)
}

// leafKey is the key of the rows of all queues with a leaf name.
func (s *Store) leafKey(leaf string) string { return s.control("q:" + leaf) }

// Drain implements statestore.Members.
func (s *Store) Drain(ctx context.Context, id creel.SubclusterID, reason string) error {
	if err := statestore.CheckDrain(reason); err != nil {
		return err
	}
	list, err := s.write(ctx, drainScript, s.controls("e", "d", "v", "mv"), string(id), reason, s.channel)
	if err == nil && list[0] == "NONE" {
		return statestore.NoMember(id)
	}
	return memberAnswer(list, err, id, 0)
}

// Deregister implements statestore.Members.
func (s *Store) Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error {
	list, err := s.write(ctx, deregisterScript, s.controls("e", "x", "v", "mv"), string(id), epoch, s.channel)
	return memberAnswer(list, err, id, epoch)
}

// RemoveMember implements statestore.Members.
func (s *Store) RemoveMember(ctx context.Context, id creel.SubclusterID) error {
	list, err := s.write(
		ctx,
		removeScript,
		s.controls("m", "e", "b", "r", "l", "d", "x", "v", "lv", "mv", "h", "qn", "s"),
		string(id),
		subcluster.DefaultLease.Nanoseconds(),
		s.channel,
		s.leafKey(""),
	)
	if err == nil && list[0] == "OTHER" {
		return statestore.StillMember(id)
	}
	return memberAnswer(list, err, id, 0)
}

// Records implements statestore.Members. Data unchanged since the last read is not sent again.
func (s *Store) Records(ctx context.Context) (subcluster.Records, error) {
	return s.records(ctx, &s.members, &memberSet{}, true)
}

// RecordsOf implements statestore.Members. If another caller reads other queues through this store, the result has
// their rows too, until the next full read.
func (s *Store) RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error) {
	return s.records(ctx, &s.inParts, &memberSet{inParts: true, queues: queues}, loads)
}

// records reads the wanted records, without data that an earlier read returned.
func (s *Store) records(
	ctx context.Context,
	at *atomic.Pointer[memberSet],
	wanted *memberSet,
	loads bool,
) (subcluster.Records, error) {
	if s.identity.Load() == nil { // members can exist before homes do
		_, schema, _, err := s.openMeta(ctx)
		if err == nil {
			err = statestore.ReadableSchema(schema)
		}
		if err != nil {
			return subcluster.Records{}, err
		}
	}
	policies, before := s.policies.Load(), at.Load()
	if policies == nil {
		policies = &policySet{version: "-"}
	}
	members := before
	if members == nil || members.identity != policies.identity || time.Now().After(members.until) {
		members = wanted
	} else {
		members = members.andOf(wanted.queues)
	}
	is, reported, place, err := s.look(ctx, policies, members, loads)
	if err != nil {
		return subcluster.Records{}, err
	}
	out := subcluster.Records{Now: is.now, Store: is.identity, KeyChanges: is.keyChanges}
	if is.all {
		until := time.Now().Add(wholeEvery/2 + rand.N(wholeEvery))
		members = &memberSet{inParts: members.inParts, queues: members.queues, until: until}
	}
	members = members.with(is)
	if err := s.readLoads(ctx, members, reported); err != nil {
		return subcluster.Records{}, err
	}
	members.identity, members.changes, members.loads = is.identity, is.changes, place
	members.parse(before)
	at.CompareAndSwap(before, members) // unless a full read was requested meanwhile, or another reader was faster
	if is.policies != nil {
		policies = &policySet{identity: is.identity, version: is.policyVersion}
		policies.list, policies.problems = parsePolicies(stringMap(is.policies))
		s.policies.Store(policies)
	}
	out.Members, out.Policies = members.list, policies.list
	out.Problems = slices.Concat(slices.Sorted(maps.Values(members.problems)), policies.problems)
	return out, nil
}

// recordsReply is the reply of the records script, with the heartbeats read after it.
type recordsReply struct {
	now                              time.Time
	identity, policyVersion, changes string
	keyChanges                       int64
	place                            logPlace
	policies                         []any // nil: unchanged since the caller's version

	all     bool      // changed has all members
	changed columnSet // members: ids, record, epoch, registered, drain, deregistered, and "place epoch"
	loads   []string  // members whose loads have changed
	others  columnSet // heartbeats that times lacks, by id
	times   string    // heartbeats, by place
}

// parseLook reads both replies.
func parseLook(script, times any) (is recordsReply, err error) {
	list, _ := script.([]any)
	if len(list) < 7 || len(list) > 9 {
		return recordsReply{}, surprise(script)
	}
	is = recordsReply{
		now: serverTime(list), identity: str(list[2]), policyVersion: str(list[3]), changes: str(list[4]),
		place: parsePlace(str(list[5])), keyChanges: num(list[6]), times: str(times),
	}
	if len(list) == 7 {
		return is, nil
	}
	part := columns(list[7])
	if len(part) != 3 && len(part) != 4 {
		return recordsReply{}, surprise(script)
	}
	is.others, is.loads, is.changed, is.all = columns(part[0]), part.of(1), columns(part[2]), len(part) == 4
	if len(list) == 9 {
		is.policies, _ = list[8].([]any)
	}
	return is, nil
}

// wholeEvery is the average pause between full reads of members that no announced or counted change caused. They find
// changes by a creel that does not count them, changes during a lost subscription, and equal counts after a failover of
// the store. Each pause is random, because thousands of processes may have started together.
const wholeEvery = 2 * time.Minute

// memberSet is the state of all members as read. It is immutable.
type memberSet struct {
	inParts bool     // loads are partial
	queues  []string // leaf names whose rows were read

	identity  string
	changes   string    // position in the changes: count of hash v
	loads     logPlace  // position in the loads
	until     time.Time // time of the next full read
	list      []subcluster.Record
	problems  map[creel.SubclusterID]string  // of members that cannot be read
	places    map[creel.SubclusterID]int     // of heartbeats in their text
	parts     map[creel.SubclusterID]cutLoad // of members whose loads were read in part
	due       []string                       // members whose loads must be read
	uncounted []creel.SubclusterID           // members without a place: their process does not count changes
}

// andOf returns the set to continue with if rows of further queues are wanted: an empty one, so
// that everything is read again.
func (m *memberSet) andOf(queues []string) *memberSet {
	missing := slices.DeleteFunc(slices.Clone(queues), func(q string) bool { return slices.Contains(m.queues, q) })
	if len(missing) == 0 {
		return m
	}
	missing = slices.Compact(slices.Sorted(slices.Values(missing)))
	return &memberSet{inParts: m.inParts, queues: slices.Concat(m.queues, missing)}
}

// with returns the set after a look.
func (m *memberSet) with(is recordsReply) *memberSet {
	next := *m
	next.list = slices.Clone(m.list)
	changed := is.changed.of(0)
	if len(changed) > 0 {
		next.problems, next.places = maps.Clone(m.problems), maps.Clone(m.places)
		next.take(changed, is.changed)
	}
	for i := range next.list {
		r := &next.list[i]
		if place, ok := next.places[r.ID]; ok && len(is.times) >= heartbeatDigits*(place+1) {
			r.Heartbeat = micros(is.times[heartbeatDigits*place : heartbeatDigits*(place+1)])
		}
	}
	others := is.others.of(0)
	for i, id := range others {
		if r := next.member(id); r != nil {
			r.Heartbeat = micros(is.others.at(1, i))
		}
	}
	next.due = slices.Concat(is.loads, others, changed)
	slices.Sort(next.due)
	next.due = slices.Compact(next.due)
	return &next
}

// heartbeatDigits is the length of one heartbeat in the text of heartbeats.
const heartbeatDigits = 16

func byID(r subcluster.Record, id creel.SubclusterID) int {
	return strings.Compare(string(r.ID), string(id))
}

// member finds a member of a set under construction; nil if it is missing.
func (m *memberSet) member(id string) *subcluster.Record {
	at, ok := slices.BinarySearchFunc(m.list, creel.SubclusterID(id), byID)
	if !ok {
		return nil
	}
	return &m.list[at]
}

// setLoad sets the load in a member's record.
func setLoad(r *subcluster.Record, load string) {
	if load != r.Load {
		r.Load, r.Parsed = load, nil
	}
}

// take replaces members by columns of record, epoch, registered, drain, deregistered, and "place epoch". An unreadable
// record is reported as a problem and does not hide the others.
func (m *memberSet) take(ids []string, changed columnSet) {
	if m.problems == nil {
		m.problems, m.places = map[creel.SubclusterID]string{}, map[creel.SubclusterID]int{}
	}
	m.uncounted = slices.DeleteFunc(slices.Clone(m.uncounted), func(id creel.SubclusterID) bool {
		return slices.Contains(ids, string(id))
	})
	for i, text := range ids {
		id := creel.SubclusterID(text)
		delete(m.problems, id)
		delete(m.places, id)
		at, known := slices.BinarySearchFunc(m.list, id, byID)
		record := changed.at(1, i)
		is, err := statestore.ParseMember([]byte(record))
		registered, noEpoch := strconv.ParseInt(changed.at(2, i), 10, 64)
		switch {
		case err != nil:
		case noEpoch != nil: // no registration wrote it
			err = fmt.Errorf("its epoch beside the record is %.40q", changed.at(2, i))
		case is.ID != id || registered != is.Epoch:
			err = fmt.Errorf("it belongs to %q, epoch %d", is.ID, is.Epoch)
		}
		if err != nil {
			if known {
				m.list = slices.Delete(m.list, at, at+1)
			}
			if record != "" { // else the member was removed
				m.problems[id] = fmt.Sprintf("member %.80q: %v", id, err)
			}
			continue
		}
		if !known {
			m.list = slices.Insert(m.list, at, subcluster.Record{})
		}
		r := &m.list[at]
		r.Member, r.Registered = is, micros(changed.at(3, i))
		r.Draining, r.Deregistered = changed.at(4, i), changed.at(5, i) != ""
		text, epoch, _ := strings.Cut(changed.at(6, i), " ")
		if place, err := strconv.ParseUint(text, 10, 31); err == nil && epoch == changed.at(2, i) {
			m.places[id] = int(place)
		} else {
			m.uncounted = append(m.uncounted, id)
		}
		r.Superseded = num(epoch) > is.Epoch
	}
}

// columnSet is a script's reply about members: ids, then further columns.
type columnSet [][]any

func columns(v any) columnSet {
	list, _ := v.([]any)
	set := make(columnSet, len(list))
	for i := range list {
		set[i], _ = list[i].([]any)
	}
	return set
}

func (c columnSet) of(column int) []string {
	if column >= len(c) {
		return nil
	}
	out := make([]string, len(c[column]))
	for i, v := range c[column] {
		out[i] = str(v)
	}
	return out
}

// at returns "" for a missing value.
func (c columnSet) at(column, line int) string {
	if column >= len(c) || line >= len(c[column]) {
		return ""
	}
	return str(c[column][line])
}

// parse parses the loads that the previous set lacks, once for all readers of this store. Unreadable loads stay
// unparsed; readers parse them again and report the reason.
func (m *memberSet) parse(before *memberSet) {
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

func micros(s string) time.Time { return time.UnixMicro(num(s)) }
