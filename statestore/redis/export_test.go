// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"maps"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	goredis "github.com/redis/go-redis/v9"
)

// ClaimCommand is the store's command for a claim, for benchmarks that send it bare.
func (s *Store) ClaimCommand(app creel.ApplicationID, member creel.SubclusterID) []any {
	id, err := s.known(context.Background())
	if err != nil {
		panic(err)
	}
	t, p := s.applications.table, ofApp(app)
	return s.writing(
		context.Background(),
		claimScript,
		s.shard(p.n, "guard"),
		id,
		[]string{t.bucket(p), t.index(p.n, member), t.placement(p)},
		[]any{p.field, string(member), p.index, ""},
	).args
}

// Client is the client below.
func (s *Store) Client() goredis.UniversalClient { return s.client }

// ReadAllNext does what a subscriber does after a change of the members.
func (s *Store) ReadAllNext() { s.readAllNext() }

// ReasonAfter is the error that is reported after two failed tries.
var ReasonAfter = reasonAfter

// Parsers for fuzzing.
var (
	ParseHome   = parseHome
	ParsePolicy = parsePolicy
	ParseKey    = parseKey
	ParseLease  = parseLease
	ParseChange = parseChange
	Unlocate    = unlocate
)

// ParseMembers joins one member's fields as Records does.
func ParseMembers(id, record, epoch, heartbeat string) (int, []string) {
	columns := func(texts ...string) (set columnSet) {
		for _, text := range texts {
			set = append(set, []any{text})
		}
		return set
	}
	m := (&memberSet{}).with(recordsReply{
		times: heartbeat, loads: []string{id}, all: true,
		changed: columns(id, record, epoch, heartbeat, "", "", "0 "+epoch),
	})
	return len(m.list), slices.Sorted(maps.Values(m.problems))
}

// ParseConfig reads a URL.
func ParseConfig(url string) (Config, error) {
	c := Config{URL: url}
	_, err := c.parse()
	return c, err
}

// Member of a parsed home.
func (h home) Member() creel.SubclusterID { return h.member }

// Looker reads records as RecordsOf does, and does not parse the answers: it stands for a proxy on another machine,
// whose processor time does not count here.
type Looker struct {
	Store    *Store
	Queues   []string
	policies policySet
	changes  string
	seen     logPlace
}

// Look returns the count of changes of members, and how many bytes of loads came, if they are
// wanted.
func (l *Looker) Look(ctx context.Context, loads bool) (changes int64, bytes int, err error) {
	m := &memberSet{inParts: true, queues: l.Queues, changes: l.changes, loads: l.seen}
	is, reported, seen, err := l.Store.look(ctx, &l.policies, m, loads)
	if err != nil {
		return 0, 0, err
	}
	l.policies = policySet{identity: is.identity, version: is.policyVersion}
	l.changes, l.seen = is.changes, seen
	for _, entries := range reported {
		for _, e := range entries {
			bytes += len(e.text)
		}
	}
	m.due = slices.Sorted(slices.Values(is.loads))
	for _, id := range m.due { // else the loads belong to no known member, and are read whole
		m.list = append(m.list, subcluster.Record{Member: subcluster.Member{ID: creel.SubclusterID(id), Epoch: 1}})
	}
	if err := l.Store.readLoads(ctx, m, nil); err != nil {
		return 0, 0, err
	}
	for i := range m.list {
		bytes += len(m.list[i].Load)
	}
	return num(is.changes), bytes, nil
}
