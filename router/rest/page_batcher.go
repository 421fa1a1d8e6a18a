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

// batchWait is the longest time that a request waits for the page being made. So a member that does not answer delays
// that page, but not later requests.
const batchWait = 20 * time.Millisecond

// pageBatcher lets requests for the same page share one answer. All requests that arrive while the page is being made
// get the next page. Making that starts when the present one is done, or after batchWait. No request gets data read
// before its arrival, so a client sees its own changes. A single request is served directly.
type pageBatcher struct {
	mu    sync.Mutex
	pages map[string]*page // by pageKey, pages being made
}

// page is a page that is being made, or will be made by a batch.
type page struct {
	making int    // number of answers being made
	next   *batch // the waiting requests; nil: none
}

// batch is a set of requests that get the same answer. The first of them makes it.
type batch struct {
	begin   chan struct{}      // signalled when the page being made is done
	waits   atomic.Int64       // number of waiting requests: the first, and the joined ones that have not left
	abandon context.CancelFunc // cancels the page; set before the first request may leave
	done    chan struct{}      // closed when answer is set
	answer  *recordedAnswer    // nil after done: making it failed
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
		// This request must continue even if its client leaves: others may have joined.
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

// made starts the waiting batch, if there is one.
func (t *pageBatcher) made(key string, p *page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.making--
	switch {
	case p.next != nil:
		select {
		case p.next.begin <- struct{}{}:
		default: // another finished page has signalled it
		}
	case p.making == 0:
		delete(t.pages, key)
	}
}

// serve makes the page for all requests of the batch and answers the first.
func (b *batch) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if b.waits.Load() == 1 { // no other request has joined, and none can join now
		next.ServeHTTP(w, r)
		return
	}
	defer close(b.done) // also after a panic
	a := &recordedAnswer{header: http.Header{}}
	// The page is cancelled when no client waits for it any more. Otherwise each client that leaves would cost a
	// page.
	ctx, abandon := context.WithCancel(context.WithoutCancel(r.Context()))
	defer abandon()
	b.abandon = abandon
	defer context.AfterFunc(r.Context(), b.leave)()
	next.ServeHTTP(a, r.WithContext(ctx))
	b.answer = a
	a.write(w)
}

// leave counts a client that has gone. The first request leaves only after it has started the page, so abandon is set
// when none is left.
func (b *batch) leave() {
	if b.waits.Add(-1) == 0 {
		b.abandon()
	}
}

// join waits for the batch's answer and writes it.
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
	w.WriteHeader(cmp.Or(a.status, http.StatusOK)) // default for handlers that write nothing
	w.Write(a.body)                                // an error means that the client has gone
}

// pageKey returns the parts of a request that members and handlers read. Requests with the same key get the same
// answer. The query contains the caller. Trace headers are not included: members get the trace headers of the request
// that makes the page.
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
