// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel/statestore"
)

// Live daemons. Hash dm by id: "life-us record". Sorted sets: dn, all of score 0, orders the ids; dx has their expiry
// times. Renewing an unchanged daemon writes to dx alone; each renewal removes up to 16 expired daemons.
var (
	// KEYS dm dn dx; ARGV[5] id, [6] life us, [7] record, [8] most records.
	keepDaemonScript = newScript("keep_daemon", guard+clock+`
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', string.format('%d', us), 'LIMIT', 0, 16)) do
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[4], id)
end
local rec = ARGV[6] .. ' ' .. ARGV[7]
local is = redis.call('HGET', KEYS[2], ARGV[5])
if not is then
  if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[8]) then return {'FULL'} end
  redis.call('ZADD', KEYS[3], 0, ARGV[5])
end
if is ~= rec then redis.call('HSET', KEYS[2], ARGV[5], rec) end
redis.call('ZADD', KEYS[4], string.format('%d', us + tonumber(ARGV[6])), ARGV[5])
return {'OK'}`)

	// KEYS dm dn dx; ARGV[5] id.
	dropDaemonScript = newScript("drop_daemon", allowOOM+guard+`
redis.call('HDEL', KEYS[2], ARGV[5])
redis.call('ZREM', KEYS[3], ARGV[5])
redis.call('ZREM', KEYS[4], ARGV[5])
return {'OK'}`)

	// KEYS dm dn dx; ARGV[1] start, [2] limit.
	daemonsScript = newScript("daemons", noWrites+`
local t = redis.call('TIME')
local ids = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], '+', 'LIMIT', 0, ARGV[2])
if #ids == 0 then return {t[1], t[2], ids, {}, {}} end
return {t[1], t[2], ids, redis.call('HMGET', KEYS[1], unpack(ids)), redis.call('ZMSCORE', KEYS[3], unpack(ids))}`)
)

// daemonWrite runs a script on the daemons' records. It waits for no replica.
func (s *Store) daemonWrite(ctx context.Context, sc *script, args ...any) ([]any, error) {
	c := s.writing(ctx, sc, s.control("guard"), "", s.controls("dm", "dn", "dx"), args)
	c.write = false
	v, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return refusal(ctx, v)
}

// KeepDaemon implements statestore.Daemons.
func (s *Store) KeepDaemon(ctx context.Context, d statestore.Daemon, life time.Duration) error {
	record, err := statestore.EncodeDaemon(d, life)
	if err != nil {
		return err
	}
	list, err := s.daemonWrite(ctx, keepDaemonScript, d.ID(), life.Microseconds(), record, statestore.MaxDaemons)
	switch {
	case err != nil:
		return err
	case list[0] == "FULL":
		return statestore.TooManyDaemons(d)
	case list[0] != "OK":
		return surprise(list)
	}
	return nil
}

// DropDaemon implements statestore.Daemons.
func (s *Store) DropDaemon(ctx context.Context, d statestore.Daemon) error {
	if err := statestore.CheckDaemon(&d); err != nil {
		return err
	}
	_, err := s.daemonWrite(ctx, dropDaemonScript, d.ID())
	return err
}

// Daemons implements statestore.Daemons.
func (s *Store) Daemons(ctx context.Context, cursor string, limit int) (
	page []statestore.LiveDaemon, next string, err error,
) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	from := "-"
	if cursor != "" {
		from = "(" + cursor
	}
	v, err := s.do(ctx, reading(daemonsScript, s.controls("dm", "dn", "dx"), from, limit))
	if err != nil {
		return nil, "", err
	}
	list, _ := v.([]any)
	ids, _ := at(list, 2).([]any)
	records, _ := at(list, 3).([]any)
	expires, _ := at(list, 4).([]any)
	if len(list) != 5 || len(records) != len(ids) || len(expires) != len(ids) {
		return nil, "", surprise(v)
	}
	now := serverTime(list)
	for i := range ids {
		life, record, _ := strings.Cut(str(records[i]), " ")
		us, err := strconv.ParseInt(life, 10, 64)
		if err != nil {
			return nil, "", surprise(records[i])
		}
		left := score(expires[i]).Sub(now)
		if left <= 0 {
			continue
		}
		d, err := statestore.ParseDaemon([]byte(record))
		if err != nil {
			return nil, "", err
		}
		page = append(page, statestore.LiveDaemon{Daemon: d, Age: time.Duration(us)*time.Microsecond - left})
	}
	if len(ids) == limit {
		next = str(ids[limit-1])
	}
	return page, next, nil
}

// score converts the score of a sorted set to a time; the score is in microseconds. RESP3 returns a float, RESP2
// text.
func score(v any) time.Time {
	us, ok := v.(float64)
	if !ok {
		us, _ = strconv.ParseFloat(str(v), 64)
	}
	return time.UnixMicro(int64(us))
}
