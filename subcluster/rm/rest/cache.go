// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// cached serves a cached copy of a long document until the server reports a relevant change. Dashboards poll documents
// of thousands of nodes and applications, which cost milliseconds to make. Concurrent requests for the same document
// wait while one of them makes it.
func (h *Handler) cached(make http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		packed := webdoc.TakesGzip(r)
		user, _ := h.who(r)
		key := strings.Join(
			[]string{
				"web",
				user,
				r.URL.Path,
				r.URL.RawQuery,
				contentType(r)[0],
				map[bool]string{true: "packed"}[packed],
				r.Header.Get(subcluster.RouterHeader),
			},
			"\x00",
		)
		doc := h.s.Kept(key)
		if doc.Body == nil {
			var c *recorder
			if doc, c = h.makeOnce(key, packed, make, w.Header(), r); c != nil {
				if tag := entityTag(doc); tag != "" {
					w.Header().Set("ETag", tag)
				}
				w.WriteHeader(c.status)
				w.Write(c.body) // fails only if the client closed the connection
				return
			}
		}
		sendCached(w, r, doc, packed)
	}
}

// entityTag returns a document's tag as an HTTP ETag (RFC 9110, section 8.8.3).
func entityTag(doc server.Document) string {
	if doc.Tag == "" {
		return ""
	}
	return `"` + doc.Tag + `"`
}

// makeOnce returns the document if another request has cached it in the meantime. Otherwise it makes the document.
// Nothing is sent under the lock, so a slow reader delays no other request. A panicking handler releases the lock.
func (h *Handler) makeOnce(
	key string,
	packed bool,
	make http.HandlerFunc,
	header http.Header,
	r *http.Request,
) (server.Document, *recorder) {
	making := h.making.of(key)
	making.Lock()
	defer making.Unlock()
	if doc := h.s.Kept(key); doc.Body != nil {
		return doc, nil
	}
	stamp := h.s.Stamp()
	c := &recorder{header: header, status: http.StatusOK}
	make(c, r)
	if c.status == http.StatusOK && (c.header.Get("Content-Encoding") == "gzip") == packed {
		return h.s.Keep(key, stamp, c.body), c
	}
	return server.Document{}, c
}

// sendCached sends a document, or "not modified" to a client with the current copy.
func sendCached(w http.ResponseWriter, r *http.Request, doc server.Document, packed bool) {
	header, tag := w.Header(), entityTag(doc)
	header["Content-Type"] = contentType(r)
	header["Vary"] = varyEncoding
	header.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if packed {
		header.Set("Content-Encoding", "gzip")
	}
	w.Write(doc.Body) // fails only if the client closed the connection
}

// locks maps many keys to a few locks.
type locks struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

func (l *locks) of(key string) *sync.Mutex {
	return &l.locks[maphash.String(l.seed, key)%uint64(len(l.locks))]
}

// recorder buffers a response.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (c *recorder) Header() http.Header { return c.header }

func (c *recorder) WriteHeader(status int) { c.status = status }

func (c *recorder) Write(b []byte) (int, error) {
	if c.body == nil {
		c.body = make([]byte, 0, len(b))
	}
	c.body = append(c.body, b...)
	return len(b), nil
}

// shortDocumentAge is the maximum age of a cached short document with numbers that change with time alone, such as
// rates per second.
const shortDocumentAge = 100 * time.Millisecond

// shortCache caches a short document in each form until an operation may change the machine. Queries do not invalidate
// it.
type shortCache [2]atomic.Pointer[shortDocument]

type shortDocument struct {
	moves uint64
	made  time.Time
	body  []byte
}

func (s *shortCache) form(r *http.Request) *atomic.Pointer[shortDocument] { return &s[formOf(r)] }

// formOf returns the index of a document's form.
func formOf(r *http.Request) int {
	if webdoc.PrefersXML(r) {
		return 1
	}
	return 0
}

// sendShort sends the cached document and returns true, unless the document is out of date.
func (h *Handler) sendShort(w http.ResponseWriter, r *http.Request, s *shortCache) bool {
	k := s.form(r).Load()
	if k == nil || k.moves != h.s.Moves() || time.Since(k.made) > shortDocumentAge {
		return false
	}
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, http.StatusOK, k.body)
	return true
}
