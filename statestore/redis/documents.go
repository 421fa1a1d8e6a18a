// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Documents. Hash doc:<class> by name: "version replaced us record"; field "" is the newest version of the class. List
// dh:<class>:<name> is the history. A removed document leaves an entry without a record while it has a history; older
// creel releases always left one.
//
// If its writer cut the document, hash dp:<class>:<name> has the parts of the newest version. Field "" is "version
// replaced us head", and the fields by leaf name are rows. If a creel that does not cut wrote later, the class has a
// higher version.
//
// The source of a store is the server's run id, which changes at a failover and at a restart. If the user may not call
// INFO, the source is empty. Then package escrow, which relies on it, has only the guarantees of Wait.
const runID = `
local function source()
  local ok, info = pcall(redis.call, 'INFO', 'server')
  return ok and string.match(info, 'run_id:(%x+)') or ''
end
`

var (
	// KEYS documents history parts; ARGV[5] name, [6] expected version, [7] record or "", [8] versions kept, - if it
	// revises a version, [9] source or "", [10] channel or "", [11] message, [12] most documents of the class or 0. A
	// cut document adds its head, then leaf names with their rows.
	putDocumentScript = newRecordingScript("put_document", guard+clock+runID+`
if ARGV[9] ~= '' and source() ~= ARGV[9] then touch() return {'SOURCE'} end
local cur = redis.call('HGET', KEYS[2], ARGV[5])
local version, replaced, rec = '0', '', ''
if cur then version, replaced, rec = string.match(cur, '^(%d+) (%d+) %d+ (.*)$') end
local is = rec ~= '' and version or '0'
if is == '0' and ARGV[7] == '' then touch() return {'OK', cur or ''} end
if is ~= ARGV[6] then
  touch()
  if cur and replaced == ARGV[6] and rec == ARGV[7] then return {'OK', cur} end
  return {'OTHER', cur or '', is}
end
local most = tonumber(ARGV[12])
if is == '0' and most > 0 and redis.call('HLEN', KEYS[2]) > most then
  local n, all = 0, redis.call('HGETALL', KEYS[2])
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], -1) == ' ' then redis.call('HDEL', KEYS[2], all[i])
    elseif all[i] ~= '' then n = n + 1 end
  end
  if n >= most then touch() return {'FULL', string.format('%d', n)} end
end
local v = string.format('%d', math.max(tonumber(redis.call('HGET', KEYS[2], '') or '0') + 1, ms))
local new = v .. ' ' .. is .. ' ' .. string.format('%d', us) .. ' ' .. ARGV[7]
redis.call('HSET', KEYS[2], ARGV[5], new, '', v)
if ARGV[8] == '-' then -- the history stays
elseif ARGV[8] ~= '0' then redis.call('LPUSH', KEYS[3], new) redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[8]) - 1)
else
  redis.call('UNLINK', KEYS[3])
  if ARGV[7] == '' then redis.call('HDEL', KEYS[2], ARGV[5]) end
end
redis.call('UNLINK', KEYS[4])
if ARGV[13] then
  redis.call('HSET', KEYS[4], '', string.format('%s %s %d ', v, is, us) .. ARGV[13])
end
for i = 14, #ARGV, 2 do redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1]) end
if ARGV[10] ~= '' then redis.call('PUBLISH', ARGV[10], ARGV[11] .. v) end
return {'OK', new}`)

	// KEYS documents; ARGV[1] version and [2] source of the caller's last read, "" for none.
	documentsScript = newScript("documents", noWrites+runID+`
local t, from = redis.call('TIME'), source()
local version = redis.call('HGET', KEYS[1], '') or '0'
if ARGV[2] ~= '' and from == ARGV[2] and version == ARGV[1] then return {t[1], t[2], from, version} end
return {t[1], t[2], from, version, redis.call('HGETALL', KEYS[1])}`)
)

// documentRecord is the writer's part of a document.
type documentRecord struct {
	Data    []byte `json:"data"`
	Author  string `json:"author,omitempty"`
	Comment string `json:"comment,omitempty"`
	Text    []byte `json:"text,omitempty"`
	Revises int64  `json:"revises,omitempty"`
}

// PutDocument implements statestore.Documents.
func (s *Store) PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error) {
	if err := statestore.CheckDocument(&w); err != nil {
		return statestore.Document{}, err
	}
	var record []byte
	if len(w.Data) > 0 {
		var err error
		if record, err = json.Marshal(documentRecord{w.Data, w.Author, w.Comment, w.Text, w.Revises}); err != nil {
			return statestore.Document{}, err
		}
	}
	channel := s.channel
	if w.Quiet {
		channel = ""
	}
	keep := strconv.Itoa(w.Keep)
	if w.Revises > 0 {
		keep = "-"
	}
	args := []any{
		w.Name, strconv.FormatInt(w.Expect, 10), record, keep, w.Source, channel, "d " + w.Class + " ",
		strconv.Itoa(w.Most),
	}
	for i, p := range w.Parts {
		if i > 0 {
			args = append(args, p.Leaf)
		}
		args = append(args, p.Text)
	}
	keys := s.controls("doc:"+w.Class, "dh:"+w.Class+":"+w.Name, "dp:"+w.Class+":"+w.Name)
	list, err := s.write(ctx, putDocumentScript, keys, args...)
	if err != nil {
		return statestore.Document{}, err
	}
	none := statestore.Document{Class: w.Class, Name: w.Name}
	switch list[0] {
	case "SOURCE":
		return none, statestore.OtherSource(w.Class, w.Name)
	case "FULL":
		return none, statestore.TooManyDocuments(w.Class, w.Name, num(at(list, 1)))
	case "OK", "OTHER":
		d := none
		if text := str(at(list, 1)); text != "" {
			if d, err = parseDocument(w.Class, w.Name, text); err != nil {
				return none, err
			}
		}
		if list[0] == "OTHER" {
			err = statestore.OtherDocument(w.Class, w.Name, num(at(list, 2)), w.Expect)
		}
		return d, err
	}
	return none, surprise(list)
}

