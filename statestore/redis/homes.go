// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	goredis "github.com/redis/go-redis/v9"
)

// Homes of applications and of reservations have the same layout. Ids are spread over the shards by their lowest
// bits. 64 of them share a small hash, which Redis stores as one compact listpack. In each shard a sorted set of
// equal scores lists the applications of a home, so that a cursor is the last listed entry.

// homeKey is the place of an id's home in the store.
type homeKey struct {
	n     int64  // shard, in its lowest bits
	index string // entry in listings: timestamp and number, base 36
	field string // field in the bucket
	block string // bucket name
}

func locate(ts, n int64) homeKey {
	t := strconv.FormatInt(ts, 36)
	return homeKey{
		n:     n,
		index: t + "." + strconv.FormatInt(n, 36),
		field: strconv.FormatInt(n>>6&63, 10),
		block: t + "." + strconv.FormatInt(n>>12, 36),
	}
}

// unlocate parses an index entry.
func unlocate(index string) (ts, n int64, ok bool) {
	a, b, found := strings.Cut(index, ".")
	ts, err1 := strconv.ParseInt(a, 36, 64)
	n, err2 := strconv.ParseInt(b, 36, 64)
	return ts, n, found && err1 == nil && err2 == nil && ts > 0 && n >= 0
}

// table stores the homes of one kind of id.
type table struct {
	s       *Store
	kind    string // a or r, in the names of keys
	publish bool   // moves and ends are published to watchers
	any     bool   // write without a check of the store's identity (Reopen)
}

func (t table) bucket(p homeKey) string { return t.s.shard(p.n, t.kind+":"+p.block) }
func (t table) index(n int64, m creel.SubclusterID) string {
	return t.s.shard(n, t.kind+"h:"+string(m))
}
func (t table) placement(p homeKey) string { return t.s.shard(p.n, t.kind+"p:"+p.block) }
func (t table) expiries(n int64) string    { return t.s.shard(n, t.kind+"e") }

// uamRecords is the key of an application's UAM records. Reservations have none, but the scripts
// need a key in the slot.
func (t table) uamRecords(p homeKey) string { return t.s.shard(p.n, t.kind+"s:"+p.index) }

func (t table) write(ctx context.Context, n int64, sc *script, keys []string, args ...any) ([]any, error) {
	if !t.any {
		return t.s.writeShard(ctx, n, sc, keys, args...)
	}
	v, err := t.s.do(ctx, t.s.writing(ctx, sc, t.s.shard(n, "guard"), "", keys, args))
	if err != nil {
		return nil, err
	}
	return refusal(ctx, v)
}

// home is a parsed value.
type home struct {
	member        creel.SubclusterID
	claimed, ends time.Time // ends is zero while it lives
}

// parseHome reads "home claimed [ends]", hexadecimal seconds and ms.
func parseHome(v string) (home, error) {
	damaged := func() (home, error) {
		return home{}, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "a home in the state store cannot be read",
			Why:  strconv.Quote(firstLine(v)),
			Try:  "check that no other program writes under this prefix",
		}
	}
	name, rest, _ := strings.Cut(v, " ")
	claimed, ends, ending := strings.Cut(rest, " ")
	if subcluster.ValidID(creel.SubclusterID(name)) != nil {
		return damaged()
	}
	h := home{member: creel.SubclusterID(name)}
	c, err := strconv.ParseInt(claimed, 16, 64)
	if err != nil || c < 0 || c > 1<<40 {
		return damaged()
	}
	h.claimed = time.Unix(c, 0)
	if ending {
		e, err := strconv.ParseInt(ends, 16, 64)
		if err != nil || e < 0 || e > 1<<50 {
			return damaged()
		}
		h.ends = time.UnixMilli(e)
	}
	return h, nil
}

// claim repeats a call whose answer was lost: the repeat returns a number above 1, although the first call made the
// home.
func (t table) claim(
	ctx context.Context,
	p homeKey,
	member creel.SubclusterID,
	placement []byte,
) (is creel.SubclusterID, number int64, err error) {
	for {
		list, err := t.write(
			ctx,
			p.n,
			claimScript,
			[]string{t.bucket(p), t.index(p.n, member), t.placement(p)},
			p.field,
			string(member),
			p.index,
			placement,
		)
		switch {
		case err != nil:
			return "", 0, err
		case list[0] == "IS" && at(list, 1) == int64(1):
			return member, 1, nil
		case list[0] == "HOME":
			h, err := parseHome(str(at(list, 1)))
			return h.member, num(at(list, 2)), err
		case list[0] != "OVER":
			return "", 0, surprise(list)
		}
		if _, err := t.drop(ctx, p, str(at(list, 1))); err != nil {
			return "", 0, err
		}
	}
}

