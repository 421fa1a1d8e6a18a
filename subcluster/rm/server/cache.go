// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A long list takes milliseconds to make, and dashboards and federations request the same one again and again. So an
// encoded document is cached until a change. A change is an application that came, went or changed its state, a node
// that came or went, or an administrator's change. Values that change with every heartbeat, such as progress and use,
// are older: the first request after documentAge renews the document. Other requests get the old document meanwhile,
// up to documentMaxAge. Without any event a document is valid equally long, because then only counts of seconds
// change. The cache is in this package, so that the protocols have no state (BenchmarkChangingList in rm/rpc).
const (
	documentAge     = 100 * time.Millisecond
	documentMaxAge  = time.Second
	maxDocuments    = 64
	minDocumentSize = 8 << 10 // bytes; shorter documents are made as fast as found
	maxDocumentKey  = 4 << 10
	maxDocumentsAll = 128 << 20 // bytes of all cached documents
)

// Stamp is a point in a machine's sequence of changes, read before a document is made.
type Stamp struct {
	changes, moves uint64
	at             time.Time
}

// Stamp returns the current stamp.
func (s *Server) Stamp() Stamp { return Stamp{s.changes.Load(), s.moves.Load(), time.Now()} }

// Moves counts the batches of events that did more than query. While it is unchanged, the content of all views is
// unchanged, except for the passing of time. Every heartbeat changes it.
func (s *Server) Moves() uint64 { return s.moves.Load() }

// Document is an encoded document. Its body is read-only.
type Document struct {
	Body []byte
	// Tag is unique among all cached documents of all ResourceManagers: a client that has the document with this tag
	// need not receive it again. It is empty for a document that is not cached.
	Tag string
}

// Kept returns a cached document while it is current; otherwise its body is nil. The key names protocol, caller, and
// request.
func (s *Server) Kept(key string) Document { return s.documents.get(key, s.Stamp()) }

// Keep caches a document that was made after its stamp was read, and returns it. Short documents are not cached. The
// body must not be changed afterwards.
func (s *Server) Keep(key string, stamp Stamp, body []byte) Document {
	return s.documents.put(key, stamp, body)
}

type document struct {
	Document
	stamp   Stamp
	renewed *atomic.Bool // a request is making the next document
}

// documents has the encoded documents by key.
type documents struct {
	mu    sync.RWMutex
	m     map[string]document
	bytes int
	life  string // of this process, in tags: other processes also count from one
	last  uint64 // tag
}

// get returns a document that is unchanged since and young enough.
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
		clear(d.m) // requested ones are cached again
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
