// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"crypto/sha1" // Redis identifies scripts by it; it has no security purpose
	"encoding/hex"
)

// script is a Lua script, its hash, and its name in metrics.
type script struct {
	source, hash, name string
	// recording is the script that also records an event, nil if it cannot.
	recording *script
}

func newScript(name, source string) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, hash: hex.EncodeToString(sum[:]), name: name}
}

// One script per promise. Every script that writes begins with the guard:
//
//	KEYS[1]  guard hash of the slot: "@" is the store's identity, ":name" the
//	         newest token of a lease
//	ARGV[1]  ":name" of the lease that the write carries, or ""
//	ARGV[2]  its token
//	ARGV[3]  the identity known to the caller, or "" to skip the check
//	ARGV[4]  "1" if the answer must reach replicas (WAIT): an answer that
//	         changes nothing still writes then, so that WAIT waits for it
//
// A rejection is an array that begins with a word. Times are us and ms since the epoch, by the server's clock, and
// hexadecimal in homes.
const (
	guard = `
local g = redis.call('HMGET', KEYS[1], '@', ARGV[1])
if ARGV[3] ~= '' and g[1] ~= ARGV[3] then return {'EMPTY', g[1] or ''} end
local function touch() if ARGV[4] == '1' then redis.call('HSET', KEYS[1], '!', '1') end end
if g[2] and tonumber(g[2]) > tonumber(ARGV[2]) then touch() return {'FENCED', g[2]} end
`
	// clock reads the server's time; us and ms stay exact in a double until the year 2255.
	clock = `
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local ms = math.floor(us / 1000)
`
	allowOOM = "#!lua flags=allow-oom\n"
	noWrites = "#!lua flags=no-writes\n"
)