// parseDocument reads "version replaced us record".
func parseDocument(class, name, text string) (statestore.Document, error) {
	p := strings.SplitN(text, " ", 4)
	d := statestore.Document{Class: class, Name: name}
	var r documentRecord
	var err error
	if len(p) == 4 {
		if p[3] != "" {
			err = json.Unmarshal([]byte(p[3]), &r)
		}
		d.Version, d.Replaced, d.Time = num(p[0]), num(p[1]), time.UnixMicro(num(p[2]))
	}
	if err != nil || d.Version <= 0 {
		return d, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: class + " document " + strconv.Quote(name) + " in the state store cannot be read",
			Why:  strconv.Quote(firstLine(text)),
			Try:  "write it again, or check that no other program writes under this prefix",
		}
	}
	d.Data, d.Author, d.Comment, d.Text, d.Revises = r.Data, r.Author, r.Comment, r.Text, r.Revises
	return d, nil
}

// Documents implements statestore.Documents.
func (s *Store) Documents(ctx context.Context, class string) (statestore.DocumentSet, error) {
	return s.DocumentsSince(ctx, class, statestore.DocumentSet{})
}

// DocumentsSince implements statestore.Documents.
func (s *Store) DocumentsSince(
	ctx context.Context, class string, before statestore.DocumentSet,
) (statestore.DocumentSet, error) {
	if err := statestore.CheckName("document class", class); err != nil {
		return statestore.DocumentSet{}, err
	}
	v, err := s.do(ctx, reading(documentsScript, []string{s.control("doc:" + class)}, before.Version, before.Source))
	if err != nil {
		return statestore.DocumentSet{}, err
	}
	list, _ := v.([]any)
	if len(list) < 4 {
		return statestore.DocumentSet{}, surprise(v)
	}
	set := statestore.DocumentSet{Now: serverTime(list), Source: str(list[2]), Version: num(str(list[3]))}
	if len(list) == 4 {
		set.Documents = before.Documents
		return set, nil
	}
	for name, text := range stringMap(list[4]) {
		if name == "" || strings.HasSuffix(text, " ") { // the newest version; a removed document
			continue
		}
		d, err := parseDocument(class, name, text)
		if err != nil {
			return statestore.DocumentSet{}, err
		}
		set.Documents = append(set.Documents, d)
	}
	slices.SortFunc(set.Documents, func(a, b statestore.Document) int { return strings.Compare(a.Name, b.Name) })
	return set, nil
}

// DocumentOf implements statestore.Documents. One command reads the parts, so that no write can change them
// meanwhile. The class is read first. If the parts are older than the class, a later write had no parts, or another
// document of the class is newer. Then the whole document is read.
func (s *Store) DocumentOf(ctx context.Context, class, name string, queues []string) (statestore.Document, error) {
	if err := statestore.CheckDocumentName(class, name); err != nil {
		return statestore.Document{}, err
	}
	get := []any{"HMGET", s.control("dp:" + class + ":" + name), ""}
	for _, leaf := range queues {
		get = append(get, leaf)
	}
	answers, err := s.all(ctx, []*call{command("HGET", s.control("doc:"+class), ""), command(get...)})
	if err != nil {
		return statestore.Document{}, err
	}
	parts, _ := answers[1].([]any)
	head := strings.SplitN(str(at(parts, 0)), " ", 4)
	if len(head) < 4 || num(head[0]) < num(answers[0]) {
		return s.wholeDocument(ctx, class, name)
	}
	texts := []string{head[3]}
	for i, leaf := range queues {
		if rows := str(at(parts, 1+i)); rows != "" && leaf != "" {
			texts = append(texts, rows)
		}
	}
	return statestore.Document{
		Class: class, Name: name, Version: num(head[0]), Replaced: num(head[1]), Time: time.UnixMicro(num(head[2])),
		Data: []byte(subcluster.JoinParts(texts)),
	}, nil
}

func (s *Store) wholeDocument(ctx context.Context, class, name string) (statestore.Document, error) {
	none := statestore.Document{Class: class, Name: name}
	v, err := s.do(ctx, command("HGET", s.control("doc:"+class), name))
	text := str(v)
	if err != nil || text == "" || strings.HasSuffix(text, " ") { // a removed document
		return none, err
	}
	d, err := parseDocument(class, name, text)
	d.Author, d.Comment, d.Text = "", "", nil
	return d, err
}

// DocumentHistory implements statestore.Documents.
func (s *Store) DocumentHistory(
	ctx context.Context,
	class, name string,
	before int64,
	limit int,
) ([]statestore.Document, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, err
	}
	v, err := s.do(ctx, command("LRANGE", s.control("dh:"+class+":"+name), 0, statestore.KeptVersions-1))
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	var out []statestore.Document
	for _, e := range list {
		d, err := parseDocument(class, name, str(e))
		if err != nil {
			return nil, err
		}
		if (before == 0 || d.Version < before) && len(out) < limit {
			out = append(out, d)
		}
	}
	return out, nil
}
