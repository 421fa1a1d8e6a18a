// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"strconv"
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

// Document is an encoded document. Nobody may write to its body.
type Document struct {
	Body []byte
	// Tag names it among all that ResourceManagers ever kept: who has the document of this
	// tag need not be sent it. Empty of one that is not kept.
	Tag string
}

// Kept returns a document given to Keep, while it may still be shown; its body is nil
// otherwise. The key says which protocol made it, who asked, and for what.
func (s *Server) Kept(key string) Document { return s.documents.get(key, s.Stamp()) }

// Keep keeps a document that was made after its stamp was read, and returns it. Short
// ones are not kept. Nobody may write to it any more.
func (s *Server) Keep(key string, stamp Stamp, body []byte) Document {
	return s.documents.put(key, stamp, body)
}

type document struct {
	Document
	stamp   Stamp
	renewed *atomic.Bool // somebody makes the next one
}

// documents are the encoded documents by key.
type documents struct {
	mu    sync.RWMutex
	m     map[string]document
	bytes int
	life  string // of this process, in tags: other ones count from one, too
	last  uint64 // tag
}

// get returns the document that nothing changed since, and is young enough.
func (d *documents) get(key string, now Stamp) Document {
	d.mu.RLock()
	e := d.m[key]
	d.mu.RUnlock()
	if e.Body == nil || e.stamp.changes != now.changes {
		return Document{}
	}
	age, moved := now.at.Sub(e.stamp.at), e.stamp.moves != now.moves
	if age > documentMaxAge || age > documentAge && moved && e.renewed.CompareAndSwap(false, true) {
		return Document{}
	}
	return e.Document
}

func (d *documents) put(key string, stamp Stamp, body []byte) Document {
	if key == "" || len(body) < minDocumentSize || len(body) > maxDocumentsAll/2 || len(key) > maxDocumentKey {
		return Document{Body: body}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes -= len(d.m[key].Body)
	delete(d.m, key)
	if len(d.m) >= maxDocuments || d.bytes+len(body) > maxDocumentsAll {
		clear(d.m) // those that are still asked for come back
		d.bytes = 0
	}
	d.bytes += len(body)
	if d.m == nil {
		d.m, d.life = map[string]document{}, rand.Text()
	}
	d.last++
	made := Document{Body: body, Tag: d.life + "-" + strconv.FormatUint(d.last, 10)}
	d.m[key] = document{Document: made, stamp: stamp, renewed: new(atomic.Bool)}
	return made
}
