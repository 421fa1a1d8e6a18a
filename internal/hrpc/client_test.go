// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestOneConnectionPerAddressLoginAndProtocol(t *testing.T) {
	cfg := echoConfig()
	cfg.Tokens = knowsToken
	cfg.Impersonate = func(string, string, netip.Addr) error { return nil }
	s := start(t, cfg)
	c := client(t, ClientConfig{})
	logins := []Login{alice, {User: "bob"}, {User: "alice", RealUser: "oozie"}, {Credential: knownToken}}
	for range 3 {
		for _, login := range logins { // new peers share too
			call(t, s.peer(c, login), "echo", "")
		}
	}
	if a, b := s.Stats().Accepted, c.Connections(); a != 4 || b != 4 {
		t.Errorf("%d connections accepted, %d open", a, b)
	}
}

func TestCallOfAnEndedContextIsNotSent(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	call(t, p, "echo", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		var transport *TransportError
		err := p.Call(ctx, "echo", text(""), newText())
		if !errors.As(err, &transport) || transport.Sent || !errors.Is(err, context.Canceled) {
			t.Fatalf("the call ended with %v", err)
		}
	}
}

func TestIdleClientConnectionsCloseAndReopen(t *testing.T) {
	s := start(t, echoConfig())
	c := client(t, ClientConfig{IdleTime: 40 * time.Millisecond})
	p := s.peer(c, alice)
	for i := range uint64(3) {
		call(t, p, "echo", "")
		if n := s.Stats().Accepted; n != i+1 {
			t.Errorf("%d connections so far", n)
		}
		eventually(t, "it is closed", func() bool { return c.Connections() == 0 && s.Stats().Connections == 0 })
	}
}

// The server here is a script that counts pings, because ours takes no notice.
func TestAWaitingCallKeepsItsConnectionByPings(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, ClientConfig{IdleTime: 20 * time.Millisecond, PingInterval: 20 * time.Millisecond})
	done := make(chan error)
	go func() {
		_, err := try(c.Peer(Target{Address: l.Addr().String(), Protocol: echoProtocol, Login: alice}), "echo", "")
		done <- err
	}()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	next := func() (h requestHeader) {
		var size [4]byte
		io.ReadFull(nc, size[:])
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		io.ReadFull(nc, frame)
		if _, err := h.open(frame); err != nil {
			t.Fatal(err)
		}
		return h
	}
	io.ReadFull(nc, make([]byte, 7))
	if h := next(); h.callID != idContext {
		t.Fatalf("%+v", h)
	}
	call := next()
	for range 3 {
		if h := next(); h.callID != idPing {
			t.Fatalf("%+v", h)
		}
	}
	nc.Write(frameOf(appendSuccessHeader(nil, call.callID, 0, string(call.clientID)), []byte{0}))
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantClosed(t, eofConn{nc}) // nothing waits any more: no ping, but the end
}

// eofConn lets wantClosed skip pings that were on their way.
type eofConn struct{ net.Conn }

func (c eofConn) Read(b []byte) (int, error) {
	for {
		if _, err := c.Conn.Read(b); err != nil {
			return 0, err
		}
	}
}

func TestSilentServerIsAbandonedOnRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, ClientConfig{DeadTime: 500 * time.Millisecond})
	_, err = try(c.Peer(Target{Address: l.Addr().String(), Protocol: echoProtocol, Login: alice}), "echo", "")
	var e *TransportError
	if !errors.As(err, &e) || !e.Sent {
		t.Errorf("a server that says nothing: %v", err)
	}
}

func TestAServerRestartedInBetween(t *testing.T) {
	s := start(t, echoConfig())
	c := client(t, ClientConfig{})
	p := s.peer(c, alice)
	call(t, p, "echo", "")
	done := make(chan error)
	go func() { done <- p.Call(context.Background(), "never", text(""), text("")) }()
	eventually(t, "a call is in flight", func() bool { return s.Stats().CallsInFlight == 1 })
	s.hardStop()
	var e *TransportError
	var busy *RemoteError
	if err := <-done; !(errors.As(err, &e) && e.Sent) && !(errors.As(err, &busy) && busy.Retriable()) {
		t.Errorf("the call in flight ended with %v", err)
	}
	s.stop()
	eventually(t, "the client noticed", func() bool { return c.Connections() == 0 })
	if _, err := try(
		p,
		"echo",
		"",
	); !errors.As(err, &e) || e.Sent || e.Op != "dial" ||
		!errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while it is down: %v", err)
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	startOn(t, l, echoConfig())
	if got := call(t, p, "echo", "back"); got != "back" {
		t.Errorf("echo answered %q", got)
	}
}