// Homes. KEYS[2] bucket, ARGV[5] field in it; a value is "home claimed-seconds [ends-ms]". The field with suffix n is
// the number of the newest claim; it is absent for number 1. The field with suffix w records the answers of a home that
// cannot disown: "since-ms told number:seen-ms ...", decimal (statestore.Applications.Absent). The field with suffix e
// is the time in ms, hexadecimal, at which the home reported the end. The field with suffix a is
// "home claimed-seconds life", the life in ms, hexadecimal, of the home that accepted it
// (statestore.Applications.Accept). It applies only to a value with
// the same beginning: routers that do not know the field leave it behind.
//
// Placements have a separate hash with the same fields, because they are longer than Redis' limit for compact hashes.
// Routers without placements leave them behind when they drop a home; they are deleted with the last home of the
// bucket.
var (
	// KEYS[3] index of the member, [4] placements; ARGV[6] member, [7] id in the index, [8] placement or "". It
	// returns 1 if it made the home, else the home's value and the claim's number.
	claimScript = newScript("claim", guard+`
local v = redis.call('HGET', KEYS[2], ARGV[5])
if v then
  local ends = string.match(v, ' %x+ (%x+)$')
  if ends then `+clock+`
    if ms >= tonumber(ends, 16) then return {'OVER', v} end
  end
  local n = redis.call('HINCRBY', KEYS[2], ARGV[5] .. 'n', 1)
  if n == 1 then n = redis.call('HINCRBY', KEYS[2], ARGV[5] .. 'n', 1) end
  return {'HOME', v, n}
end
v = ARGV[6] .. ' ' .. string.format('%x', redis.call('TIME')[1])
redis.call('HSET', KEYS[2], ARGV[5], v)
redis.call('ZADD', KEYS[3], 0, ARGV[7])
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[4], ARGV[5], ARGV[8])
else
  redis.call('HDEL', KEYS[4], ARGV[5])
end
return 1`)

	// KEYS[3] ended, [4] index of the home, [5] UAM records, [6] placements; ARGV[6] value as it was read, [7] id.
	// Removes expired records.
	dropScript = newScript("drop", allowOOM+guard+clock+`
local v = redis.call('HGET', KEYS[2], ARGV[5])
if not v then redis.call('ZREM', KEYS[3], ARGV[7]) return 0 end
local ends = string.match(v, ' %x+ (%x+)$')
if not ends then redis.call('ZREM', KEYS[3], ARGV[7]) return 0 end
if v ~= ARGV[6] or ms < tonumber(ends, 16) then return 0 end
redis.call('HDEL', KEYS[2], ARGV[5], ARGV[5] .. 'n', ARGV[5] .. 'w', ARGV[5] .. 'e', ARGV[5] .. 'a')
redis.call('ZREM', KEYS[3], ARGV[7])
redis.call('ZREM', KEYS[4], ARGV[7])
redis.call('UNLINK', KEYS[5])
if redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('HDEL', KEYS[6], ARGV[5])
else
  redis.call('UNLINK', KEYS[6])
end
return 1`)

	// KEYS[3] index of from, [4] index of to, [5] placements; ARGV[6] from, [7] to, [8] id, [9]
	// channel or "", [10] printed id, [11] number or 0, [12] placement or "".
	moveScript = newScript("move", guard+clock+`
local v = redis.call('HGET', KEYS[2], ARGV[5])
if not v then touch() return {'NONE'} end
local home, rest = string.match(v, '^(%S+)( .*)$')
local ends = string.match(rest, ' %x+ (%x+)$')
if ends and ms >= tonumber(ends, 16) then touch() return {'NONE'} end
if home == ARGV[7] and ARGV[11] == '0' then touch() return {'IS', home} end
if home ~= ARGV[6] then touch() return {'OTHER', home} end
local n = tonumber(redis.call('HGET', KEYS[2], ARGV[5] .. 'n') or '1')
if ARGV[11] ~= '0' and n ~= tonumber(ARGV[11]) then touch() return {'OTHER', home} end
redis.call('HSET', KEYS[2], ARGV[5], ARGV[7] .. rest, ARGV[5] .. 'n', n + 1)
redis.call('HDEL', KEYS[2], ARGV[5] .. 'w', ARGV[5] .. 'e', ARGV[5] .. 'a')
redis.call('ZREM', KEYS[3], ARGV[8])
redis.call('ZADD', KEYS[4], 0, ARGV[8])
if ARGV[12] ~= '' then
  redis.call('HSET', KEYS[5], ARGV[5], ARGV[12])
else
  redis.call('HDEL', KEYS[5], ARGV[5])
end
if ARGV[9] ~= '' then redis.call('PUBLISH', ARGV[9], 'h ' .. ARGV[10]) end
return {'IS', ARGV[7]}`)

	// ARGV[6] home, [7] claim's number, [8] "1" if its call surely ended, [9] limit of open claims. It is
	// denials.record of package statestore in Lua.
	absentScript = newScript("absent", guard+clock+`
local v = redis.call('HGET', KEYS[2], ARGV[5])
if not v then touch() return {'NONE'} end
local home, ends = string.match(v, '^(%S+) %x+ ?(%x*)$')
if ends ~= '' and ms >= tonumber(ends, 16) then touch() return {'NONE'} end
if home ~= ARGV[6] then touch() return {'OTHER', home} end
local number, most = tonumber(ARGV[7]), tonumber(ARGV[9])
local since, told, open = ms, number, {}
local w = redis.call('HGET', KEYS[2], ARGV[5] .. 'w')
if w then
  local a, b, rest = string.match(w, '^(%d+) (%d+)(.*)$')
  since, told = tonumber(a), tonumber(b)
  for n, seen in string.gmatch(rest, ' (%d+):(%d+)') do open[#open + 1] = {tonumber(n), tonumber(seen)} end
end
if number - told - 1 + #open > most then
  since, told, open = ms, number, {}
end
while told < number do
  if told + 1 < number then open[#open + 1] = {told + 1, ms} end
  told = told + 1
end
if ARGV[8] ~= '1' then since = ms end
local from, out = since, {}
for _, o in ipairs(open) do
  if o[1] ~= number then
    out[#out + 1] = string.format(' %.0f:%.0f', o[1], o[2])
    if o[2] > from then from = o[2] end
  end
end
redis.call('HSET', KEYS[2], ARGV[5] .. 'w', string.format('%.0f %.0f', since, told) .. table.concat(out))
local waited = ms - from
if waited < 0 then waited = 0 end
return {'WAITED', waited}`)

	// ARGV[6] home, [7] life ms.
	acceptScript = newScript("accept", guard+clock+`
local v = redis.call('HGET', KEYS[2], ARGV[5])
if not v then touch() return {'NONE'} end
local begins, home, ends = string.match(v, '^((%S+) %x+) ?(%x*)$')
if ends ~= '' and ms >= tonumber(ends, 16) then touch() return {'NONE'} end
if home ~= ARGV[6] then touch() return {'OTHER', home} end
local was, life = string.match(redis.call('HGET', KEYS[2], ARGV[5] .. 'a') or '', '^(.*) (%x+)$')
if was == begins and tonumber(life, 16) >= tonumber(ARGV[7]) then touch() return {'OK'} end
redis.call('HSET', KEYS[2], ARGV[5] .. 'a', begins .. ' ' .. string.format('%x', ARGV[7]))
return {'OK'}`)

	// KEYS[3] ended; ARGV[6] home, [7] ttl ms, [8] id, [9] channel or "", [10] printed id.
	forgetScript = newScript("forget", allowOOM+guard+clock+`
local v = redis.call('HGET', KEYS[2], ARGV[5])
if not v then touch() return {'OK'} end
local home, claimed, ends = string.match(v, '^(%S+) (%x+) ?(%x*)$')
if ends ~= '' and ms >= tonumber(ends, 16) then touch() return {'OK'} end
if home ~= ARGV[6] then touch() return {'OTHER', home} end
if ARGV[7] ~= '0' then redis.call('HSETNX', KEYS[2], ARGV[5] .. 'e', string.format('%x', ms)) end
local at = ms + tonumber(ARGV[7])
if ends ~= '' and tonumber(ends, 16) <= at then touch() return {'OK'} end
redis.call('HSET', KEYS[2], ARGV[5], home .. ' ' .. claimed .. ' ' .. string.format('%x', at))
redis.call('ZADD', KEYS[3], at, ARGV[8])
if ARGV[9] ~= '' then redis.call('PUBLISH', ARGV[9], 'h ' .. ARGV[10]) end
return {'OK'}`)
)

