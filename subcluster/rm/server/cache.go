// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// A long list costs milliseconds to make, and dashboards and federations ask
// for the same one over and over. So an encoded document is kept and given again
// until something changed: an application came, went or changed its state, a
// node came or went, an administrator did anything. What moves with every
// heartbeat, as progress and use do, is made anew after documentAge by the first
// who asks then; others are given the old document meanwhile, up to
// documentMaxAge. While nothing moved at all it is given for so long too: what
// then changes are counts of seconds. It is here, and not in the protocols, so
// that they have no state (BenchmarkChangingList in rm/rpc).
const (
	documentAge     = 100 * time.Millisecond
	documentMaxAge  = time.Second
	maxDocuments    = 64
	minDocumentSize = 8 << 10 // bytes; a shorter document is made as fast as found
	maxDocumentKey  = 4 << 10
	maxDocumentsAll = 128 << 20 // bytes of all that are kept
)

// Stamp is a moment in the life of a machine, read before something is made of
// it.
type Stamp struct {
	changes, moves uint64
	at             time.Time
}

// Stamp returns the present moment.
func (s *Server) Stamp() Stamp { return Stamp{s.changes.Load(), s.moves.Load(), time.Now()} }

// Moves counts the batches of events that were more than questions: whatever
// any view shows, but for the passing of time, is the same while it reads the
// same. It moves with every heartbeat.
func (s *Server) Moves() uint64 { return s.moves.Load() }

// Kept returns a document given to Keep, while it may still be shown, or nil.
// The key says which protocol made it, who asked, and for what.
func (s *Server) Kept(key string) []byte { return s.documents.get(key, s.Stamp()) }

// Keep keeps a document that was made after its stamp was read. Short ones are
// not kept. Nobody may write to it any more.
func (s *Server) Keep(key string, stamp Stamp, document []byte) {
	s.documents.put(key, stamp, document)
}

type document struct {
	stamp   Stamp
	body    []byte
	renewed *atomic.Bool // somebody makes the next one
}

// documents are the encoded documents by key.
type documents struct {
	mu    sync.RWMutex
	m     map[string]document
	bytes int
}

// get returns the document that nothing changed since, and is young enough.
func (d *documents) get(key string, now Stamp) []byte {
	d.mu.RLock()
	e := d.m[key]
	d.mu.RUnlock()
	if e.body == nil || e.stamp.changes != now.changes {
		return nil
	}
	age, moved := now.at.Sub(e.stamp.at), e.stamp.moves != now.moves
	if age > documentMaxAge || age > documentAge && moved && e.renewed.CompareAndSwap(false, true) {
		return nil
	}
	return e.body
}

func (d *documents) put(key string, stamp Stamp, body []byte) {
	if key == "" || len(body) < minDocumentSize || len(body) > maxDocumentsAll/2 || len(key) > maxDocumentKey {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes -= len(d.m[key].body)
	delete(d.m, key)
	if len(d.m) >= maxDocuments || d.bytes+len(body) > maxDocumentsAll {
		clear(d.m) // those that are still asked for come back
		d.bytes = 0
	}
	d.bytes += len(body)
	if d.m == nil {
		d.m = map[string]document{}
	}
	d.m[key] = document{stamp: stamp, body: body, renewed: new(atomic.Bool)}
}
