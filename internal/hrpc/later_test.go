// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// parked keeps the calls that will be answered later.
type parked struct {
	mu      sync.Mutex
	replies []func(proto.Message, error)
	calls   []*Call
}

func (p *parked) serve(ctx context.Context, _ proto.Message) (proto.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, CallFrom(ctx))
	p.replies = append(p.replies, Later(ctx))
	return nil, ErrLater
}

func (p *parked) take() []func(proto.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.replies
	p.replies = nil
	return out
}

func (p *parked) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.replies)
}

func TestAnswersMayComeLaterAndOutOfOrder(t *testing.T) {
	for _, inline := range []bool{true, false} {
		p := &parked{}
		cfg := echoConfig()
		cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: p.serve, Inline: inline}
		s := start(t, cfg)
		nc := dialRaw(t, s.address)
		nc.Write(helloAlice())
		for i := range int32(3) {
			nc.Write(callFrame(t, i, "park", ""))
			eventually(t, "it is parked", func() bool { return p.count() == int(i)+1 })
		}
		nc.Write(callFrame(t, 99, "echo", "not held up"))
		if h, _ := readFrame(t, nc); h.callID != 99 {
			t.Errorf("%+v", h)
		}
		if n := s.Stats().CallsInFlight; n != 3 {
			t.Errorf("%d calls in flight", n)
		}
		replies := p.take()
		replies[1](text("one"), nil)
		replies[0](nil, errMissing)
		replies[2](nil, nil)
		for _, want := range []struct {
			id, status int32
		}{{1, statusSuccess}, {0, statusError}, {2, statusSuccess}} {
			if h, _ := readFrame(t, nc); h.callID != want.id || h.status != want.status {
				t.Errorf("inline %v: %+v, want %+v", inline, h, want)
			}
		}
		if n := s.Stats().CallsInFlight; n != 0 {
			t.Errorf("%d calls in flight", n)
		}
	}
}

func TestLateAnswerToClosedConnection(t *testing.T) {
	p := &parked{}
	cfg := echoConfig()
	cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: p.serve, Inline: true}
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.Write(append(helloAlice(), callFrame(t, 1, "park", "")...))
	eventually(t, "it is parked", func() bool { return p.count() == 1 })
	nc.Close()
	<-p.calls[0].Done() // the context notifies the handler
	eventually(t, "it is not counted any more", func() bool { return s.Stats().CallsInFlight == 0 })
	p.take()[0](text("too late"), nil)
	if n := s.Stats().CallsInFlight; n != 0 {
		t.Errorf("%d calls in flight", n)
	}
}

// encoded counts how often it is encoded.
type encoded struct {
	*wrapperspb.StringValue
	times *atomic.Int32
}

func (e encoded) SizeVT() int { return proto.Size(e.StringValue) }

func (e encoded) MarshalToSizedBufferVT(b []byte) (int, error) {
	e.times.Add(1)
	raw, err := proto.Marshal(e.StringValue)
	return copy(b, raw), err
}

func TestAnswerToClosedConnectionIsNotEncoded(t *testing.T) {
	var times, ended atomic.Int32
	for _, later := range []bool{false, true} {
		begun, finish := make(chan *Call, 1), make(chan struct{})
		cfg := echoConfig()
		cfg.Interceptors = append(cfg.Interceptors,
			func(context.Context, *Call, proto.Message) (context.Context, func(proto.Message, error), error) {
				return nil, func(proto.Message, error) { ended.Add(1) }, nil
			})
		cfg.Services[0].Methods["list"] = Method{NewRequest: newText, Serve: func(
			ctx context.Context, _ proto.Message,
		) (proto.Message, error) {
			answer := encoded{text("a long list"), &times}
			if later {
				reply := Later(ctx)
				begun <- CallFrom(ctx)
				go func() {
					<-finish
					reply(answer, nil)
				}()
				return nil, ErrLater
			}
			begun <- CallFrom(ctx)
			<-finish
			return answer, nil
		}}
		s := start(t, cfg)
		for _, stays := range []bool{true, false} {
			times.Store(0)
			ended.Store(0)
			nc := dialRaw(t, s.address)
			nc.Write(append(helloAlice(), callFrame(t, 1, "list", "")...))
			call := <-begun
			want := int32(1)
			if !stays {
				want = 0
				nc.Close()
				<-call.Done()
				eventually(t, "it is not counted any more", func() bool { return s.Stats().CallsInFlight == 0 })
			}
			finish <- struct{}{}
			eventually(t, "the call ends", func() bool { return ended.Load() == 1 })
			if stays {
				readFrame(t, nc)
			}
			if n := times.Load(); n != want {
				t.Errorf("later %v, stays %v: encoded %d times, want %d", later, stays, n, want)
			}
		}
	}
}