// UAMRecords. KEYS[2] hash of the application: "<attempt>" and "<attempt>r", and in "dr" the latest attempt whose
// record was dropped. A hash with only "dr" expires.
var (
	// ARGV[5] attempt, [6] expected revision, [7] record.
	saveUAMRecordScript = newScript("save_uamrecord", guard+`
local is = tonumber(redis.call('HGET', KEYS[2], ARGV[5] .. 'r') or '0')
local expect = tonumber(ARGV[6])
if is == expect + 1 and redis.call('HGET', KEYS[2], ARGV[5]) == ARGV[7] then touch() return {'OK', is} end
if is ~= expect then touch() return {'OTHER', is} end
if is == 0 then
  local dropped = redis.call('HGET', KEYS[2], 'dr')
  if dropped and tonumber(ARGV[5]) <= tonumber(dropped) then touch() return {'DROPPED'} end
  if dropped then redis.call('PERSIST', KEYS[2]) end
end
redis.call('HSET', KEYS[2], ARGV[5], ARGV[7], ARGV[5] .. 'r', expect + 1)
return {'OK', expect + 1}`)

	// ARGV[5] attempt, [6] ms for which the drop is remembered.
	dropUAMRecordScript = newScript("drop_uamrecord", allowOOM+guard+`
touch()
redis.call('HDEL', KEYS[2], ARGV[5], ARGV[5] .. 'r')
local dropped = tonumber(redis.call('HGET', KEYS[2], 'dr') or '0')
redis.call('HSET', KEYS[2], 'dr', math.max(dropped, tonumber(ARGV[5])))
if redis.call('HLEN', KEYS[2]) == 1 then redis.call('PEXPIRE', KEYS[2], ARGV[6]) end
return {'OK'}`)
)