// drop removes an expired value, if it is still the value that was read.
func (t table) drop(ctx context.Context, p homeKey, value string) (bool, error) {
	var m creel.SubclusterID
	if value != "" {
		h, err := parseHome(value)
		if err != nil {
			return false, err
		}
		m = h.member
	}
	list, err := t.write(
		ctx,
		p.n,
		dropScript,
		[]string{t.bucket(p), t.expiries(p.n), t.index(p.n, m), t.uamRecords(p), t.placement(p)},
		p.field,
		value,
		p.index,
	)
	if err != nil {
		return false, err
	}
	return num(at(list, 1)) == 1, nil
}

// move returns the current home, "" if there is none.
func (t table) move(
	ctx context.Context,
	p homeKey,
	name string,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (is creel.SubclusterID, ok bool, err error) {
	list, err := t.write(
		ctx,
		p.n,
		moveScript,
		[]string{t.bucket(p), t.index(p.n, from), t.index(p.n, to), t.placement(p)},
		p.field,
		string(from),
		string(to),
		p.index,
		t.channel(),
		name,
		number,
		placement,
	)
	if err != nil {
		return "", false, err
	}
	switch list[0] {
	case "NONE":
		return "", false, nil
	case "IS", "OTHER":
		return creel.SubclusterID(str(at(list, 1))), list[0] == "IS", nil
	}
	return "", false, surprise(list)
}

// absent returns for how long a home has reported an application as unknown, and the current home,
// "" if there is none.
func (t table) absent(
	ctx context.Context,
	p homeKey,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (is creel.SubclusterID, waited time.Duration, err error) {
	sure := 0
	if surely {
		sure = 1
	}
	list, err := t.write(
		ctx,
		p.n,
		absentScript,
		[]string{t.bucket(p)},
		p.field,
		string(home),
		number,
		sure,
		statestore.MostOpenClaims,
	)
	if err != nil {
		return "", 0, err
	}
	switch list[0] {
	case "NONE":
		return "", 0, nil
	case "OTHER":
		return creel.SubclusterID(str(at(list, 1))), 0, nil
	case "WAITED":
		return home, time.Duration(num(at(list, 1))) * time.Millisecond, nil
	}
	return "", 0, surprise(list)
}

func (t table) channel() string {
	if t.publish {
		return t.s.channel
	}
	return ""
}

func (t table) forget(
	ctx context.Context,
	p homeKey,
	name string,
	member creel.SubclusterID,
	ttl time.Duration,
) (is creel.SubclusterID, err error) {
	list, err := t.write(
		ctx,
		p.n,
		forgetScript,
		[]string{t.bucket(p), t.expiries(p.n)},
		p.field,
		string(member),
		ttl.Milliseconds(),
		p.index,
		t.channel(),
		name,
	)
	if err != nil {
		return "", err
	}
	switch list[0] {
	case "OK":
		return member, nil
	case "OTHER":
		return creel.SubclusterID(str(at(list, 1))), nil
	}
	return "", surprise(list)
}

// find is one HGET; only ending or missing homes need more commands.
func (t table) find(ctx context.Context, p homeKey) (creel.SubclusterID, error) {
	v, err := t.s.do(ctx, command("HGET", t.bucket(p), p.field))
	if err != nil {
		return "", err
	}
	if v == nil {
		return "", t.checkIdentity(ctx, p.n)
	}
	h, err := parseHome(str(v))
	if err != nil || h.ends.IsZero() {
		return h.member, err
	}
	now, err := t.s.clockOf(ctx, t.bucket(p))
	if err != nil || !now.Before(h.ends) {
		return "", err
	}
	return h.member, nil
}

// storedPlacement returns the stored reason why an id's home was chosen, and whether it has a home.
func (t table) storedPlacement(ctx context.Context, p homeKey) (placement []byte, ok bool, err error) {
	is, err := t.find(ctx, p)
	if err != nil || is == "" {
		return nil, false, err
	}
	v, err := t.s.do(ctx, command("HGET", t.placement(p), p.field))
	if err != nil || v == nil {
		return nil, true, err
	}
	return []byte(str(v)), true, nil
}

// ended returns the time at which the home reported the end of an id, zero before that, and whether the id has a
// home.
func (t table) ended(ctx context.Context, p homeKey) (at time.Time, ok bool, err error) {
	is, err := t.find(ctx, p)
	if err != nil || is == "" {
		return time.Time{}, false, err
	}
	v, err := t.s.do(ctx, command("HGET", t.bucket(p), p.field+"e"))
	if err != nil || v == nil {
		return time.Time{}, true, err
	}
	ms, err := strconv.ParseInt(str(v), 16, 64)
	if err != nil || ms < 0 || ms > 1<<50 {
		return time.Time{}, true, surprise(v)
	}
	return time.UnixMilli(ms), true, nil
}

// accept records the life of the home that accepted an id. It returns the current home, "" if there is none.
func (t table) accept(
	ctx context.Context,
	p homeKey,
	home creel.SubclusterID,
	life int64,
) (is creel.SubclusterID, err error) {
	list, err := t.write(ctx, p.n, acceptScript, []string{t.bucket(p)}, p.field, string(home), life)
	if err != nil {
		return "", err
	}
	switch list[0] {
	case "NONE":
		return "", nil
	case "OTHER":
		return creel.SubclusterID(str(at(list, 1))), nil
	case "OK":
		return home, nil
	}
	return "", surprise(list)
}

// acceptedIn returns the life in which the home accepted an id, 0 if none is recorded, and whether the id has a home.
func (t table) acceptedIn(ctx context.Context, p homeKey) (life int64, ok bool, err error) {
	is, err := t.find(ctx, p)
	if err != nil || is == "" {
		return 0, false, err
	}
	v, err := t.s.do(ctx, command("HMGET", t.bucket(p), p.field, p.field+"a"))
	if err != nil {
		return 0, false, err
	}
	both, _ := v.([]any)
	if at(both, 0) == nil || at(both, 1) == nil {
		return 0, true, nil
	}
	record := str(at(both, 1))
	cut := strings.LastIndexByte(record, ' ')
	if cut < 0 {
		return 0, true, surprise(v)
	}
	if begins := record[:cut]; str(at(both, 0)) != begins && !strings.HasPrefix(str(at(both, 0)), begins+" ") {
		return 0, true, nil // of an earlier home
	}
	if life, err = strconv.ParseInt(record[cut+1:], 16, 64); err != nil || life <= 0 || life > 1<<50 {
		return 0, true, surprise(v)
	}
	return life, true, nil
}

// checkIdentity distinguishes a missing record from a store that lost its records.
func (t table) checkIdentity(ctx context.Context, n int64) error {
	id, err := t.s.known(ctx)
	if err != nil {
		return err
	}
	v, err := t.s.do(ctx, command("HGET", t.s.shard(n, "guard"), "@"))
	if err != nil {
		return err
	}
	if identity := str(v); identity != id {
		return t.s.adopt(ctx, identity)
	}
	return nil
}

// clockOf returns the time of the server that stores a key.
func (s *Store) clockOf(ctx context.Context, key string) (time.Time, error) {
	v, err := s.do(ctx, reading(timeScript, []string{key}))
	if err != nil {
		return time.Time{}, err
	}
	list, _ := v.([]any)
	return serverTime(list), nil
}

// serverTime converts the seconds and microseconds of a TIME reply.
func serverTime(list []any) time.Time {
	return time.UnixMicro(num(at(list, 0))*1e6 + num(at(list, 1)))
}

const pageStep = 256

// line is one entry of a listing.
type line struct {
	ts, n int64
	home
}

// page lists the applications of one home. A cursor is "<shard>.<last index>". It reads shards one
// after the other, and several at once if they have few entries. Each command reads at most
// pageStep entries, so that none blocks the server for long.
func (t table) page(
	ctx context.Context,
	m creel.SubclusterID,
	cursor string,
	limit int,
) (page []line, next string, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	if err := subcluster.ValidID(m); err != nil {
		return nil, "", err
	}
	n, after := int64(0), ""
	if cursor != "" {
		sh, rest, ok := strings.Cut(cursor, ".")
		var err error
		if n, err = strconv.ParseInt(sh, 10, 64); err != nil || !ok || n < 0 || n >= shards {
			return nil, "", statestore.BadCursor(cursor)
		}
		if after = rest; after != "" {
			if _, _, ok := unlocate(after); !ok {
				return nil, "", statestore.BadCursor(cursor)
			}
		}
	}
	for window := int64(1); n < shards; window *= 2 {
		step := min(limit-len(page), pageStep)
		calls := make([]*call, 0, window)
		for k := n; k < min(n+window, shards); k++ {
			low := "-"
			if k == n && after != "" {
				low = "(" + after
			}
			calls = append(calls, command("ZRANGEBYLEX", t.index(k, m), low, "+", "LIMIT", 0, step))
		}
		answers, err := t.s.all(ctx, calls)
		if err != nil {
			return nil, "", err
		}
		for _, v := range answers {
			entries, _ := v.([]any)
			more := len(entries) == step || len(entries) > limit-len(page)
			entries = entries[:min(len(entries), limit-len(page))]
			lines, err := t.lines(ctx, m, entries)
			if err != nil {
				return nil, "", err
			}
			page = append(page, lines...)
			if len(entries) > 0 {
				after = str(entries[len(entries)-1])
			}
			if len(page) == limit {
				return page, strconv.FormatInt(n, 10) + "." + after, nil
			}
			if more {
				window = 1
				break
			}
			n, after = n+1, ""
		}
	}
	return page, "", nil
}

// lines reads the values of index entries. It leaves out entries that have moved or expired.
func (t table) lines(ctx context.Context, m creel.SubclusterID, entries []any) ([]line, error) {
	calls := make([]*call, 0, len(entries))
	lines := make([]line, 0, len(entries))
	for _, e := range entries {
		ts, n, ok := unlocate(str(e))
		if !ok {
			return nil, surprise(e)
		}
		p := locate(ts, n)
		lines = append(lines, line{ts: ts, n: n})
		calls = append(calls, command("HGET", t.bucket(p), p.field))
	}
	answers, err := t.s.all(ctx, calls)
	if err != nil {
		return nil, err
	}
	out := lines[:0]
	var now time.Time
	for i, v := range answers {
		if v == nil {
			continue
		}
		if lines[i].home, err = parseHome(str(v)); err != nil {
			return nil, err
		}
		if !lines[i].ends.IsZero() && now.IsZero() {
			if now, err = t.s.clockOf(ctx, calls[i].key); err != nil {
				return nil, err
			}
		}
		if lines[i].member == m && (lines[i].ends.IsZero() || now.Before(lines[i].ends)) {
			out = append(out, lines[i])
		}
	}
	return out, nil
}

// sweep deletes expired records in all shards.
func (t table) sweep(ctx context.Context, limit int) (freed int, err error) {
	for n := int64(0); n < shards && freed < limit; n++ {
		now, err := t.s.clockOf(ctx, t.expiries(n))
		if err != nil {
			return freed, err
		}
		v, err := t.s.do(ctx, command("ZRANGEBYSCORE", t.expiries(n), "-inf", now.UnixMilli(), "LIMIT", 0, limit-freed))
		if err != nil {
			return freed, err
		}
		entries, _ := v.([]any)
		for _, e := range entries {
			ts, id, ok := unlocate(str(e))
			if !ok {
				return freed, surprise(e)
			}
			p := locate(ts, id)
			v, err := t.s.do(ctx, command("HGET", t.bucket(p), p.field))
			if err != nil {
				return freed, err
			}
			gone, err := t.drop(ctx, p, str(v))
			if err != nil {
				return freed, err
			}
			if gone {
				freed++
			}
		}
	}
	return freed, nil
}

// all sends reads together and returns their answers in order.
func (s *Store) all(ctx context.Context, calls []*call) ([]any, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	bounded, end, err := limited(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	pipe := s.client.Pipeline()
	cmds := make([]*goredis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = pipe.Do(bounded, c.args...)
	}
	out := make([]any, len(calls))
	_, broken := pipe.Exec(bounded)
	end()
	if s.cfg.Observe != nil {
		operation := "list"
		if calls[0].script != nil {
			operation = calls[0].script.name
		}
		s.cfg.Observe(operation, time.Since(began), broken)
	}
	for i, cmd := range cmds {
		v, err := answered(cmd, broken)
		if err != nil && err != goredis.Nil {
			// do repeats the call, follows the cluster's redirections and explains errors.
			if v, err = s.do(ctx, calls[i]); err != nil {
				return nil, err
			}
		}
		out[i] = v
	}
	return out, nil
}
