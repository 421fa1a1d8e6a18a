// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
)

// batchWait is the longest that a request waits for the page in the making: a member that does not answer delays
// that one, and not later ones.
const batchWait = 20 * time.Millisecond

// pageBatcher lets requests for one page share it: those that come while the page is being made are all answered with
// the next one. That begins when the one in the making is done, or after batchWait. No request is answered with
// data read before it came, so a client that has changed something sees that. A request that comes alone is served as
// without this.
type pageBatcher struct {
	mu    sync.Mutex
	pages map[string]*page // by pageKey: those in the making
}

// page is one that is being made, or that a batch is about to make.
type page struct {
	making int    // how often at this time
	next   *batch // of the requests that wait; nil: none does
}

// batch is the requests that are answered with one page. The first of them makes it.
type batch struct {
	begin   chan struct{}      // is signalled when the page in the making is done
	waits   atomic.Int64       // how many wait: the first, and those that joined it and have not left
	abandon context.CancelFunc // of the page; set before the first may go
	done    chan struct{}      // is closed when answer is there
	answer  *recordedAnswer    // nil after done: it could not be made
}

// share is the middleware.
func (t *pageBatcher) share(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := pageKey(r)
		t.mu.Lock()
		p := t.pages[key]
		if p == nil {
			if t.pages == nil {
				t.pages = map[string]*page{}
			}
			p = &page{making: 1}
			t.pages[key] = p
			t.mu.Unlock()
			defer t.made(key, p)
			next.ServeHTTP(w, r)
			return
		}
		if b := p.next; b != nil {
			b.waits.Add(1)
			t.mu.Unlock()
			b.join(w, r)
			return
		}
		b := &batch{begin: make(chan struct{}, 1), done: make(chan struct{})}
		b.waits.Store(1)
		p.next = b
		t.mu.Unlock()
		// The client may go away, but not this request: others may have joined.
		enough := time.NewTimer(batchWait)
		select {
		case <-b.begin:
		case <-enough.C:
		}
		enough.Stop()
		t.mu.Lock()
		p.next = nil
		p.making++
		t.mu.Unlock()
		defer t.made(key, p)
		b.serve(next, w, r)
	})
}

// made has the batch that waits begin, if there is one.
func (t *pageBatcher) made(key string, p *page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.making--
	switch {
	case p.next != nil:
		select {
		case p.next.begin <- struct{}{}:
		default: // a finished one has signalled it
		}
	case p.making == 0:
		delete(t.pages, key)
	}
}

// serve makes the page for all requests of the batch and answers the first.
func (b *batch) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if b.waits.Load() == 1 { // no other waits, and none joins any more
		next.ServeHTTP(w, r)
		return
	}
	defer close(b.done) // also when it panics
	a := &recordedAnswer{header: http.Header{}}
	// The page is made while one of the clients waits for it. Otherwise clients that come and go would cost a page
	// each.
	ctx, abandon := context.WithCancel(context.WithoutCancel(r.Context()))
	defer abandon()
	b.abandon = abandon
	defer context.AfterFunc(r.Context(), b.leave)()
	next.ServeHTTP(a, r.WithContext(ctx))
	b.answer = a
	a.write(w)
}

// leave counts a client that has gone. The first goes only after it has begun the page, so abandon is set if none is
// left.
func (b *batch) leave() {
	if b.waits.Add(-1) == 0 {
		b.abandon()
	}
}

// join waits for the answer of the batch, and writes it.
func (b *batch) join(w http.ResponseWriter, r *http.Request) {
	select {
	case <-b.done:
	case <-r.Context().Done():
		b.leave()
		return
	}
	if b.answer == nil {
		fail(w, r, &creel.Error{
			Kind: creel.ErrUnavailable, What: "the page could not be made", Why: "the router failed; see its log",
			Try: "ask again", RetryAfter: time.Second,
		})
		return
	}
	b.answer.write(w)
}

// recordedAnswer is the output of a handler.
type recordedAnswer struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *recordedAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *recordedAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		if n, err := strconv.Atoi(a.header.Get("Content-Length")); err == nil {
			a.body = make([]byte, 0, n)
		}
	}
}

// Write implements http.ResponseWriter.
func (a *recordedAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, b...)
	return len(b), nil
}

// write sends the answer to a request.
func (a *recordedAnswer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = slices.Clone(values)
	}
	w.WriteHeader(cmp.Or(a.status, http.StatusOK)) // the default for handlers that write nothing
	w.Write(a.body)                                // an error here is the client's going away
}

// pageKey is equal for requests that get the same answer: the parts of a request that members and handlers read. The
// query contains the caller. Trace headers are not in it: members get those of the request that makes the page.
func pageKey(r *http.Request) string {
	var b strings.Builder
	uri := r.URL.RequestURI()
	b.Grow(len(uri) + 128)
	b.WriteString(r.Method)
	b.WriteByte('\n') // occurs neither in an address nor in a header
	b.WriteString(uri)
	b.WriteByte('\n')
	b.WriteString(clientAddress(r))
	for _, name := range [...]string{
		"Accept", "Content-Type", "X-Xsrf-Header", "User-Agent", "Authorization", "Cookie",
	} {
		b.WriteByte('\n')
		for i, v := range r.Header[name] {
			if i > 0 {
				b.WriteByte('\r')
			}
			b.WriteString(v)
		}
	}
	return b.String()
}
