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
	// held answers a caller that is not the holder. ARGV[1] is the epoch of the caller.
	held = clock + `
local h = redis.call('HMGET', KEYS[1], 'epoch', 'number', 'holder')
redis.call('HSET', KEYS[1], 'written', string.format('%.0f', us))
if h[1] ~= ARGV[1] then return {'HELD', h[1] or '0', h[3] or ''} end
`
)

var (
	// openScript makes the caller, by its name in ARGV[2], the holder. ARGV[1] is the layout that it knows. It answers
	// with the epoch and the number of the last group.
	openScript = redis.NewScript("rm state open", clock+`
redis.call('HSETNX', KEYS[1], 'layout', ARGV[1])
redis.call('HSET', KEYS[1], 'written', string.format('%.0f', us))
local h = redis.call('HMGET', KEYS[1], 'layout', 'epoch', 'number')
if h[1] ~= ARGV[1] then return {'LAYOUT', h[1]} end
local epoch = string.format('%.0f', math.max(us, (tonumber(h[2]) or 0) + 1))
redis.call('HSET', KEYS[1], 'epoch', epoch, 'holder', ARGV[2], 'number', h[3] or '0')
return {'OK', epoch, h[3] or '0'}
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

	// groupScript applies group ARGV[2]: ARGV[3] fields and values in turn from ARGV[4] on are set, and the fields
	// after them are deleted.
	groupScript = redis.NewScript("rm state write", held+`
local number, last = tonumber(ARGV[2]), tonumber(h[2])
if last == number then return {'OK'} end
if last ~= number - 1 then return {'LOST', h[2]} end
local sets = 3 + tonumber(ARGV[3])
for i = 4, sets, 1000 do redis.call('HSET', KEYS[2], unpack(ARGV, i, math.min(i + 999, sets))) end
for i = sets + 1, #ARGV, 1000 do redis.call('HDEL', KEYS[2], unpack(ARGV, i, math.min(i + 999, #ARGV))) end
redis.call('HSET', KEYS[1], 'number', ARGV[2])
return {'OK'}
`)
)
