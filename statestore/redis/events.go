// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"context"
	"strings"

	"github.com/creelrm/creel/statestore"
)

// Events. Stream ev: field k is the event's key, e the event. Ids are the server's time in ms and a number.

// eventWrite defines record: it appends an event unless one of the last events has its key, and drops old events.
const eventWrite = `
local function record(stream, key, event, most, kept, keys)
  for _, e in ipairs(redis.call('XREVRANGE', stream, '+', '-', 'COUNT', keys)) do
    if e[2][2] == key then return end
  end
  redis.call('XADD', stream, 'MAXLEN', most, '*', 'k', key, 'e', event)
  redis.call('XTRIM', stream, 'MINID', string.format('%d', redis.call('TIME')[1] * 1000 - tonumber(kept)))
end
`

// KEYS ev; ARGV[5] key, [6] event, [7] most events, [8] ms for which they are kept, [9] events with distinct keys.
var appendEventScript = newScript("append_event", guard+eventWrite+`
record(KEYS[2], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9])
touch()
return {'OK'}`)

// newRecordingScript makes a script whose call may carry an event: its key and arguments follow all others. The event
// is recorded if the answer begins with OK.
func newRecordingScript(name, source string) *script {
	sc := newScript(name, source)
	flags, body := "", source
	if strings.HasPrefix(source, "#!") {
		flags, body, _ = strings.Cut(source, "\n")
		flags += "\n"
	}
	sc.recording = newScript(name, flags+eventWrite+`
local stream, with = table.remove(KEYS), {}
for i = 5, 1, -1 do with[i] = table.remove(ARGV) end
local function write()
`+body+`
end
local answer = write()
if type(answer) == 'table' and answer[1] == 'OK' then record(stream, unpack(with)) end
return answer`)
	return sc
}

// eventArgs are an event's arguments of a recording script. An invalid event was rejected before.
func eventArgs(e statestore.Event) []any {
	data, _ := statestore.EncodeEvent(e)
	return []any{e.Key, data, statestore.MaxEvents, statestore.EventsFor.Milliseconds(), statestore.EventKeys}
}

// AppendEvent implements statestore.Events.
func (s *Store) AppendEvent(ctx context.Context, e statestore.Event) error {
	if _, err := statestore.EncodeEvent(e); err != nil {
		return err
	}
	list, err := s.write(ctx, appendEventScript, s.controls("ev"), eventArgs(e)...)
	if err == nil && list[0] != "OK" {
		err = surprise(list)
	}
	return err
}

// Events implements statestore.Events.
func (s *Store) Events(ctx context.Context, after string, limit int) (out []statestore.Event, err error) {
	if err := cmp.Or(statestore.CheckCursor(after), statestore.CheckLimit(limit)); err != nil {
		return nil, err
	}
	from := "-"
	if after != "" {
		from = "(" + after
	}
	v, err := s.do(ctx, command("XRANGE", s.control("ev"), from, "+", "COUNT", limit))
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	for _, entry := range list {
		id, fields := entryOf(entry)
		e, err := statestore.ParseEvent(id, []byte(fields["e"]))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// entryOf reads an entry of a stream: its id and its fields.
func entryOf(v any) (id string, fields map[string]string) {
	entry, _ := v.([]any)
	return str(at(entry, 0)), stringMap(at(entry, 1))
}
