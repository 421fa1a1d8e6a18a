// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// A long list costs milliseconds to make, and dashboards and federations ask
// for the same one over and over. So an encoded list is kept and given again
// until something changed: an application came, went or changed its state, a
// node came or went, an administrator did anything. What moves with every
// heartbeat, as progress and use do, is made anew after listAge by the first who
// asks then; others are given the old list meanwhile, up to listMaxAge. While
// nothing moved at all it is given for so long too: what then changes are counts
// of seconds.
const (
	listAge     = 100 * time.Millisecond
	listMaxAge  = time.Second
	maxLists    = 64
	minListSize = 8 << 10 // bytes; a shorter list is made as fast as found
	maxListKey  = 4 << 10
	maxListsAll = 128 << 20 // bytes of all that are kept
)

// Stamp is a moment in the life of a machine, read before something is made of
// it.
type Stamp struct{ changes, moves uint64 }

// Stamp is now.
func (d *Daemon) Stamp() Stamp { return Stamp{d.changes.Load(), d.moves.Load()} }

type encodedList struct {
	stamp   Stamp
	made    time.Time
	body    []byte       // the encoded response
	renewed *atomic.Bool // somebody makes the next one
}

// lists are the encoded lists of a door by who asked what.
type lists struct {
	mu    sync.RWMutex
	m     map[string]encodedList
	bytes int
}

// get gives the list that nothing changed since, and is young enough.
func (l *lists) get(key string, stamp Stamp, now time.Time) []byte {
	l.mu.RLock()
	e := l.m[key]
	l.mu.RUnlock()
	if e.body == nil || e.stamp.changes != stamp.changes {
		return nil
	}
	moved := e.stamp.moves != stamp.moves
	if age := now.Sub(e.made); age > listMaxAge || age > listAge && moved && e.renewed.CompareAndSwap(false, true) {
		return nil
	}
	return e.body
}

func (l *lists) put(key string, e encodedList) {
	if len(e.body) < minListSize || len(e.body) > maxListsAll/2 || len(key) > maxListKey {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= len(l.m[key].body)
	delete(l.m, key)
	if len(l.m) >= maxLists || l.bytes+len(e.body) > maxListsAll {
		clear(l.m) // those that are still asked for come back
		l.bytes = 0
	}
	l.bytes += len(e.body)
	if l.m == nil {
		l.m = map[string]encodedList{}
	}
	e.renewed = new(atomic.Bool)
	l.m[key] = e
}

// listKey is who asks and what.
func listKey(who Caller, method string, req proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return "" // nothing is kept under it
	}
	return method + "\x00" + who.User + "\x00" + string(b)
}

// encoded makes a message that is written as these bytes, which must be the
// encoding of a message of its type.
func encoded[M proto.Message](m M, body []byte) M {
	m.ProtoReflect().SetUnknown(body)
	return m
}

// keep encodes a list once, for the one who asked and for those to come.
func (d *Daemon) keep(key string, stamp Stamp, now time.Time, m interface {
	proto.Message
	MarshalVT() ([]byte, error)
}) []byte {
	body, err := m.MarshalVT()
	if err != nil || key == "" {
		return nil
	}
	d.lists.put(key, encodedList{stamp: stamp, made: now, body: body})
	return body
}

// Kept is a document that another door of this process gave to Keep, while it
// may still be shown. The key says who asked for what.
func (d *Daemon) Kept(key string) []byte {
	return d.lists.get("web\x00"+key, d.Stamp(), time.Now())
}

// Keep keeps a document that was made after its stamp was read. Short ones are
// not kept. Nobody may write to it any more.
func (d *Daemon) Keep(key string, stamp Stamp, document []byte) {
	d.lists.put("web\x00"+key, encodedList{stamp: stamp, made: time.Now(), body: document})
}

// Moves counts the batches of events that were more than questions: whatever
// any view shows, but for the passing of time, is the same while it reads the
// same. It moves with every heartbeat.
func (d *Daemon) Moves() uint64 { return d.moves.Load() }
