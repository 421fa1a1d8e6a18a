// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rpcServer serves one method of a protocol at an address until stop.
func rpcServer(t *testing.T, address, protocol, method string, serve hrpc.RawHandler) (at string, stop func()) {
	t.Helper()
	server, err := hrpc.NewServer(hrpc.Config{
		Simple:      true,
		ErrorOf:     yarnrpc.ErrorOf,
		DrainTime:   10 * time.Millisecond,
		Impersonate: func(string, string, netip.Addr) error { return nil },
		Services: []hrpc.Service{
			{Protocol: protocol, Version: 1, Methods: map[string]hrpc.Method{method: {Raw: serve}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// closedAddress has no listener. A port that a test has just released would not do: other programs take it.
const closedAddress = "127.0.0.1:1"

func pool(t *testing.T, c Config) *Pool {
	t.Helper()
	c.User, c.KindOf = "router", yarnrpc.KindOf
	p := NewPool(c)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func member(p *Pool, a subcluster.Addresses) *Member {
	s := &subcluster.Status{}
	s.ID, s.Addresses = "sc-1", a
	return p.Member(s)
}

// eventually asks until cond holds; the bound is far above the time needed.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// changes notes the states of breakers.
type changes struct {
	mu  sync.Mutex
	all []string
}

func (c *changes) record(id creel.SubclusterID, k Kind, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf("%s %s %s", id, k, to))
}

func (c *changes) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// A member that is not there is left alone after some silences, one kind of call by itself, and comes back by itself
// when it is there again. Calls that timed out while this process was stopped open no breaker; the same calls without
// a pause do.
func TestOwnPauseIsNotMemberFailure(t *testing.T) {
	silence := make(chan struct{})
	var ahead atomic.Int64
	var asleep atomic.Bool // we are, while the member has the call
	at, _ := rpcServer(t, "127.0.0.1:0", clientProtocol, "getClusterMetrics",
		func(context.Context, []byte) ([]byte, error) {
			if asleep.Load() {
				ahead.Add(int64(time.Minute))
			}
			<-silence
			return nil, nil
		})
	t.Cleanup(func() { close(silence) })
	clock := pauseclock.NewClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = clock.Run(ctx) })
	defer func() { cancel(); wg.Wait() }()
	c := Config{Trips: 2, OpenFor: time.Hour, Clock: clock}
	c.Deadlines[Read] = time.Second // for a call to arrive in, on a busy machine
	p := pool(t, c)
	m := member(p, subcluster.Addresses{Client: at})
	call := func() {
		_, err := m.Client(t.Context(), Read, "ann", "getClusterMetrics", nil)
		var u *Unavailable
		if !errors.As(err, &u) || !u.Sent {
			t.Errorf("a silent member: %v", err)
		}
	}
	asleep.Store(true)
	for range 4 {
		call()
	}
	asleep.Store(false)
	if open := m.Open(); len(open) > 0 {
		t.Errorf("our own pauses opened %v", open)
	}
	for range 2 {
		call()
	}
	if open := m.Open(); !slices.Equal(open, []Kind{Read}) {
		t.Errorf("silence of the member opened %v", open)
	}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	// A host of its own: no other program takes the port between here and the server below.
	l, err := net.Listen("tcp", "127.0.0.77:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	var noted changes
	p := pool(t, Config{Trips: 3, OpenFor: 50 * time.Millisecond, Changed: noted.record})
	m := member(p, subcluster.Addresses{Client: at})
	call := func(k Kind) error {
		_, err := m.Client(context.Background(), k, "ann", "getClusterMetrics", nil)
		return err
	}
	for range 3 {
		err := call(Write)
		var u *Unavailable
		if !errors.As(err, &u) || u.Sent || !errors.Is(err, creel.ErrUnavailable) || u.Member != "sc-1" ||
			!strings.Contains(err.Error(), "cannot be reached") {
			t.Fatalf("nobody listens: %v", err)
		}
	}
	if open := m.Open(); !slices.Equal(open, []Kind{Write}) {
		t.Errorf("open: %v", open)
	}
	if err := call(Read); err == nil || strings.Contains(err.Error(), "rejected") {
		t.Errorf("another kind of call: %v", err)
	}
	// While it is open nothing is sent.
	cut := false
	for range 100 {
		if err := call(Write); strings.Contains(err.Error(), "write calls are rejected") {
			cut = true
			var u *Unavailable
			if !errors.As(err, &u) || u.Sent {
				t.Errorf("a call that was cut off: %v", err)
			}
			break
		}
	}
	if !cut {
		t.Error("no call was cut off")
	}
	rpcServer(
		t,
		at,
		clientProtocol,
		"getClusterMetrics",
		func(context.Context, []byte) ([]byte, error) { return []byte{}, nil },
	)
	eventually(t, "an answer", func() bool { return call(Write) == nil })
	if open := m.Open(); len(open) != 0 {
		t.Errorf("open after an answer: %v", open)
	}
	all := noted.seen()
	if len(all) < 3 || all[0] != "sc-1 write open" || all[len(all)-1] != "sc-1 write closed" ||
		!slices.Contains(all, "sc-1 write half-open") {
		t.Errorf("noted %q", all)
	}
}

// The heartbeats of a silent member return: the next call reaches it, although the breaker's time is not over. One that
// still does not answer costs one call.
func TestBreakerRetriesWhenHeartbeatsReturn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.78:0") // no other program takes a port of this host
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	var noted changes
	p := pool(t, Config{Trips: 2, OpenFor: time.Hour, Changed: noted.record})
	status := &subcluster.Status{State: subcluster.StateActive}
	status.ID, status.Addresses, status.Epoch = "sc-1", subcluster.Addresses{Client: at}, 1
	call := func() error {
		_, err := p.Member(status).Client(t.Context(), Read, "ann", "getClusterMetrics", nil)
		return err
	}
	cut := func() bool { return strings.Contains(call().Error(), "calls are rejected") }
	for range 2 {
		if cut() {
			t.Fatal("it opened too early")
		}
	}
	if !cut() {
		t.Fatal("no call was cut off")
	}
	for _, change := range []func(){
		func() {
			status.State = subcluster.StateLost
			if !cut() {
				t.Error("a lost member is called")
			}
			status.State = subcluster.StateActive
		},
		func() { status.Epoch++ }, // it started again within its lease
	} {
		change()
		if cut() {
			t.Error("no call passes after its return")
		}
		if !cut() {
			t.Error("one more failure did not open the breaker")
		}
	}
	rpcServer(t, at, clientProtocol, "getClusterMetrics",
		func(context.Context, []byte) ([]byte, error) { return []byte{}, nil })
	status.Epoch++
	for range 3 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if open := p.Member(status).Open(); len(open) != 0 {
		t.Errorf("open after an answer: %v", open)
	}
	all := noted.seen()
	if n := len(all); n < 2 || all[n-2] != "sc-1 read half-open" || all[n-1] != "sc-1 read closed" {
		t.Errorf("noted %q", all)
	}
}

// A refusal is an answer: it opens no breaker, however often it comes. A caller that goes away proves nothing about
// the member either.
func TestRefusalsAndCallersGoneOpenNothing(t *testing.T) {
	p := pool(t, Config{Trips: 2})
	hold := make(chan struct{})
	at, _ := rpcServer(
		t,
		"127.0.0.1:0",
		clientProtocol,
		"getApplicationReport",
		func(ctx context.Context, request []byte) ([]byte, error) {
			if len(request) > 0 {
				<-hold
			}
			return nil, &creel.Error{Kind: creel.ErrApplicationNotFound, What: "no such application"}
		},
	)
	t.Cleanup(func() { close(hold) })
	m := member(p, subcluster.Addresses{Client: at})
	for range 10 {
		_, err := m.Client(context.Background(), Read, "ann", "getApplicationReport", nil)
		var u *Unavailable
		if !errors.Is(err, creel.ErrApplicationNotFound) || errors.As(err, &u) {
			t.Fatalf("a refusal: %v", err)
		}
	}
	for range 5 {
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error, 1)
		go func() {
			_, err := m.Client(ctx, Read, "ann", "getApplicationReport", []byte{8, 1})
			gone <- err
		}()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatalf("a caller that went away: %v", err)
		}
	}
	if open := m.Open(); len(open) != 0 {
		t.Errorf("open: %v", open)
	}
}

// A member that takes a call and never answers: the deadline of the call's kind
// ends it, and it may have been served.
func TestDeadlineOfEachKind(t *testing.T) {
	hold := make(chan struct{})
	at, _ := rpcServer(
		t,
		"127.0.0.1:0",
		clientProtocol,
		"submitApplication",
		func(context.Context, []byte) ([]byte, error) {
			<-hold
			return nil, nil
		},
	)
	t.Cleanup(func() { close(hold) })
	var m *Member
	var err error
	var u *Unavailable
	for given := 300 * time.Millisecond; given < time.Minute; given *= 2 { // a slow machine sends later
		deadlines := [kinds]time.Duration{Write: given, Read: time.Hour, List: time.Hour}
		m = member(pool(t, Config{Trips: 1000, Deadlines: deadlines}), subcluster.Addresses{Client: at})
		if _, err = m.Client(context.Background(), Write, "ann", "submitApplication", nil); errors.As(err, &u) && u.Sent {
			break
		}
	}
	if !errors.As(err, &u) || !u.Sent || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "may have been served") {
		t.Errorf("no answer in time: %v", err)
	}
	// The other kind's deadline is not this one's.
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err = m.Client(
		ctx,
		Read,
		"ann",
		"submitApplication",
		nil,
	); err == nil ||
		time.Since(began) < 90*time.Millisecond {
		t.Errorf("a read ended after %v with %v", time.Since(began), err)
	}
}

// A member that accepts calls and hangs costs lists their deadline once: the next ones fail at once, while calls of
// other kinds, and lists whose caller had less time, open no breaker so soon.
func TestTimedOutListOpensBreaker(t *testing.T) {
	hold := make(chan struct{})
	at, _ := rpcServer(t, "127.0.0.1:0", clientProtocol, "getApplications",
		func(context.Context, []byte) ([]byte, error) { <-hold; return nil, nil })
	t.Cleanup(func() { close(hold) })
	deadlines := [kinds]time.Duration{time.Second, time.Second, time.Second}
	m := member(pool(t, Config{Deadlines: deadlines, OpenFor: time.Hour}), subcluster.Addresses{Client: at})
	call := func(ctx context.Context, k Kind) error {
		_, err := m.Client(ctx, k, "ann", "getApplications", nil)
		return err
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, err := range []error{call(t.Context(), Write), call(t.Context(), Read), call(short, List)} {
		if open := m.Open(); err == nil || len(open) > 0 {
			t.Errorf("after one call without an answer (%v): open %v", err, open)
		}
	}
	if err := call(t.Context(), List); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a list: %v", err)
	}
	if open := m.Open(); !slices.Equal(open, []Kind{List}) {
		t.Errorf("after a list that waited in vain: open %v", open)
	}
	if err := call(t.Context(), List); err == nil || !strings.Contains(err.Error(), "rejected") {
		t.Errorf("the next list: %v", err)
	}
}

func TestDefaultsOfAPool(t *testing.T) {
	c := Config{}.withDefaults()
	if c.Deadlines != [kinds]time.Duration{15 * time.Second, 5 * time.Second, 10 * time.Second} ||
		c.OpenFor != 5*time.Second ||
		c.Trips != 5 {
		t.Errorf("%+v", c)
	}
}

// Of an HA pair the one that answers is kept to. A standby and a dead one are
// passed over, as they surely served nothing.
func TestPairOfHosts(t *testing.T) {
	var standby, active atomic.Int64
	first, _ := rpcServer(
		t,
		"127.0.0.1:0",
		clientProtocol,
		"getClusterMetrics",
		func(context.Context, []byte) ([]byte, error) {
			standby.Add(1)
			return nil, &creel.Error{
				Kind: creel.ErrStandby,
				What: "Operation category READ is not supported in state standby",
			}
		},
	)
	second, stop := rpcServer(
		t,
		"127.0.0.1:0",
		clientProtocol,
		"getClusterMetrics",
		func(context.Context, []byte) ([]byte, error) {
			active.Add(1)
			return []byte{10, 0}, nil
		},
	)
	m := member(
		pool(t, Config{Trips: 1000}),
		subcluster.Addresses{Client: closedAddress + "," + first + "," + second},
	)
	for range 5 {
		if b, err := m.Client(context.Background(), Read, "ann", "getClusterMetrics", nil); err != nil || len(b) != 2 {
			t.Fatalf("%v, %v", b, err)
		}
	}
	if standby.Load() != 1 || active.Load() != 5 {
		t.Errorf("the standby was asked %d times, the active one %d times", standby.Load(), active.Load())
	}
	stop()
	if _, err := m.Client(
		context.Background(),
		Read,
		"ann",
		"getClusterMetrics",
		nil,
	); !errors.Is(err, creel.ErrStandby) &&
		!errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("only a standby is left: %v", err)
	}
	if _, err := member(
		pool(t, Config{}),
		subcluster.Addresses{},
	).Client(context.Background(), Read, "", "getClusterMetrics", nil); err == nil ||
		!strings.Contains(err.Error(), "no client address") {
		t.Errorf("no address: %v", err)
	}
}

