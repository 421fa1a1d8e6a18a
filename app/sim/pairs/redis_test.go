// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
)

// server is a Redis with a replica: a primary that fails over to an older copy of its data, or that is cut off from
// it and goes on beside its successor. It has the scripts of package redisstate in Go. TestModelKeepsTheContract
// runs the contract's suite on it, as redisstate's tests do on a real Redis.
type server struct {
	w       *world
	wait    bool // an answer to a write needs the replica
	primary *instance
	former  *instance // goes on beside the primary, for some callers; nil: none
	beside  [2]bool   // these callers reach the former one
	down    time.Time // until then nothing answers
	lag     time.Duration
	opens   int64

	failovers int
	lost      []*link         // groups that failovers have lost
	lostKeys  map[string]bool // of these
	unsafe    time.Time       // until then a lost lease may have two holders
}

// instance is one Redis process.
type instance struct {
	data    *data
	clock   time.Duration // ahead of the world's
	copied  time.Time     // time at which the replica has all
	history []version     // the newest last
	alone   bool          // it has no replica
}

type version struct {
	data   *data
	copied time.Time
}

// data is never changed: a write makes another one.
type data struct {
	meta    map[string]string
	entries map[string]string
	tail    *link
	trimmed int64 // the tail lacks groups up to this one
}

// link is a group in the tail.
type link struct {
	before *link
	epoch  string
	number int64
	names  []string
}

func newServer(w *world) *server {
	empty := &data{meta: map[string]string{}, entries: map[string]string{}}
	return &server{w: w, primary: &instance{data: empty}, lag: time.Millisecond, lostKeys: map[string]bool{}}
}

// of returns the instance that a caller reaches.
func (s *server) of(half int) *instance {
	if s.former != nil && s.beside[half] {
		return s.former
	}
	return s.primary
}

// store replaces an instance's data, and sends it to the replica.
func (s *server) store(i *instance, d *data) {
	i.data = d
	if at := s.w.now.Add(s.lag); at.After(i.copied) {
		i.copied = at
	}
	i.history = append(i.history, version{d, i.copied})
	for len(i.history) > 1 && !i.history[1].copied.After(s.w.now) {
		i.history = i.history[1:]
	}
}

// promote returns the data that the replica has.
func (s *server) promote() *instance {
	have := &data{meta: map[string]string{}, entries: map[string]string{}}
	for _, v := range s.primary.history {
		if !v.copied.After(s.w.now) {
			have = v.data
		}
	}
	s.failovers++
	return &instance{data: have, history: []version{{have, s.w.now}}, clock: s.primary.clock - s.w.upTo(time.Second)}
}

// lose records the groups that only the former instance has.
func (s *server) lose(former *instance, have *data, term time.Duration) {
	for l := former.data.tail; l != nil && l != common(l, have.tail); l = l.before {
		if slices.Contains(s.lost, l) {
			continue
		}
		s.lost = append(s.lost, l)
		for _, name := range l.names {
			s.lostKeys[name] = true
		}
	}
	if lease(former.data) != lease(have) {
		s.unsafe = later(s.unsafe, s.w.now.Add(term))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func lease(d *data) string { return d.meta["lease_by"] + d.meta["lease_until"] }

// lacks reports whether groups of an epoch up to a number are lost. A group without an acknowledgment may be lost, and
// be written again.
func (s *server) lacks(epoch string, upTo int64) bool {
	for _, lost := range s.lost {
		if lost.epoch != epoch || lost.number > upTo {
			continue
		}
		l := s.primary.data.tail
		for ; l != nil && (l.epoch != epoch || l.number != lost.number); l = l.before {
		}
		if l == nil {
			return true
		}
	}
	return false
}

// common returns l if it is in the other tail.
func common(l, other *link) *link {
	for ; other != nil; other = other.before {
		if other == l {
			return l
		}
	}
	return nil
}

// failover ends the primary, and makes its replica the primary after a time.
func (s *server) failover(away time.Duration) {
	if s.former != nil {
		return
	}
	next := s.promote()
	s.lose(s.primary, next.data, away+s.w.cfg.pair.Lease)
	s.w.say("Redis fails over for %v, and has lost %d groups so far", away, len(s.lost))
	s.primary, s.down = next, s.w.now.Add(away)
}

// split cuts the primary off from its replica, which becomes the primary for the other half's callers.
func (s *server) split(half int, d time.Duration) {
	if s.former != nil || s.w.now.Before(s.down) {
		return
	}
	next := s.promote()
	s.former, s.primary = s.primary, next
	s.former.alone = true
	s.beside = [2]bool{}
	s.beside[half] = true
	s.w.say("half %d reaches the former primary only, for %v", half, d)
	s.lose(s.former, next.data, s.w.cfg.pair.Lease)
	if !s.wait {
		s.unsafe = later(s.unsafe, s.w.now.Add(d+s.w.cfg.pair.Lease))
	}
	s.w.after(d, func() {
		s.lose(s.former, next.data, 0)
		s.former = nil
		s.w.say("the former primary is gone; %d groups are lost so far", len(s.lost))
	})
}

// conn is a process's connection. It implements redisstate.Server.
type conn struct {
	w      *world
	half   int
	epoch  string // that it was answered last for an opening
	open   int64
	number int64 // of the last group at the opening
	// copied is the place of the standby's copy, by its answers.
	copiedEpoch  string
	copiedNumber int64
	ahead        bool // of the state that it opened
}

const (
	attemptTime = time.Second     // of a call to Redis
	patience    = 5 * time.Second // of a call's repetitions, without a context's end
)

func (c *conn) Key(tag, name string) string                                { return tag + ":" + name }
func (c *conn) Health(context.Context) (out []statestore.Finding, _ error) { return nil, nil }
func (c *conn) Close() error                                               { return nil }

// texts are the arguments as a script gets them.
func texts(args []any) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if b, ok := a.([]byte); ok {
			out[i] = string(b)
		} else {
			out[i] = fmt.Sprint(a)
		}
	}
	return out
}