func TestARawAnswerMayComeLater(t *testing.T) {
	cfg := echoConfig()
	cfg.Services[0].Methods["park"] = Method{Inline: true, Raw: func(ctx context.Context, b []byte) ([]byte, error) {
		reply, b := LaterRaw(ctx), slices.Clone(b)
		go reply(b, nil)
		return nil, ErrLater
	}}
	s := start(t, cfg)
	if got := call(t, s.peer(client(t, ClientConfig{}), alice), "park", "untouched"); got != "untouched" {
		t.Errorf("got %q", got)
	}
}

func TestAHandlerThatForgetsToTakeLater(t *testing.T) {
	cfg := echoConfig()
	cfg.Services[0].Methods["forgets"] = Method{NewRequest: newText, Inline: true,
		Serve: func(context.Context, proto.Message) (proto.Message, error) { return nil, ErrLater }}
	s := start(t, cfg)
	var e *RemoteError
	if _, err := try(
		s.peer(client(t, ClientConfig{}), alice),
		"forgets",
		"",
	); !errors.As(err, &e) ||
		e.Class != ClassRuntimeException {
		t.Error(err)
	}
}

// A handler and an interceptor receive the caller, the method and the error of a call.
func TestHandlerGetsCallerMethodAndError(t *testing.T) {
	var seen Call
	var log []string
	cfg := echoConfig()
	cfg.Services[0].Methods["look"] = Method{
		NewRequest: newText,
		Inline:     true,
		Serve: func(ctx context.Context, m proto.Message) (proto.Message, error) {
			c := CallFrom(ctx)
			seen.Identity, seen.Remote, seen.Protocol, seen.Method, seen.ClientID = c.Identity, c.Remote, c.Protocol, c.Method, c.ClientID
			seen.RetryCount, seen.CallerContext, seen.Trace, seen.CallID = c.RetryCount, c.CallerContext, c.Trace, c.CallID
			log = append(log, "served "+ctx.Value(orderKey{}).(string))
			return m, nil
		},
	}
	note := func(name string) Interceptor {
		return func(ctx context.Context, c *Call, request proto.Message) (context.Context, func(proto.Message, error), error) {
			if c.Method == "echo" {
				return nil, nil, Errorf(ClassAuthorization, "no echo today")
			}
			log = append(log, name+" sees "+c.Method+" "+request.(*wrapperspb.StringValue).Value)
			return context.WithValue(
				ctx,
				orderKey{},
				name,
			), func(_ proto.Message, err error) { log = append(log, name+" done") }, nil
		}
	}
	cfg.Interceptors = []Interceptor{note("first"), note("second")}
	s := start(t, cfg)
	c := client(
		t,
		ClientConfig{
			Interceptors: []ClientInterceptor{
				func(_ context.Context, target *Target, method string, o *CallOptions) func(error) {
					o.Trace.SpanContext = []byte("span of " + method)
					return func(err error) {
						if err != nil {
							log = append(log, "client saw "+err.Error())
						}
					}
				},
			},
		},
	)
	p := s.peer(c, alice)
	ctx := WithOptions(
		context.Background(),
		CallOptions{RetryCount: 2, Trace: TraceInfo{TraceID: 1 << 40, ParentID: -5},
			CallerContext: CallerContext{Context: strings.Repeat("job_1 ", 40), Signature: []byte{9}}},
	)
	if err := p.Call(ctx, "look", text("hi"), text("")); err != nil {
		t.Fatal(err)
	}
	if seen.Identity.User != "alice" || !seen.Remote.Addr().IsLoopback() || seen.Protocol != echoProtocol || seen.Method != "look" ||
		len(seen.ClientID) != 16 || seen.RetryCount != 2 ||
		seen.CallerContext.Context != strings.Repeat("job_1 ", 40) ||
		string(seen.CallerContext.Signature) != "\x09" ||
		seen.Trace.TraceID != 1<<40 ||
		seen.Trace.ParentID != -5 ||
		string(seen.Trace.SpanContext) != "span of look" ||
		seen.CallID == 0 {
		t.Errorf("the handler saw %+v of %+v", &seen, seen.Identity)
	}
	if err := p.Call(
		context.Background(),
		"look",
		text("again"),
		text(""),
	); err != nil || seen.CallerContext.Context != "" || seen.RetryCount != 0 ||
		seen.Trace.TraceID != 0 {
		t.Errorf("the next call has something of the one before: %+v, %v", &seen, err)
	}
	if _, err := try(p, "echo", ""); err == nil {
		t.Error("a refused call was served")
	}
	want := []string{
		"first sees look hi",
		"second sees look hi",
		"served second",
		"second done",
		"first done",
		"first sees look again",
		"second sees look again",
		"served second",
		"second done",
		"first done",
		"client saw " + ClassAuthorization + ": no echo today",
	}
	if !slices.Equal(log, want) {
		t.Errorf("it went\n%s", strings.Join(log, "\n"))
	}
}