// Callers are named beside the router, which is the one that is known.
func TestCallersAreIdentified(t *testing.T) {
	seen := make(chan hrpc.Identity, 1)
	serve := func(ctx context.Context, _ []byte) ([]byte, error) {
		seen <- *hrpc.CallFrom(ctx).Identity
		return nil, nil
	}
	client, _ := rpcServer(t, "127.0.0.1:0", clientProtocol, "x", serve)
	admin, _ := rpcServer(t, "127.0.0.1:0", adminProtocol, "x", serve)
	m := member(pool(t, Config{}), subcluster.Addresses{Client: client, Admin: admin})
	for _, c := range []struct{ user, asUser, real string }{{"ann", "ann", "router"}, {"", "router", ""}, {"router", "router", ""}} {
		if _, err := m.Client(context.Background(), Read, c.user, "x", nil); err != nil {
			t.Fatal(err)
		}
		if who := <-seen; who.User != c.asUser || who.RealUser != c.real {
			t.Errorf("client call for %q came as %q by %q", c.user, who.User, who.RealUser)
		}
		if _, err := m.Admin(context.Background(), c.user, "x", nil); err != nil {
			t.Fatal(err)
		}
		if who := <-seen; who.User != c.asUser || who.RealUser != c.real {
			t.Errorf("admin call for %q came as %q by %q", c.user, who.User, who.RealUser)
		}
	}
}