func (c *conn) Write(_ context.Context, s *redis.Script, _ []string, args ...any) ([]any, error) {
	out, err := c.call(func(i *instance) ([]any, bool) { return c.w.redis.script(i, s.Name(), texts(args)), true })
	if err == nil && s.Name() == "rm state open" {
		c.opened(out)
	}
	return out, err
}

func (c *conn) Read(_ context.Context, s *redis.Script, _ []string, args ...any) ([]any, error) {
	text := texts(args)
	out, err := c.call(func(i *instance) ([]any, bool) { return changes(i.data, text), false })
	switch {
	case err != nil:
		c.copiedEpoch = ""
	case len(out) > 3:
		c.copiedEpoch = text[0]
		c.copiedNumber, _ = strconv.ParseInt(out[1].(string), 10, 64)
	case text[0] != "none":
		c.copiedEpoch = ""
	}
	return out, err
}

// opened notes whether the standby's copy is ahead of the state.
func (c *conn) opened(out []any) {
	c.epoch, c.open = out[1].(string), c.w.redis.opens
	c.number = number(out[2].(string))
	c.ahead = c.copiedEpoch != "" && c.copiedEpoch == out[3].(string) && c.number < c.copiedNumber
	c.copiedEpoch = ""
}

// Scan answers with one half of the entries after the other. The cursor belongs to an instance, which does not check
// it.
func (c *conn) Scan(_ context.Context, _, cursor string, _ int) (part []any, next string, err error) {
	part, err = c.call(func(i *instance) (out []any, _ bool) {
		out, next = scan(i.data, cursor)
		return out, false
	})
	return part, next, err
}

func scan(d *data, cursor string) (out []any, next string) {
	names := slices.Sorted(maps.Keys(d.entries))
	names, rest := names[:len(names)/2], names[len(names)/2:]
	if next = "1"; cursor == "1" {
		names, next = rest, "0"
	}
	for _, n := range names {
		out = append(out, n, d.entries[n])
	}
	return out, next
}

// call repeats a call until it is answered, as package redis does. A request that was given up may still arrive.
func (c *conn) call(do func(i *instance) (out []any, write bool)) ([]any, error) {
	w, r := c.w, c.w.running
	until := w.now.Add(patience)
	for {
		var out []any
		answered, over := false, false
		err := r.suspend(func(resume func()) {
			end := func() {
				if !over {
					over = true
					resume()
				}
			}
			w.after(attemptTime, end)
			c.send(do, func(list []any) {
				if !over {
					out, answered = list, true
				}
				end()
			})
		})
		switch {
		case err != nil:
			return nil, err
		case answered:
			return out, nil
		case r.Err() != nil || w.now.After(until):
			return nil, errSilence
		}
		if err := r.sleep(100 * time.Millisecond); err != nil {
			return nil, errSilence
		}
	}
}

// send carries a call to the instance, and its answer back, unless the path is cut.
func (c *conn) send(do func(i *instance) (out []any, write bool), reply func([]any)) {
	w, h := c.w, c.w.halves[c.half]
	if w.now.Before(h.mute) {
		return
	}
	w.after(w.trip(), func() {
		s := w.redis
		i := s.of(c.half)
		if w.now.Before(s.down) && i == s.primary {
			return
		}
		list, write := do(i)
		back := func() {
			if !w.now.Before(h.deaf) {
				w.after(w.trip(), func() { reply(list) })
			}
		}
		switch {
		case !write || !s.wait:
			back()
		case i.alone: // no replica acknowledges it
		default:
			w.after(i.copied.Sub(w.now), func() {
				if s.of(c.half) == i {
					back()
				}
			})
		}
	})
}

// trip is the time of a message between a ResourceManager and Redis.
func (w *world) trip() time.Duration {
	if w.now.Before(w.slow) && w.chance(0.2) {
		return w.upTo(8 * time.Second)
	}
	return time.Millisecond + w.upTo(2*time.Millisecond)
}