type orderKey struct{}

// A server that ends answers the calls that it serves. It does not answer another one: after a RetriableException, a
// client of an HA pair would call the same server again, and give up when its port is closed.
func TestDrainAnswersCallsInFlightAlone(t *testing.T) {
	p := &parked{}
	cfg := echoConfig()
	cfg.DrainTime = time.Hour
	cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: p.serve, Inline: true}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, l, cfg)
	nc, quiet := dialRaw(t, s.address), dialRaw(t, s.address)
	quiet.Write(helloAlice())
	nc.Write(append(helloAlice(), callFrame(t, 1, "park", "")...))
	eventually(t, "it is parked", func() bool { return p.count() == 1 })
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.stop() }()
	wantClosed(t, quiet) // no call in flight there
	// Not checked by connecting to its port, which another process may have taken.
	if err := l.(*net.TCPListener).SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a server that drains accepts connections: %v", err)
	}
	nc.Write(callFrame(t, 2, "echo", "new"))
	eventually(t, "the new call is read", func() bool { return s.stats.busy.Load() == 1 })
	p.take()[0](text("done"), nil)
	if h, _ := readFrame(t, nc); h.callID != 1 || h.status != statusSuccess {
		t.Errorf("%+v", h)
	}
	wantClosed(t, nc)
	<-stopped
}

func TestDrainEndsWithItsTime(t *testing.T) {
	p := &parked{}
	cfg := echoConfig()
	cfg.DrainTime = 20 * time.Millisecond
	cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: p.serve, Inline: true}
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.Write(append(helloAlice(), callFrame(t, 1, "park", "")...))
	nc.Write(callFrame(t, 2, "never", ""))
	eventually(t, "both are in flight", func() bool { return s.Stats().CallsInFlight == 2 })
	s.stop()
	if n := s.Stats(); n.CallsInFlight != 0 || n.Connections != 0 {
		t.Errorf("%+v", n)
	}
}

func TestAServerRunsOnce(t *testing.T) {
	s := start(t, echoConfig())
	s.stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background(), l); err == nil {
		t.Error("it ran twice")
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its listener: %v", err)
	}
}

func TestConfigsThatCannotBeServed(t *testing.T) {
	for what, spoil := range map[string]func(*Config){
		"nobody may connect":     func(c *Config) { c.Simple = false },
		"an unknown protection":  func(c *Config) { c.Tokens, c.Protections = knowsToken, []Protection{"auth-most"} },
		"integrity without SASL": func(c *Config) { c.Protections = []Protection{Integrity} },
		"no service":             func(c *Config) { c.Services = nil },
		"a protocol twice":       func(c *Config) { c.Services = append(c.Services, c.Services[0]) },
		"a negative limit":       func(c *Config) { c.MaxCalls = -1 },
		"a method of nothing":    func(c *Config) { c.Services[0].Methods["x"] = Method{} },
		"a method of both": func(c *Config) {
			m := c.Services[0].Methods["raw"]
			m.NewRequest = newText
			c.Services[0].Methods["x"] = m
		},
	} {
		cfg := echoConfig()
		spoil(&cfg)
		if _, err := NewServer(cfg); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// A late answer is never delayed by a client that does not read.
func TestLateAnswersDoNotBlockTheirOwner(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	p := &parked{}
	cfg := echoConfig()
	cfg.MaxReplyBytesTotal = 30 << 20
	cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: p.serve, Inline: true}
	s := start(t, cfg)
	deaf, fine := dialRaw(t, s.address), dialRaw(t, s.address)
	deaf.(*net.TCPConn).SetReadBuffer(4096)
	deaf.Write(helloAlice())
	fine.Write(helloAlice())
	for i := range int32(60) {
		deaf.Write(callFrame(t, i, "park", ""))
	}
	eventually(t, "they are parked", func() bool { return p.count() == 60 })
	answer := text(strings.Repeat("z", 1<<20))
	replies := p.take()
	for _, reply := range replies[:20] {
		reply(answer, nil)
	}
	eventually(t, "answers are queued", func() bool { return s.Stats().ReplyBytes > 0 })
	fine.Write(callFrame(t, 7, "park", ""))
	eventually(t, "the other is parked", func() bool { return p.count() == 1 })
	p.take()[0](answer, nil)
	if h, rest := readFrame(t, fine); h.callID != 7 || len(rest) < 1<<20 {
		t.Errorf("%+v", h)
	}
	for _, reply := range replies[20:] {
		reply(answer, nil)
		if n := s.Stats().ReplyBytes; n > 30<<20 {
			t.Errorf("%d bytes are queued", n)
		}
	}
	eventually(t, "the deaf one is closed", func() bool { return s.Stats().Connections == 1 })
	if n := s.Stats().CallsInFlight; n != 0 {
		t.Errorf("%d calls in flight", n)
	}
}