// A member is kept as long as its addresses stay, and is made again with others.
func TestMemberOfThePool(t *testing.T) {
	p := pool(t, Config{Trips: 1, OpenFor: time.Hour})
	a := subcluster.Addresses{Client: closedAddress}
	m := member(p, a)
	if _, err := m.Client(context.Background(), Read, "", "x", nil); err == nil {
		t.Fatal("an answer from nobody")
	}
	if member(p, a) != m || len(m.Open()) != 1 {
		t.Error("not the same member, or not cut off")
	}
	at, _ := rpcServer(
		t,
		"127.0.0.1:0",
		clientProtocol,
		"x",
		func(context.Context, []byte) ([]byte, error) { return nil, nil },
	)
	moved := member(p, subcluster.Addresses{Client: at})
	if _, err := moved.Client(context.Background(), Read, "", "x", nil); err != nil || moved == m {
		t.Errorf("after it moved: %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if member(p, subcluster.Addresses{Client: at}) != moved {
				t.Error("two members of one name")
			}
		})
	}
	all.Wait()
}

func TestWebAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RawQuery, r.Header.Get("Accept"), b)
		case "/away":
			http.Redirect(w, r, "/echo", http.StatusTemporaryRedirect)
		case "/missing":
			http.Error(w, `{"RemoteException":{}}`, http.StatusNotFound)
		case "/cut":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
				conn.Close()
			}
		}
	}))
	defer server.Close()
	m := member(
		pool(t, Config{Trips: 1000}),
		subcluster.Addresses{Web: server.Listener.Addr().String() + "," + closedAddress},
	)
	get := func(m *Member, method, path string, body string) (string, http.Header, error) {
		b, head, err := m.Web(
			context.Background(),
			Read,
			method,
			path,
			"ann",
			http.Header{"Accept": {"application/xml"}},
			[]byte(body),
		)
		return string(b), head, err
	}
	if b, head, err := get(
		m,
		http.MethodPut,
		"/echo?a=b",
		"text",
	); err != nil || b != "PUT a=b application/xml text" || head.Get(StatusHeader) != "202" ||
		head.Get("Content-Type") != "text/plain" {
		t.Errorf("%q, %v, %v", b, head, err)
	}
	var status *StatusError
	if _, _, err := get(
		m,
		http.MethodGet,
		"/missing",
		"",
	); !errors.As(err, &status) || status.Code != http.StatusNotFound || !strings.Contains(string(status.Body), "RemoteException") ||
		!strings.Contains(err.Error(), "sc-1 answered 404") {
		t.Errorf("not found: %v", err)
	}
	if _, _, err := get(
		m,
		http.MethodGet,
		"/away",
		"",
	); !errors.As(err, &status) || status.Code != http.StatusTemporaryRedirect ||
		status.Header.Get("Location") != "/echo" {
		t.Errorf("a redirection is the client's to follow: %v", err)
	}
	var u *Unavailable
	if _, _, err := get(m, http.MethodGet, "/cut", ""); !errors.As(err, &u) || !u.Sent {
		t.Errorf("an answer cut short: %v", err)
	}
	dead := member(pool(t, Config{}), subcluster.Addresses{Web: closedAddress})
	if _, _, err := get(dead, http.MethodGet, "/echo", ""); !errors.As(err, &u) || u.Sent {
		t.Errorf("nobody listens: %v", err)
	}
	none := member(pool(t, Config{}), subcluster.Addresses{})
	if _, _, err := get(
		none,
		http.MethodGet,
		"/echo",
		"",
	); !errors.As(err, &u) || u.Sent ||
		!strings.Contains(err.Error(), "no web address") {
		t.Errorf("no address: %v", err)
	}
}