// Members. Hashes by id: m record, e epoch, b last heartbeat us, r registered us, l load, d drain reason, x
// deregistered. A load that was cut adds: h has "epoch head", qn the leaf names of its queues, a line each, and
// q:<leaf> its rows. A head of another epoch remained when a creel without parts took over: then the load is read
// whole.
//
// The logs have each change of a load: log:<generation> for heads, log:<generation>:<leaf> for rows. An entry is
// "\x1ecount id epoch rows"; without rows they are gone, without a head the load is read whole. All entries of a log
// are one string, so that readers fetch them from their last offset. Each change is in the log of heads. Fields of v:
// "@g" is the generation, one higher than the previous one; the first is the clock's microsecond. "@b" is the count and
// the us of its start. Older creel releases append nothing to logs, which readers notice as a missing count.
//
// A member's epoch only rises. s has the highest registered epoch, written in the same step as the record. If the
// record and e have a lower one, something else restored them (subcluster.Record.Superseded).
//
// Heartbeats are also in the string t, 16 digits each, so that readers fetch them in one command. s has the places, as
// "place epoch" by id, and the next free place in field "@".
//
// A read returns the changes since the reader's last read. Hash v counts the changes of loads (field "@l") and all
// other changes except heartbeats ("@m"). Sorted sets lv and mv have each member's count at its last change. Older
// creel releases count nothing, or not in mv. They publish "m" without the count; readers then read everything. A
// member whose epoch is in s runs a current process; readers request the loads and heartbeats of all others by name.
// (Older readers look in v instead, which has the epoch by id.)
var (
	// KEYS m e b r l x v mv t s h; ARGV[5] id, [6] epoch, [7] record, [8] channel.
	registerScript = newScript("register", guard+clock+`
local e = redis.call('HGET', KEYS[3], ARGV[5])
local s = redis.call('HGET', KEYS[11], ARGV[5]) or ''
`+stale+`
if e and e ~= ARGV[6] then redis.call('HDEL', KEYS[6], ARGV[5]) redis.call('HDEL', KEYS[12], ARGV[5]) end
local at = string.format('%016d', us)
local place = string.match(s, '^%d+')
if not place then place = redis.call('HINCRBY', KEYS[11], '@', 1) - 1 end
redis.call('HSET', KEYS[11], ARGV[5], string.format('%d %s', place, ARGV[6]))
redis.call('SETRANGE', KEYS[10], 16 * place, at)
redis.call('HSET', KEYS[2], ARGV[5], ARGV[7])
redis.call('HSET', KEYS[3], ARGV[5], ARGV[6])
redis.call('HSET', KEYS[4], ARGV[5], at)
redis.call('HSET', KEYS[5], ARGV[5], at)
redis.call('HDEL', KEYS[7], ARGV[5])
redis.call('HSET', KEYS[8], ARGV[5], ARGV[6])
`+changed("KEYS[8]", "KEYS[9]", "ARGV[8]")+`
return {'OK'}`)

	// KEYS m e b x n; ARGV[5] id, [6] previous epoch, [7] "1" to take over, [8] default lease ns. n
	// is the newest issued epoch.
	nextEpochScript = newScript("next_epoch", guard+clock+`
local e = redis.call('HGET', KEYS[3], ARGV[5])
local m = redis.call('HGET', KEYS[2], ARGV[5])
if e and m and tonumber(e) > tonumber(ARGV[6]) and ARGV[7] ~= '1' and redis.call('HEXISTS', KEYS[5], ARGV[5]) == 0 then
  local lease = cjson.decode(m).lease or 0
  if lease <= 0 then lease = tonumber(ARGV[8]) end
  local age = us - tonumber(redis.call('HGET', KEYS[4], ARGV[5]) or '0')
  if age <= lease / 1000 then touch() return {'ALIVE', e, string.format('%d', age)} end
end
local n = math.max(tonumber(redis.call('HGET', KEYS[6], ARGV[5]) or '0'), tonumber(e or '0'), tonumber(ARGV[6]), ms) + 1
n = string.format('%d', n)
redis.call('HSET', KEYS[6], ARGV[5], n)
return {'OK', n}`)

	// KEYS e b l x m v lv h qn t s, then q:leaf for the rows; ARGV[5] id, [6] epoch, [7] load or "", [8] head or "",
	// [9] leaf names if none is left out, [10] the key prefix of a leaf and [11] of a log, then rows. A member
	// registers again if its record is gone, even if the other keys exist.
	//
	// A generation of logs also ends after a minute, so that logs of unused leaf names can expire after five minutes.
	// The log of heads exists as long as any log that is still read.
	heartbeatScript = newScript("heartbeat", allowOOM+guard+clock+`
local id, head = ARGV[5], ARGV[8]
local e, s = redis.call('HGET', KEYS[2], id), redis.call('HGET', KEYS[12], id) or ''
`+stale+`
if e ~= ARGV[6] or redis.call('HEXISTS', KEYS[5], id) == 1 or redis.call('HEXISTS', KEYS[6], id) == 0 then
  touch()
  return {'NONE'}
end
local at = string.format('%016d', us)
redis.call('HSET', KEYS[3], id, at)
local place = string.match(s, '^%d+')
if place then redis.call('SETRANGE', KEYS[11], 16 * place, at) end
if ARGV[7] == '' then return {'OK'} end
if head ~= '' and ARGV[9] == '' then
  local was = redis.call('HGET', KEYS[9], id) or ''
  if string.sub(was, 1, #e + 1) ~= e .. ' ' then head = '' end
end
local log = function() end
if redis.call('HGET', KEYS[4], id) ~= ARGV[7] then
  redis.call('HSET', KEYS[4], id, ARGV[7])
  local count = redis.call('HINCRBY', KEYS[7], '@l', 1)
  redis.call('ZADD', KEYS[8], count, id)
  local v = redis.call('HMGET', KEYS[7], '@g', '@b')
  local generation = tonumber(v[1] or us - 1)
  local first, began = string.match(v[2] or '', '^(%d+) (%d+)$')
  local most = math.max(128, 2 * redis.call('HLEN', KEYS[6]))
  if not first or count - first >= most or us - began > 60000000 or us < tonumber(began) then
    generation = generation + 1
    redis.call('HSET', KEYS[7], '@g', string.format('%d', generation), '@b', string.format('%d %d', count, us))
  end
  local now, before = string.format('%s%d:', ARGV[11], generation), string.format('%s%d:', ARGV[11], generation - 2)
  local mark = string.format('\30%d %s %s ', count, id, e)
  log = function(leaf, text)
    local entry = mark .. text
    if redis.call('APPEND', now .. leaf, entry) == #entry then
      redis.call('PEXPIRE', now .. leaf, 300000)
      redis.call('UNLINK', before .. leaf)
    end
  end
end
log('', head)
if head == '' then
  redis.call('HDEL', KEYS[9], id)
else
  local names = redis.call('HGET', KEYS[10], id) or ''
  if ARGV[9] ~= '' and ARGV[9] ~= names then
    local now = {}
    for leaf in string.gmatch(ARGV[9], '[^\n]+') do now[leaf] = true end
    for leaf in string.gmatch(names, '[^\n]+') do
      if not now[leaf] then
        redis.call('HDEL', ARGV[10] .. leaf, id)
        log(leaf, '')
      end
    end
    redis.call('HSET', KEYS[10], id, ARGV[9])
  end
  for i = 13, #KEYS do
    redis.call('HSET', KEYS[i], id, ARGV[i - 1])
    log(string.sub(KEYS[i], #ARGV[10] + 1), ARGV[i - 1])
  end
  redis.call('HSET', KEYS[9], id, e .. ' ' .. head)
end
return {'OK'}`)

	// KEYS e d v mv; ARGV[5] id, [6] reason, [7] channel.
	drainScript = newRecordingScript("drain", guard+`
if redis.call('HEXISTS', KEYS[2], ARGV[5]) == 0 then touch() return {'NONE'} end
if ARGV[6] == '' then redis.call('HDEL', KEYS[3], ARGV[5]) touch()
else redis.call('HSET', KEYS[3], ARGV[5], ARGV[6]) end
`+changed("KEYS[4]", "KEYS[5]", "ARGV[7]")+`
return {'OK'}`)

	// KEYS e x v mv; ARGV[5] id, [6] epoch, [7] channel.
	deregisterScript = newRecordingScript("deregister", allowOOM+guard+`
local e = redis.call('HGET', KEYS[2], ARGV[5])
if e and tonumber(e) > tonumber(ARGV[6]) then touch() return {'STALE', e} end
if e ~= ARGV[6] then touch() return {'NONE'} end
redis.call('HSET', KEYS[3], ARGV[5], '1')
`+changed("KEYS[4]", "KEYS[5]", "ARGV[7]")+`
return {'OK'}`)

	// KEYS m e b r l d x v lv mv h qn s; ARGV[5] id, [6] default lease ns, [7] channel, [8] key prefix of a leaf.
	removeScript = newRecordingScript("remove", allowOOM+guard+clock+`
local m = redis.call('HGET', KEYS[2], ARGV[5])
if not m then touch() return {'OK'} end
if redis.call('HEXISTS', KEYS[8], ARGV[5]) == 0 then
  local lease = cjson.decode(m).lease or 0
  if lease <= 0 then lease = tonumber(ARGV[6]) end
  if us - tonumber(redis.call('HGET', KEYS[4], ARGV[5]) or '0') <= 3 * lease / 1000 then touch() return {'OTHER'} end
end
for i = 2, 9 do redis.call('HDEL', KEYS[i], ARGV[5]) end
redis.call('ZREM', KEYS[10], ARGV[5])
for leaf in string.gmatch(redis.call('HGET', KEYS[13], ARGV[5]) or '', '[^\n]+') do
  redis.call('HDEL', ARGV[8] .. leaf, ARGV[5])
end
redis.call('HDEL', KEYS[12], ARGV[5])
redis.call('HDEL', KEYS[13], ARGV[5])
redis.call('HDEL', KEYS[14], ARGV[5])
`+changed("KEYS[9]", "KEYS[11]", "ARGV[7]")+`
return {'OK'}`)

	// KEYS meta m e b r d x v lv p mv s; ARGV[1] policy version and [2] identity that the caller has: if they are the
	// same, policies are left out. [3] and [4] are the caller's counts of v. If the changes since [3] are known, it
	// returns them, the members whose loads have changed since [4], and the members in [5] and after. Otherwise, and if
	// [3] is '', it returns all members. [4] may be followed by the generation of logs that the caller reads: it lists
	// no loads while this generation or the next one continues. Without changes it returns early, as in most checks.
	//
	// Members are returned as columns: ids, then the fields of the hashes. Plain commands read the loads, and t,
	// afterwards: they cost a third of a script that reads as much.
	recordsScript = newScript("records", noWrites+`
local t = redis.call('TIME')
local meta = redis.call('HMGET', KEYS[1], 'id', 'pv')
local v = redis.call('HMGET', KEYS[8], '@m', '@l', '@k', '@g')
local changes, generation = v[1] or '0', v[4] or '0'
local out = {t[1], t[2], meta[1] or '', meta[2] or '0', changes, (v[2] or '0') .. ' ' .. generation, v[3] or '0'}
local same = meta[1] == ARGV[2]
local since, reads = string.match(ARGV[4], '^(%d+) ?(%d*)$')
local behind = generation - (tonumber(reads) or generation + 2)
local logged = behind == 0 or behind == 1 or since == v[2]
if same and out[4] == ARGV[1] and changes == ARGV[3] and logged and #ARGV == 4 then return out end
local function column(key, ids)
  if #ids == 0 then return {} end
  return redis.call('HMGET', key, unpack(ids))
end
local function members(ids)
  local columns = {ids}
  for _, i in ipairs({2, 3, 5, 6, 7, 12}) do columns[#columns + 1] = column(KEYS[i], ids) end
  return columns
end
local changed
if same and ARGV[3] ~= '' then
  if changes == ARGV[3] then
    changed = {}
  else
    changed = redis.call('ZRANGEBYSCORE', KEYS[11], '(' .. ARGV[3], '+inf')
    if #changed == 0 then changed = nil end
  end
end
if changed then
  local named, loads = {}, {}
  for i = 5, #ARGV do named[i - 4] = ARGV[i] end
  if not logged then loads = redis.call('ZRANGEBYSCORE', KEYS[9], '(' .. since, '+inf') end
  out[8] = {{named, column(KEYS[4], named)}, loads, members(changed)}
else
  local all = redis.call('HKEYS', KEYS[2])
  out[8] = {{all, column(KEYS[4], all)}, all, members(all), 'all'}
end
if same and out[4] == ARGV[1] then return out end
out[9] = redis.call('HGETALL', KEYS[10])
return out`)
)

