// SPDX-License-Identifier: Apache-2.0

package redisstate

import "github.com/creelrm/creel/statestore/redis"

// Every script has the keys of meta and of the entries, and writes each time that it runs: see redis.Scripts.Write.
// Answers begin with a word.
const (
	// clock reads the server's time in us, which stays exact in a double until the year 2255.
	clock = `
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
`
	// held answers a caller that is not the holder: epoch and name of the holder, and the last group of the caller when
	// another process opened the state: 0 if the state has lost the caller's opening. ARGV[1] is the caller's epoch.
	held = clock + `
local h = redis.call('HMGET', KEYS[1], 'epoch', 'number', 'holder', 'ends')
redis.call('HSET', KEYS[1], 'written', string.format('%.0f', us))
if h[1] ~= ARGV[1] then
  local last = h[4] and (string.match(h[4], ' ' .. ARGV[1] .. ':(%d+)') or '0')
  return {'HELD', h[1] or '0', h[3] or '', last or ''}
end
`
)

var (
	// openScript makes the caller, by its name in ARGV[2], the holder. ARGV[1] is the layout that it knows. It answers
	// with the epoch, the number of the last group, and the previous epoch. ends has the last groups of about 30
	// earlier holders.
	openScript = redis.NewScript("rm state open", clock+`
redis.call('HSETNX', KEYS[1], 'layout', ARGV[1])
redis.call('HSET', KEYS[1], 'written', string.format('%.0f', us))
local h = redis.call('HMGET', KEYS[1], 'layout', 'epoch', 'number', 'ends')
if h[1] ~= ARGV[1] then return {'LAYOUT', h[1]} end
local epoch = string.format('%.0f', math.max(us, (tonumber(h[2]) or 0) + 1))
redis.call('HSET', KEYS[1], 'epoch', epoch, 'holder', ARGV[2], 'number', h[3] or '0',
  'ends', string.sub((h[4] or '') .. ' ' .. (h[2] or '0') .. ':' .. (h[3] or '0'), -1000))
return {'OK', epoch, h[3] or '0', h[2] or ''}
`)

	// confirmScript answers whether the caller is the holder, and has all groups up to ARGV[2].
	confirmScript = redis.NewScript("rm state confirm", held+`
if tonumber(h[2]) < tonumber(ARGV[2]) then return {'LOST', h[2]} end
return {'OK'}
`)

	// countScript is confirmScript. It also answers with the number of entries.
	countScript = redis.NewScript("rm state count", held+`
if tonumber(h[2]) < tonumber(ARGV[2]) then return {'LOST', h[2]} end
return {'OK', redis.call('HLEN', KEYS[2])}
`)

	// groupScript applies group ARGV[2]: ARGV[3] fields and values in turn from ARGV[5] on are set, and the fields
	// after them are deleted. The tail gets the names of these fields, and keeps about ARGV[4] groups; 0: it gets none.
	groupScript = redis.NewScript("rm state write", held+`
local number, last = tonumber(ARGV[2]), tonumber(h[2])
if last == number then return {'OK'} end
if last ~= number - 1 then return {'LOST', h[2]} end
local sets = 4 + tonumber(ARGV[3])
for i = 5, sets, 1000 do redis.call('HSET', KEYS[2], unpack(ARGV, i, math.min(i + 999, sets))) end
for i = sets + 1, #ARGV, 1000 do redis.call('HDEL', KEYS[2], unpack(ARGV, i, math.min(i + 999, #ARGV))) end
redis.call('HSET', KEYS[1], 'number', ARGV[2])
if ARGV[4] ~= '0' then
  local names = {}
  for i = 5, sets, 2 do names[#names + 1] = ARGV[i] end
  for i = sets + 1, #ARGV do names[#names + 1] = ARGV[i] end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], ARGV[2] .. '-0', 'names', cmsgpack.pack(names))
end
return {'OK'}
`)

	// changesScript reads the changes after group ARGV[2] of the holder with epoch ARGV[1], of at most ARGV[3] groups.
	// It answers with the group up to which these are all changes, the last group, the number of entries, and names and
	// present values in turn, nil if the entry is deleted. If the tail lacks a group, or the holder is another one, it
	// answers OTHER, the epoch and the last group.
	changesScript = redis.NewScript("rm state changes", `#!lua flags=no-writes
local h = redis.call('HMGET', KEYS[1], 'epoch', 'number')
local epoch, last, number = h[1] or '', tonumber(h[2] or '0'), tonumber(ARGV[2])
local other = {'OTHER', epoch, string.format('%.0f', last)}
if epoch ~= ARGV[1] or last < number then return other end
local out = {'OK', '', h[2] or '0', redis.call('HLEN', KEYS[2])}
local names, seen = {}, {}
if number < last then
  local from = string.format('%.0f-0', number + 1)
  local groups = redis.call('XRANGE', KEYS[3], from, '+', 'COUNT', ARGV[3])
  if #groups == 0 then return other end
  for _, g in ipairs(groups) do
    number = number + 1
    if g[1] ~= string.format('%.0f-0', number) then return other end
    for _, name in ipairs(cmsgpack.unpack(g[2][2])) do
      if not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
end
out[2] = string.format('%.0f', number)
for i = 1, #names, 1000 do
  local values = redis.call('HMGET', KEYS[2], unpack(names, i, math.min(i + 999, #names)))
  for k, v in ipairs(values) do
    out[#out + 1] = names[i + k - 1]
    out[#out + 1] = v
  end
end
return out
`)

	// leaseScript answers whether another process than ARGV[2] has the lease, and how long. If ARGV[3] is not 0, it
	// takes or renews a free lease for that many us, under the name ARGV[1]. A lease never lasts longer than its term
	// from now, even if the server's clock was set back.
	leaseScript = redis.NewScript("rm lease", clock+`
redis.call('HSET', KEYS[1], 'written', string.format('%.0f', us))
local h = redis.call('HMGET', KEYS[1], 'lease', 'lease_by', 'lease_until', 'lease_term')
local left, term = tonumber(h[3] or '0') - us, tonumber(h[4] or '0')
if left > term then
  left = term
  redis.call('HSET', KEYS[1], 'lease_until', string.format('%.0f', us + term))
end
if left > 0 and h[2] ~= ARGV[2] then return {'HELD', h[1], string.format('%.0f', left)} end
if ARGV[3] == '0' then return {'FREE'} end
redis.call('HSET', KEYS[1], 'lease', ARGV[1], 'lease_by', ARGV[2],
  'lease_until', string.format('%.0f', us + tonumber(ARGV[3])), 'lease_term', ARGV[3])
return {'OK'}
`)

	// releaseScript ends the lease of process ARGV[1], if it has it.
	releaseScript = redis.NewScript("rm lease release", clock+`
redis.call('HSET', KEYS[1], 'written', string.format('%.0f', us))
if redis.call('HGET', KEYS[1], 'lease_by') ~= ARGV[1] then return {'OTHER'} end
redis.call('HSET', KEYS[1], 'lease_until', '0')
return {'OK'}
`)
)