func TestDeadlinesOfContexts(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	call(t, p, "echo", "") // connected
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := p.Call(ctx, "never", text(""), text("")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the call ended with %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, shakes no hand
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	stuck := client(
		t,
		ClientConfig{},
	).Peer(Target{Address: l.Addr().String(), Protocol: echoProtocol, Login: Login{Credential: knownToken}})
	if err := stuck.Call(ctx, "echo", text(""), text("")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a handshake that stalls: %v", err)
	}
	var e *TransportError
	for given := 20 * time.Millisecond; given < time.Minute; given *= 2 { // a slow machine dials longer
		impatient := client(t, ClientConfig{ConnectTime: given})
		if _, err = try(impatient.Peer(stuck.Target()), "echo", ""); errors.As(err, &e) && e.Op != "dial" {
			break
		}
	}
	if !errors.As(err, &e) || e.Op != "handshake" || e.Sent {
		t.Errorf("a handshake above ConnectTime: %v", err)
	}
}

func TestCloseFailsPendingCalls(t *testing.T) {
	s := start(t, echoConfig())
	c := client(t, ClientConfig{})
	p := s.peer(c, alice)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := try(p, "never", ""); !errors.Is(err, ErrClosed) {
				t.Errorf("a waiting call ended with %v", err)
			}
		})
	}
	eventually(t, "they are in flight", func() bool { return s.Stats().CallsInFlight == 10 })
	c.Close()
	wg.Wait()
	if _, err := try(p, "echo", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}
}

// scripted is a server that reads n bytes and sends the given answer.
func scripted(t *testing.T, answer []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			nc.Read(make([]byte, 4096))
			nc.Write(answer)
			nc.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, nc)
			nc.Close()
		}
	}()
	return l.Addr().String()
}

func TestServersThatTalkNonsense(t *testing.T) {
	otherClient := frameOf(appendSuccessHeader(nil, 1, 0, "somebody else 16"), []byte{0})
	for what, answer := range map[string][]byte{
		"nothing":              nil,
		"garbage":              []byte(strings.Repeat("\xff", 100)),
		"HTTP":                 []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"an empty frame":       {0, 0, 0, 0},
		"half a frame":         {0, 0, 1, 0, 1, 2},
		"a length of 2 GiB":    {0x7f, 0xff, 0xff, 0xff},
		"no status":            frameOf([]byte{2, 8, 1}),
		"another client's":     otherClient,
		"an unknown call":      frameOf(appendSuccessHeader(nil, 77, 0, ""), []byte{0}),
		"an answer that stops": frameOf(appendSuccessHeader(nil, 1, 0, ""), []byte{200}),
	} {
		c := client(t, ClientConfig{})
		for _, login := range []Login{alice, {Credential: knownToken}} {
			_, err := try(
				c.Peer(Target{Address: scripted(t, answer), Protocol: echoProtocol, Login: login}),
				"echo",
				"",
			)
			if err == nil {
				t.Errorf("%s: a call succeeded", what)
			}
		}
	}
}

func TestAClientThatFindsItsServerBusy(t *testing.T) {
	s := start(t, echoConfig())
	c := client(t, ClientConfig{MaxCallsPerConn: 2})
	p := s.peer(c, alice)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { p.Call(ctx, "never", text(""), text("")) })
	}
	eventually(t, "two wait", func() bool { return s.Stats().CallsInFlight == 2 })
	var e *RemoteError
	if _, err := try(p, "echo", ""); !errors.As(err, &e) || !e.Retriable() {
		t.Errorf("a third call: %v", err)
	}
	cancel()
	wg.Wait()
	call(t, p, "echo", "")
}

func TestRawCallsPassBytesUntouched(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	for _, method := range []string{"raw", "rawApart"} {
		for _, b := range []string{"", "\x00\xff not a protobuf", strings.Repeat("b", 100_000)} {
			got, err := p.CallRaw(context.Background(), method, []byte(b))
			if err != nil || string(got) != b {
				t.Errorf("%s: %d bytes came back as %d, %v", method, len(b), len(got), err)
			}
		}
	}
}

// A server that stops reading does not make a client's memory grow: callers
// wait, and their contexts end the wait.
func TestCallersWaitForUnreadingServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, ClientConfig{MaxPending: 1 << 20, StallTime: time.Hour})
	p := c.Peer(Target{Address: l.Addr().String(), Protocol: echoProtocol, Login: alice})
	ctx, cancel := context.WithCancel(context.Background())
	big := make([]byte, 1<<20)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := p.CallRaw(ctx, "raw", big); !errors.Is(err, context.Canceled) {
				t.Errorf("a call ended with %v", err)
			}
		})
	}
	var cc *clientConn
	eventually(t, "the socket is full and a few wait in the queue", func() bool {
		if cc = p.conn.Load(); cc == nil {
			return false
		}
		cc.w.mu.Lock()
		defer cc.w.mu.Unlock()
		return cc.w.queued > 1<<20
	})
	cc.w.mu.Lock()
	queued := cc.w.queued
	cc.w.mu.Unlock()
	cancel()
	wg.Wait()
	t.Logf("%d bytes were queued for 40 calls of 1 MiB", queued)
}