// stale rejects an epoch, ARGV[6], that is lower than the member's in e or s.
const stale = `
local newest = math.max(tonumber(e or '0') or 0, tonumber(string.match(s, '^%d+ (%d+)$') or '0'))
if newest > tonumber(ARGV[6]) then touch() return {'STALE', string.format('%d', newest)} end`

// changed ends a script that changes a member, ARGV[5]: it counts the change in v and mv, and publishes the count.
func changed(v, mv, channel string) string {
	return `local count = redis.call('HINCRBY', ` + v + `, '@m', 1)
redis.call('ZADD', ` + mv + `, count, ARGV[5])
redis.call('PUBLISH', ` + channel + `, 'm ' .. string.format('%d', count))`
}

// Policies. Hash p by queue and list of history: "version us record".
var putPolicyScript = newRecordingScript(
	"put_policy",
	// KEYS p meta history; ARGV[5] queue, [6] expected version, [7] record,
	// [8] channel, [9] versions kept.
	guard+clock+`
local cur = redis.call('HGET', KEYS[2], ARGV[5])
local is = cur and tonumber(string.match(cur, '^(%d+)')) or 0
local expect = tonumber(ARGV[6])
if is ~= expect then
  touch()
  if cur and string.match(cur, '^%d+ %d+ (.*)$') == ARGV[7] then
    local before = redis.call('LINDEX', KEYS[4], 1)
    if (before and tonumber(string.match(before, '^(%d+)')) or 0) == expect then return {'OK', cur} end
  end
  return {'OTHER', string.format('%d', is)}
end
local v = math.max(tonumber(redis.call('HGET', KEYS[3], 'pv') or '0') + 1, ms)
local version = string.format('%d', v)
local rec = version .. ' ' .. string.format('%d', us) .. ' ' .. ARGV[7]
redis.call('HSET', KEYS[2], ARGV[5], rec)
redis.call('HSET', KEYS[3], 'pv', version)
redis.call('LPUSH', KEYS[4], rec)
redis.call('LTRIM', KEYS[4], 0, tonumber(ARGV[9]) - 1)
redis.call('PUBLISH', ARGV[8], 'p ' .. version)
return {'OK', rec}`)

