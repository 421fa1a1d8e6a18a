// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// Delegation tokens of routers. Hash dt by number: "issued-ms most-ms expires-ms record"; field "" is the newest
// number. Sorted set de has the expiry times; each issue removes up to 16 expired tokens.
var (
	// KEYS dt de; ARGV[5] record, [6] life ms, [7] most ms.
	issueTokenScript = newScript("issue_token", guard+clock+`
for _, n in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('%d', ms), 'LIMIT', 0, 16)) do
  redis.call('HDEL', KEYS[2], n)
  redis.call('ZREM', KEYS[3], n)
end
local n = redis.call('HINCRBY', KEYS[2], '', 1)
local most = ms + tonumber(ARGV[7])
local expires = math.min(ms + tonumber(ARGV[6]), most)
local rec = string.format('%d %d %d ', ms, most, expires) .. ARGV[5]
redis.call('HSET', KEYS[2], n, rec)
redis.call('ZADD', KEYS[3], expires, n)
return {'OK', n, rec}`)

	// KEYS dt; ARGV[1] number. It returns the record, "" if it is missing or expired.
	tokenScript = newScript("token", noWrites+clock+`
local rec = redis.call('HGET', KEYS[1], ARGV[1])
if not rec or tonumber(string.match(rec, '^%d+ %d+ (%d+) ')) <= ms then return '' end
return rec`)

	// KEYS dt de; ARGV[5] number, [6] life ms.
	renewTokenScript = newScript("renew_token", allowOOM+guard+clock+`
local cur = redis.call('HGET', KEYS[2], ARGV[5])
local issued, most, expires, rec
if cur then issued, most, expires, rec = string.match(cur, '^(%d+) (%d+) (%d+) (.*)$') end
if not cur or tonumber(expires) <= ms then touch() return {'NONE'} end
expires = math.min(ms + tonumber(ARGV[6]), tonumber(most))
local new = issued .. ' ' .. most .. string.format(' %d ', expires) .. rec
redis.call('HSET', KEYS[2], ARGV[5], new)
redis.call('ZADD', KEYS[3], expires, ARGV[5])
return {'OK', new}`)

	// KEYS dt de; ARGV[5] number.
	dropTokenScript = newScript("drop_token", allowOOM+guard+`
if redis.call('HDEL', KEYS[2], ARGV[5]) == 0 then touch() end
redis.call('ZREM', KEYS[3], ARGV[5])
return {'OK'}`)
)

// tokenRecord is the unchanging part of a token.
type tokenRecord struct {
	Owner    string `json:"owner"`
	Renewer  string `json:"renewer,omitempty"`
	RealUser string `json:"real_user,omitempty"`
}

func parseToken(number int32, text string) (statestore.Token, error) {
	p := strings.SplitN(text, " ", 4)
	var r tokenRecord
	if len(p) != 4 || json.Unmarshal([]byte(p[3]), &r) != nil || r.Owner == "" {
		return statestore.Token{}, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "delegation token " + strconv.Itoa(int(number)) + " in the state store cannot be read",
			Why:  strconv.Quote(firstLine(text)),
			Try:  "check that no other program writes under this prefix",
		}
	}
	return statestore.Token{
		Number: number, Owner: r.Owner, Renewer: r.Renewer, RealUser: r.RealUser,
		Issued: time.UnixMilli(num(p[0])), Most: time.UnixMilli(num(p[1])), Expires: time.UnixMilli(num(p[2])),
	}, nil
}

// IssueToken implements statestore.Tokens.
func (s *Store) IssueToken(
	ctx context.Context, t statestore.Token, life, most time.Duration,
) (statestore.Token, error) {
	if err := statestore.CheckToken(t, life, most); err != nil {
		return statestore.Token{}, err
	}
	record, err := json.Marshal(tokenRecord{t.Owner, t.Renewer, t.RealUser})
	if err != nil {
		return statestore.Token{}, err
	}
	list, err := s.write(
		ctx, issueTokenScript, s.controls("dt", "de"), record, life.Milliseconds(), most.Milliseconds())
	if err != nil {
		return statestore.Token{}, err
	}
	if list[0] != "OK" {
		return statestore.Token{}, surprise(list)
	}
	return parseToken(int32(num(at(list, 1))), str(at(list, 2)))
}

// Token implements statestore.Tokens.
func (s *Store) Token(ctx context.Context, number int32) (statestore.Token, error) {
	v, err := s.do(ctx, reading(tokenScript, []string{s.control("dt")}, strconv.Itoa(int(number))))
	if err != nil {
		return statestore.Token{}, err
	}
	text, ok := v.(string)
	if !ok {
		return statestore.Token{}, surprise(v)
	}
	if text == "" {
		return statestore.Token{}, statestore.NoToken(number)
	}
	return parseToken(number, text)
}

// RenewToken implements statestore.Tokens.
func (s *Store) RenewToken(ctx context.Context, number int32, life time.Duration) (statestore.Token, error) {
	if err := statestore.CheckTTL(life); err != nil {
		return statestore.Token{}, err
	}
	list, err := s.write(ctx, renewTokenScript, s.controls("dt", "de"), strconv.Itoa(int(number)), life.Milliseconds())
	if err != nil {
		return statestore.Token{}, err
	}
	switch list[0] {
	case "OK":
		return parseToken(number, str(at(list, 1)))
	case "NONE":
		return statestore.Token{}, statestore.NoToken(number)
	}
	return statestore.Token{}, surprise(list)
}

// DropToken implements statestore.Tokens.
func (s *Store) DropToken(ctx context.Context, number int32) error {
	_, err := s.write(ctx, dropTokenScript, s.controls("dt", "de"), strconv.Itoa(int(number)))
	return err
}
