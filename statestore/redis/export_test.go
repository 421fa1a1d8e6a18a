// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"

	"github.com/creelrm/creel"
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
func ParseMembers(id, record, epoch, heartbeat, load string) (int, []string) {
	one := func(v string) any { return []any{id, v} }
	list, problems := parseMembers(
		[]any{one(record), one(epoch), one(heartbeat), one(heartbeat), one(load), []any{}, []any{}},
	)
	return len(list), problems
}

// ParseConfig reads a URL.
func ParseConfig(url string) (Config, error) {
	c := Config{URL: url}
	_, err := c.parse()
	return c, err
}

// Member of a parsed home.
func (h home) Member() creel.SubclusterID { return h.member }
