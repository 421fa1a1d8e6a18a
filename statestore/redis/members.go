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
		s.controls("m", "e", "b", "r", "l", "x", "v", "mv", "t", "s", "h"),
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
	keys := s.controls("e", "b", "l", "x", "m", "v", "lv", "h", "qn", "t", "s", "hl")
	args := []any{string(b.ID), b.Epoch, b.Load, "", "", s.leafKey(""), mostLog}
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

// mostLog is the most that the log of heads has, in bytes: some minutes of 100 members. Who reads it when
// it begins anew reads once as if there were none.
const mostLog = 4 << 20

// leafKey is where the rows are of queues with a leaf name.
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

// Records implements statestore.Members. What has not changed since the last read
// does not travel again.
func (s *Store) Records(ctx context.Context) (subcluster.Records, error) {
	return s.records(ctx, &s.members, &memberSet{}, true)
}

// RecordsOf implements statestore.Members. Who looks through this store with other queues
// gets the rows of these, too, until all is read again.
func (s *Store) RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error) {
	return s.records(ctx, &s.inParts, &memberSet{inParts: true, queues: queues}, loads)
}

// records reads what is wanted, and of that what is not in a set that was read before.
func (s *Store) records(
	ctx context.Context,
	at *atomic.Pointer[memberSet],
	wanted *memberSet,
	loads bool,
) (subcluster.Records, error) {
	if s.identity.Load() == nil { // members are there before homes are
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
	list, logged, place, err := s.look(ctx, policies, members, loads)
	if err != nil {
		return subcluster.Records{}, err
	}
	out := subcluster.Records{Now: serverTime(list), Store: str(list[2]), KeyChanges: num(list[6])}
	switch part, _ := list[7].([]any); len(part) {
	case 4:
	case 5:
		until := time.Now().Add(wholeEvery/2 + rand.N(wholeEvery))
		members = &memberSet{inParts: members.inParts, queues: members.queues, until: until}
	default:
		return subcluster.Records{}, surprise(list)
	}
	members = members.with(list[7].([]any))
	if err := s.readLoads(ctx, members, logged); err != nil {
		return subcluster.Records{}, err
	}
	members.identity, members.changes, members.loads = out.Store, str(list[4]), place
	members.parse(before)
	at.CompareAndSwap(before, members) // else all was asked for meanwhile, or somebody was faster
	if len(list) == 9 {
		policies = &policySet{identity: out.Store, version: str(list[3])}
		policies.list, policies.problems = parsePolicies(stringMap(list[8]))
		s.policies.Store(policies)
	}
	out.Members, out.Policies = members.list, policies.list
	out.Problems = slices.Concat(slices.Sorted(maps.Values(members.problems)), policies.problems)
	return out, nil
}

// look runs the script of a look, and reads beside it, if loads are wanted, what the log of heads has
// more than a set of parts knows, as "epoch head" by id. Where the log does not go on from what is known, as
// after one that a creel of before added nothing to, it looks once more without, and says so by the place.
func (s *Store) look(
	ctx context.Context,
	policies *policySet,
	members *memberSet,
	wanted bool,
) (list []any, logged map[string]string, loads loadsPlace, err error) {
	keys := s.controls("meta", "m", "e", "b", "r", "d", "x", "v", "lv", "p", "mv", "t", "s", "hl")
	for from := members.loads; ; from.log = "" {
		args := []any{policies.version, policies.identity, members.changes, from.String()}
		for _, id := range members.uncounted {
			args = append(args, string(id))
		}
		script := reading(recordsScript, keys, args...)
		var answers []any
		if from.log == "" || !wanted {
			answers = make([]any, 1)
			answers[0], err = s.do(ctx, script)
		} else { // the script first: what it counts is in the log then
			answers, err = s.all(ctx, []*call{script, command("GETRANGE", s.control("hl"), from.at, -1)})
		}
		if err != nil {
			return nil, nil, loadsPlace{}, err
		}
		list, _ = answers[0].([]any)
		if len(list) != 8 && len(list) != 9 {
			return nil, nil, loadsPlace{}, surprise(answers[0])
		}
		is := parsePlace(str(list[5]))
		part, _ := list[7].([]any)
		switch all := len(part) == 5; {
		case !members.inParts, from.log == "" && !all: // without the log until all is read again
			is.log = ""
			return list, nil, is, nil
		case all, from.log != is.log: // it has begun anew
			return list, nil, is, nil
		case !wanted: // the next look goes on from where this one began
			return list, nil, from, nil
		}
		var ok bool
		if logged, loads, ok = readLog(str(answers[1]), from, is.count); ok {
			return list, logged, loads, nil
		}
	}
}

// wholeEvery is how often, on average, all of the members is read though no change was heard of or
// counted: changes by a creel that counts none, while the subscription was lost, or
// counted twice alike by a store that failed over. Each pause differs, since thousands may have begun at once.
const wholeEvery = 2 * time.Minute

// memberSet is what was read of all members. It is never changed.
type memberSet struct {
	inParts bool     // loads are
	queues  []string // leaf names, of which rows were read then

	identity  string
	changes   string     // how far it is: count of hash v
	loads     loadsPlace // and with loads
	until     time.Time  // then all of it is read anew
	list      []subcluster.Record
	problems  map[creel.SubclusterID]string // of those that cannot be read
	places    map[creel.SubclusterID]int    // in the text of heartbeats
	due       []string                      // members whose loads are to be read
	uncounted []creel.SubclusterID          // members that have none: their process is not of today
}

// andOf is the set to go on with where rows of further queues are wanted: one with which
// all is read again.
func (m *memberSet) andOf(queues []string) *memberSet {
	missing := slices.DeleteFunc(slices.Clone(queues), func(q string) bool { return slices.Contains(m.queues, q) })
	if len(missing) == 0 {
		return m
	}
	missing = slices.Compact(slices.Sorted(slices.Values(missing)))
	return &memberSet{inParts: m.inParts, queues: slices.Concat(m.queues, missing)}
}

// with is the set after a read: the text of heartbeats, columns of others, whose loads have
// changed, and columns of members.
func (m *memberSet) with(read []any) *memberSet {
	next := *m
	times, others, changed := str(read[0]), columns(read[1]), columns(read[3])
	next.list = slices.Clone(m.list)
	if ids := changed.of(0); len(ids) > 0 {
		next.problems, next.places = maps.Clone(m.problems), maps.Clone(m.places)
		next.take(ids, changed)
	}
	for i := range next.list {
		r := &next.list[i]
		if place, ok := next.places[r.ID]; ok && len(times) >= heartbeatDigits*(place+1) {
			r.Heartbeat = micros(times[heartbeatDigits*place : heartbeatDigits*(place+1)])
		}
	}
	for i, id := range others.of(0) {
		if r := next.member(id); r != nil {
			r.Heartbeat = micros(others.at(1, i))
		}
	}
	next.due = slices.Concat(columns(read).of(2), others.of(0), changed.of(0))
	slices.Sort(next.due)
	next.due = slices.Compact(next.due)
	return &next
}

// heartbeatDigits is how long a heartbeat is in their text.
const heartbeatDigits = 16

func byID(r subcluster.Record, id creel.SubclusterID) int {
	return strings.Compare(string(r.ID), string(id))
}

// readLoads reads the loads that are due, in parts where a set is of parts and a member of
// today cut its load in this epoch, else whole. They may be later than the rest of the set:
// then they come again with the next look.
// Of those in the log of heads that are not due rows alone are read.
func (s *Store) readLoads(ctx context.Context, m *memberSet, logged map[string]string) error {
	if len(m.due) == 0 && len(logged) == 0 {
		return nil
	}
	get := func(key string, ids []string) *call {
		args := []any{"HMGET", s.control(key)}
		for _, id := range ids {
			args = append(args, id)
		}
		return command(args...)
	}
	whole := m.due
	if m.inParts {
		ids := slices.Clone(m.due) // whose heads are read, before those whose heads are there
		for _, id := range slices.Sorted(maps.Keys(logged)) {
			if _, due := slices.BinarySearch(m.due, id); !due {
				ids = append(ids, id)
			}
		}
		var calls []*call
		for _, leaf := range m.queues {
			calls = append(calls, get("q:"+leaf, ids))
		}
		if len(m.due) > 0 {
			calls = append(calls, get("h", m.due))
		}
		answers, err := s.all(ctx, calls)
		if err != nil {
			return err
		}
		parts := columns(answers)
		whole = nil
		for i, id := range ids {
			r := m.member(id)
			text := logged[id]
			if i < len(m.due) {
				text = parts.at(len(m.queues), i)
			}
			epoch, head, _ := strings.Cut(text, " ")
			switch {
			case r == nil:
			case head != "" && epoch == strconv.FormatInt(r.Epoch, 10) && !slices.Contains(m.uncounted, r.ID):
				texts := []string{head}
				for column := range m.queues {
					if rows := parts.at(column, i); rows != "" {
						texts = append(texts, rows)
					}
				}
				setLoad(r, subcluster.JoinParts(texts))
			default:
				whole = append(whole, id)
			}
		}
	}
	if len(whole) == 0 {
		return nil
	}
	answers, err := s.all(ctx, []*call{get("l", whole)})
	if err != nil {
		return err
	}
	loads := columns(answers)
	for i, id := range whole {
		if r := m.member(id); r != nil {
			setLoad(r, loads.at(0, i))
		}
	}
	return nil
}

// loadsPlace is how far a reader is with loads: the count of their changes, and where the log of heads goes
// on from there.
type loadsPlace struct {
	count int64
	log   string // which: how often it began anew; "" for none
	at    int64  // bytes of it
}

// parsePlace reads what the script of a look says.
func parsePlace(text string) (p loadsPlace) {
	count, rest, _ := strings.Cut(text, " ")
	p.log, rest, _ = strings.Cut(rest, " ")
	p.count, p.at = num(count), num(rest)
	return p
}

// String is what that script is told.
func (p loadsPlace) String() string {
	return strings.TrimSuffix(strconv.FormatInt(p.count, 10)+" "+p.log, " ")
}

// readLog reads what the log of heads has behind a place: "epoch head" by id, the latest, and the place
// then. It is not ok unless it has each change from there at least up to a count: its text speaks for itself,
// whatever became of the string meanwhile.
func readLog(text string, from loadsPlace, upTo int64) (heads map[string]string, to loadsPlace, ok bool) {
	heads, to = map[string]string{}, from
	to.at += int64(len(text))
	for text != "" {
		entry, found := strings.CutPrefix(text, "\x1e")
		if !found {
			return nil, from, false
		}
		text = ""
		if end := strings.IndexByte(entry, '\x1e'); end >= 0 {
			entry, text = entry[:end], entry[end:]
		}
		count, rest, _ := strings.Cut(entry, " ")
		id, head, _ := strings.Cut(rest, " ")
		if to.count++; num(count) != to.count {
			return nil, from, false
		}
		heads[id] = head
	}
	return heads, to, to.count >= upTo
}

// member finds a member of a set that is being made; nil if it is not there.
func (m *memberSet) member(id string) *subcluster.Record {
	at, ok := slices.BinarySearchFunc(m.list, creel.SubclusterID(id), byID)
	if !ok {
		return nil
	}
	return &m.list[at]
}

// setLoad gives a member a load that was read.
func setLoad(r *subcluster.Record, load string) {
	if load != r.Load {
		r.Load, r.Parsed = load, nil
	}
}

// take replaces members: columns of record, epoch, registered, drain, deregistered, and
// "place epoch". A record that cannot be read is a problem told, it does not
// blind us to the others.
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
		if err == nil && (is.ID != id || num(changed.at(2, i)) != is.Epoch) {
			err = fmt.Errorf("it belongs to %q, epoch %d", is.ID, is.Epoch)
		}
		if err != nil {
			if known {
				m.list = slices.Delete(m.list, at, at+1)
			}
			if record != "" { // else it was removed
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
		if place, epoch, _ := strings.Cut(changed.at(6, i), " "); epoch == changed.at(2, i) {
			m.places[id] = int(num(place))
		} else {
			m.uncounted = append(m.uncounted, id)
		}
	}
}

// columnSet is what a script says of members: their ids, then columns beside.
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

// at is "" where there is nothing.
func (c columnSet) at(column, line int) string {
	if column >= len(c) || line >= len(c[column]) {
		return ""
	}
	return str(c[column][line])
}

// parse reads the loads that the set before has not, once for all who look through this
// store. One that cannot be read is left to them, who say why.
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