// Leases. Hash by name: "token expires-us holder".
var (
	// KEYS leases; ARGV[5] name, [6] holder, [7] ttl us.
	acquireScript = newScript("acquire", guard+clock+`
local cur = redis.call('HGET', KEYS[2], ARGV[5])
local token, expires, holder = 0, 0, ''
if cur then token, expires, holder = string.match(cur, '^(%d+) (%d+) (.*)$') end
token = tonumber(token)
if holder ~= '' and us < tonumber(expires) then
  if holder ~= ARGV[6] then touch() return {'OTHER', cur} end
else
  token = math.max(token + 1, us)
end
local new = string.format('%d %d ', token, us + tonumber(ARGV[7])) .. ARGV[6]
redis.call('HSET', KEYS[2], ARGV[5], new)
redis.call('HSET', KEYS[1], ':' .. ARGV[5], string.format('%d', token))
return {'OK', new}`)

	// ARGV[8] token; ttl 0 releases. A lower token is an earlier holder's, in a store that went back: the caller then
	// writes its own into all shards.
	renewScript = newScript("renew", allowOOM+guard+clock+`
local cur = redis.call('HGET', KEYS[2], ARGV[5])
local token, holder = '0', ''
if cur then token, holder = string.match(cur, '^(%d+) %d+ (.*)$') end
local older = tonumber(token) < tonumber(ARGV[8])
if not older and (token ~= ARGV[8] or holder ~= ARGV[6]) then touch() return {'OTHER', cur or ''} end
holder = ARGV[6]
if ARGV[7] == '0' then holder = '' end
local new = string.format('%s %d ', ARGV[8], us + tonumber(ARGV[7])) .. holder
redis.call('HSET', KEYS[2], ARGV[5], new)
return {older and 'BACK' or 'OK', new}`)

	holderScript = newScript("holder", noWrites+`
local t = redis.call('TIME')
return {t[1], t[2], redis.call('HGET', KEYS[1], ARGV[1]) or ''}`)

	// fence raises a lease's token in one slot. ARGV[5] field, [6] token.
	fenceScript = newScript("fence", guard+`
local f = redis.call('HGET', KEYS[1], ARGV[5])
if not f or tonumber(f) < tonumber(ARGV[6]) then redis.call('HSET', KEYS[1], ARGV[5], ARGV[6]) else touch() end
return {'OK'}`)
)

