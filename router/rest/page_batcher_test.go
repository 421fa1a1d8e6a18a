// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowPage is a page with the value at its beginning, which completes when it is released.
type slowPage struct {
	pageBatcher pageBatcher
	began       atomic.Int64
	value       atomic.Int64
	abandoned   atomic.Int64
	release     chan func() // runs in the handler before it answers
}

func (p *slowPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.began.Add(1)
	read := p.value.Load()
	defer context.AfterFunc(r.Context(), func() { p.abandoned.Add(1) })()
	before := <-p.release
	before()
	if err := r.Context().Err(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Partial-Result", "true")
	fmt.Fprint(w, read)
}

// ask asks for the page, and returns once the expected event has happened.
func (p *slowPage) ask(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	go func() {
		defer func() {
			if recover() != nil {
				w.Code = 599
			}
		}()
		p.pageBatcher.share(p).ServeHTTP(w, r)
	}()
	synctest.Wait()
	return w
}

func (p *slowPage) finish() {
	p.release <- func() {}
	synctest.Wait()
}

func (p *slowPage) mustHaveBegun(t *testing.T, times int64) {
	t.Helper()
	if n := p.began.Load(); n != times {
		t.Fatalf("the page was begun %d times, want %d", n, times)
	}
}

func get(url string) *http.Request { return httptest.NewRequest("GET", url, nil) }

// answers checks the answers to requests; each is answered by now.
func answers(t *testing.T, want string, ws ...*httptest.ResponseRecorder) {
	t.Helper()
	for i, w := range ws {
		if w.Code != 200 || w.Body.String() != want || w.Header().Get("X-Partial-Result") != "true" {
			t.Errorf("request %d: %d %q %v, want %q", i, w.Code, w.Body, w.Header(), want)
		}
	}
}

// story runs a story of one page.
func story(t *testing.T, tell func(t *testing.T, p *slowPage)) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowPage{release: make(chan func())}
		tell(t, p)
		synctest.Wait()
		if len(p.pageBatcher.pages) != 0 {
			t.Errorf("%d pages are kept", len(p.pageBatcher.pages))
		}
	})
}

func TestRequestDuringPageBuildSharesNext(t *testing.T) {
	story(t, func(t *testing.T, p *slowPage) {
		first := p.ask(get("/scheduler"))
		second := p.ask(get("/scheduler"))
		p.value.Store(1) // before anything is read for the second: it sees that, too
		third := p.ask(get("/scheduler"))
		p.mustHaveBegun(t, 1)
		p.finish()
		p.mustHaveBegun(t, 2)

		// The page has been begun: a client that has changed something does not get that one.
		p.value.Store(2)
		fourth := p.ask(get("/scheduler"))
		p.finish()
		p.finish()
		p.mustHaveBegun(t, 3)
		answers(t, "0", first)
		answers(t, "1", second, third)
		answers(t, "2", fourth)
	})
}

func TestUnresponsiveMemberDelaysNoOther(t *testing.T) {
	story(t, func(t *testing.T, p *slowPage) {
		first := p.ask(get("/scheduler"))
		second, third := p.ask(get("/scheduler")), p.ask(get("/scheduler"))
		time.Sleep(batchWait - time.Nanosecond)
		p.mustHaveBegun(t, 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		p.mustHaveBegun(t, 2)
		fourth := p.ask(get("/scheduler"))
		time.Sleep(batchWait)
		synctest.Wait()
		p.mustHaveBegun(t, 3)
		for range 3 {
			p.finish()
		}
		answers(t, "0", first, second, third, fourth)
	})
}

func TestOnlyTheSameRequestsShare(t *testing.T) {
	others := []*http.Request{
		get("/scheduler?user.name=alice"), get("/scheduler?user.name=bob"), get("/scheduler?doAs=bob"), get("/metrics"),
		httptest.NewRequest("HEAD", "/scheduler", nil),
	}
	for _, name := range []string{"Accept", "Authorization", "Cookie"} {
		r := get("/scheduler")
		r.Header.Set(name, "other")
		others = append(others, r)
	}
	elsewhere := get("/scheduler")
	elsewhere.RemoteAddr = "10.0.0.7:1234"
	others = append(others, elsewhere)
	story(t, func(t *testing.T, p *slowPage) {
		p.ask(get("/scheduler"))
		for i, r := range others {
			p.ask(r)
			p.mustHaveBegun(t, int64(i+2)) // at once: it waits for none of the others
		}
		for range len(others) + 1 {
			p.finish()
		}
	})
}

func TestPageBuildSurvivesItsClient(t *testing.T) {
	story(t, func(t *testing.T, p *slowPage) {
		first := p.ask(get("/scheduler"))
		ctx, leave := context.WithCancel(t.Context())
		p.ask(get("/scheduler").WithContext(ctx)) // makes the next
		third := p.ask(get("/scheduler"))
		gone, goes := context.WithCancel(t.Context())
		fourth := p.ask(get("/scheduler").WithContext(gone))
		goes()
		p.finish()
		p.mustHaveBegun(t, 2)
		leave()
		p.finish()
		answers(t, "0", first, third)
		if fourth.Body.Len() > 0 {
			t.Errorf("a client that has gone is answered %q", fourth.Body)
		}
	})
}

func TestPageBuildEndsWithItsLastClient(t *testing.T) {
	story(t, func(t *testing.T, p *slowPage) {
		first := p.ask(get("/scheduler"))
		var leave []func()
		for range 3 { // the first of them makes the next
			ctx, goes := context.WithCancel(t.Context())
			p.ask(get("/scheduler").WithContext(ctx))
			leave = append(leave, goes)
		}
		leave[1]() // before the page is begun
		synctest.Wait()
		p.finish()
		p.mustHaveBegun(t, 2)
		leave[0]()
		synctest.Wait()
		if p.abandoned.Load() != 0 {
			t.Error("the page is abandoned, and a client waits for it")
		}
		leave[2]()
		synctest.Wait()
		if p.abandoned.Load() != 1 {
			t.Error("the page is made, and no client waits for it")
		}
		p.finish()
		answers(t, "0", first)
	})
}

// A handler may answer by writing nothing, as net/http has it.
func TestAPageOfNothingIsSharedToo(t *testing.T) {
	w := httptest.NewRecorder()
	(&recordedAnswer{header: http.Header{}}).write(w)
	if w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}

func TestSharersOfPanickingPageAreAnswered(t *testing.T) {
	story(t, func(t *testing.T, p *slowPage) {
		first := p.ask(get("/scheduler"))
		second, third := p.ask(get("/scheduler")), p.ask(get("/scheduler"))
		p.finish()
		p.release <- func() { panic("a fault") }
		synctest.Wait()
		answers(t, "0", first)
		if second.Code != 599 || third.Code != http.StatusServiceUnavailable || third.Header().Get("Retry-After") == "" {
			t.Errorf("the maker %d, who shares %d %s", second.Code, third.Code, third.Body)
		}
		last := p.ask(get("/scheduler")) // and the next page is made
		p.finish()
		answers(t, "0", last)
	})
}

// Without other requests, a request is served directly: its answer is not copied.
func TestAloneAPageIsWrittenToItsClient(t *testing.T) {
	var c pageBatcher
	w := httptest.NewRecorder()
	c.share(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
		if got != http.ResponseWriter(w) {
			t.Errorf("the handler writes to a %T", got)
		}
	})).ServeHTTP(w, get("/scheduler"))
}
