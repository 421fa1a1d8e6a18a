// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	goredis "github.com/redis/go-redis/v9"
)

// ClaimCommand is what the store sends for a claim, for benchmarks that send it
// with nothing around it.
func (s *Store) ClaimCommand(app creel.ApplicationID, member creel.SubclusterID) []any {
	id, err := s.known(context.Background())
	if err != nil {
		panic(err)
	}
	t, p := s.apps(), ofApp(app)
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

// ReadAllNext is what a subscriber does that heard of a change of the members.
func (s *Store) ReadAllNext() { s.readAllNext() }

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
	columns := func(texts ...string) (columns []any) {
		for _, text := range texts {
			columns = append(columns, []any{text})
		}
		return columns
	}
	m := (&memberSet{}).with([]any{
		heartbeat, columns(id, heartbeat), columns(id)[0], columns(id, record, epoch, heartbeat, "", "", "0 "+epoch), "all",
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

// Looker reads records as RecordsOf does, and does not read what came: it stands for a
// proxy on another machine, whose processor time is not this one's.
type Looker struct {
	Store         *Store
	Queues        []string
	version       string
	identity      string
	changes, seen string
}

// Look returns the count of changes of members, and how many bytes of loads came.
func (l *Looker) Look(ctx context.Context) (changes int64, bytes int, err error) {
	before := &memberSet{inParts: true, queues: l.Queues, changes: l.changes, loads: l.seen}
	keys := l.Store.controls("meta", "m", "e", "b", "r", "d", "x", "v", "lv", "p", "mv", "t", "s")
	v, err := l.Store.do(ctx, reading(recordsScript, keys, l.version, l.identity, l.changes, l.seen))
	if err != nil {
		return 0, 0, err
	}
	list := v.([]any)
	l.identity, l.version, l.changes, l.seen = str(list[2]), str(list[3]), str(list[4]), str(list[5])
	before.due = columns(list[7]).of(2)
	for _, id := range before.due { // else what comes is nobody's, and read whole
		before.list = append(before.list, subcluster.Record{Member: subcluster.Member{ID: creel.SubclusterID(id), Epoch: 1}})
	}
	slices.SortFunc(before.list, func(a, b subcluster.Record) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if err := l.Store.readLoads(ctx, before); err != nil {
		return 0, 0, err
	}
	for i := range before.list {
		bytes += len(before.list[i].Load)
	}
	return num(list[4]), bytes, nil
}