// Keys. Hash of a ring: "cur" id; id "created-us expires-ms secret".
var (
	// KEYS ring v; ARGV[5] expected id, [6] secret, [7] keep ms, [8] channel. Field "@k" of
	// hash v counts the changes.
	rotateScript = newScript("rotate", guard+clock+`
local cur = tonumber(redis.call('HGET', KEYS[2], 'cur') or '0')
local expect = tonumber(ARGV[5])
if cur == expect + 1 then
  local rec = redis.call('HGET', KEYS[2], tostring(cur))
  if rec and string.match(rec, '^%d+ %d+ (.*)$') == ARGV[6] then touch() return {'OK', cur, rec} end
end
if cur ~= expect then touch() return {'OTHER', cur} end
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if all[i] ~= 'cur' then
    local created, expires, secret = string.match(all[i + 1], '^(%d+) (%d+) (.*)$')
    expires = tonumber(expires)
    if all[i] == tostring(cur) then
      expires = ms + tonumber(ARGV[7])
      redis.call('HSET', KEYS[2], all[i], created .. ' ' .. string.format('%d', expires) .. ' ' .. secret)
    end
    if expires <= ms then redis.call('HDEL', KEYS[2], all[i]) end
  end
end
local rec = string.format('%d 0 ', us) .. ARGV[6]
redis.call('HSET', KEYS[2], 'cur', cur + 1, tostring(cur + 1), rec)
redis.call('HINCRBY', KEYS[3], '@k', 1)
redis.call('PUBLISH', ARGV[8], 'k')
return {'OK', cur + 1, rec}`)

	keysScript = newScript("keys", noWrites+`
local t = redis.call('TIME')
local out = {t[1], t[2]}
for i = 1, #KEYS do out[i + 2] = redis.call('HGETALL', KEYS[i]) end
return out`)

	timeScript = newScript("time", noWrites+`return redis.call('TIME')`)
)

// Identity and schema. Hash meta: id, schema, state, pv. An identity ends in "@" and the microsecond of the
// server's clock at its creation.
var (
	// KEYS meta; ARGV[5] identity for an empty store, [6] its schema, [7] its first state.
	openScript = newScript("open", guard+clock+`
local m = redis.call('HMGET', KEYS[2], 'id', 'schema', 'state')
if m[1] and m[2] then return {m[1], m[2], m[3] or ''} end
local id = m[1] or ARGV[5] .. string.format('@%.0f', us)
redis.call('HSET', KEYS[2], 'id', id, 'schema', m[2] or ARGV[6], 'state', m[3] or ARGV[7])
return {id, m[2] or ARGV[6], m[3] or ARGV[7]}`)

	// KEYS meta; ARGV[5] identity for the rebuilt store, [6] schema if it has none, [7] the state during the rebuild,
	// [8] microsecond of the identity known to the caller. A rebuild in progress continues.
	reopenScript = newScript("reopen", guard+clock+`
local m = redis.call('HMGET', KEYS[2], 'id', 'schema', 'state')
if m[1] and m[2] and m[3] == ARGV[7] and string.find(m[1], '@') then return {m[1], m[2]} end
local id = ARGV[5] .. string.format('@%.0f', math.max(us, tonumber(ARGV[8]) + 1))
redis.call('HSET', KEYS[2], 'id', id, 'schema', m[2] or ARGV[6], 'state', ARGV[7])
return {id, m[2] or ARGV[6]}`)

	// KEYS meta, mark; ARGV[5] the identity known to the caller, [6] its last mark, 0 for none, [7] life of a mark in
	// ms, [8] [9] identity and state of a store that went back.
	markScript = newScript("mark", allowOOM+guard+clock+`
if redis.call('HGET', KEYS[2], 'id') ~= ARGV[5] then touch() return {'OTHER'} end
local is = tonumber(redis.call('GET', KEYS[3]) or '0')
if is < tonumber(ARGV[6]) then
  local made = tonumber(string.match(ARGV[5], '@(%d+)$') or '0')
  local id = ARGV[8] .. string.format('@%.0f', math.max(us, made + 1))
  redis.call('HSET', KEYS[2], 'id', id, 'state', ARGV[9])
  return {'BACK', is, id}
end
redis.call('SET', KEYS[3], is + 1, 'PX', ARGV[7])
return {'OK', is + 1}`)

	// ARGV[5] identity; [6] "nx" to skip shards that have one.
	identityScript = newScript("identity", guard+`
if ARGV[6] == 'nx' then redis.call('HSETNX', KEYS[1], '@', ARGV[5]) else redis.call('HSET', KEYS[1], '@', ARGV[5]) end
return {'OK'}`)

	// KEYS meta, known; ARGV[5] identity, [6] state. It deletes the members reported for a rebuild.
	stateScript = newScript("state", guard+`
if redis.call('HGET', KEYS[2], 'id') ~= ARGV[5] then return {'OTHER'} end
redis.call('HSET', KEYS[2], 'state', ARGV[6])
redis.call('DEL', KEYS[3])
return {'OK'}`)

	// KEYS meta, known; ARGV[5] the state in which it is allowed, then members with their records; "" excludes a member
	// for good.
	rememberScript = newScript("remember", guard+`
if redis.call('HGET', KEYS[2], 'state') ~= ARGV[5] then return {'NOT'} end
for i = 6, #ARGV, 2 do
  if ARGV[i + 1] == '' or redis.call('HGET', KEYS[3], ARGV[i]) ~= '' then
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  end
end
return {'OK'}`)
)
