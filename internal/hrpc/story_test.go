// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const echoProtocol = "creel.test.EchoProtocol"

func newText() proto.Message { return new(wrapperspb.StringValue) }

func text(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }

var errMissing = errors.New("no such thing")

const classMissing = "org.example.ThingNotFoundException"

// echoService has one method per manner of answering.
func echoService() Service {
	echo := func(_ context.Context, m proto.Message) (proto.Message, error) { return m, nil }
	raw := func(_ context.Context, b []byte) ([]byte, error) { return b, nil }
	return Service{Protocol: echoProtocol, Version: 1, Methods: map[string]Method{
		"echo":     {NewRequest: newText, Serve: echo, Inline: true},
		"apart":    {NewRequest: newText, Serve: echo},
		"raw":      {Raw: raw, Inline: true},
		"rawApart": {Raw: raw},
		"empty": {
			NewRequest: newText,
			Inline:     true,
			Serve: func(context.Context, proto.Message) (proto.Message, error) {
				return nil, nil
			},
		},
		"whoami": {NewRequest: newText, Serve: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			c := CallFrom(ctx)
			who := c.Identity
			return text(
				strings.Join(
					[]string{who.User, who.RealUser, who.Method.String(), who.TokenKind, string(who.TokenIdentifier)},
					"|",
				),
			), nil
		}},
		"missing": {
			NewRequest: newText,
			Inline:     true,
			Serve: func(context.Context, proto.Message) (proto.Message, error) {
				return nil, errMissing
			},
		},
		"panics": {
			NewRequest: newText,
			Inline:     true,
			Serve: func(context.Context, proto.Message) (proto.Message, error) {
				panic("on purpose")
			},
		},
		"never": {NewRequest: newText, Serve: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
	}}
}

func echoConfig() Config {
	return Config{
		Services: []Service{echoService()},
		Simple:   true,
		ErrorOf: func(err error) *Error {
			if errors.Is(err, errMissing) {
				return Errorf(classMissing, "%v", err)
			}
			return nil
		},
	}
}

// started is a server of a test.
type started struct {
	*Server
	address string
	stop    func() // drains and waits; may be called again
}

func start(t testing.TB, cfg Config, tweak ...func(*Server)) *started {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, l, cfg, tweak...)
}

func startOn(t testing.TB, l net.Listener, cfg Config, tweak ...func(*Server)) *started {
	t.Helper()
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tweak {
		f(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx, l); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	st := &started{Server: s, address: l.Addr().String(), stop: func() { cancel(); <-done }}
	t.Cleanup(st.stop)
	return st
}

func client(t testing.TB, cfg ClientConfig) *Client {
	t.Helper()
	if cfg.KindOf == nil {
		cfg.KindOf = func(class string) error {
			if class == classMissing {
				return errMissing
			}
			return nil
		}
	}
	c := NewClient(cfg)
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *started) peer(c *Client, login Login) *Peer {
	return c.Peer(Target{Address: s.address, Protocol: echoProtocol, Login: login})
}

func call(t testing.TB, p *Peer, method, request string) string {
	t.Helper()
	got, err := try(p, method, request)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return got
}

func try(p *Peer, method, request string) (string, error) {
	var response wrapperspb.StringValue
	err := p.Call(context.Background(), method, text(request), &response)
	return response.Value, err
}

var alice = Login{User: "alice"}

// eventually waits for a state of the other goroutines. It has no deadline of
// its own: a state that never comes ends with the test's.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for i := 0; !ok(); i++ {
		if i == 30_000 {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// dialRaw opens a bare connection, for clients that misbehave.
func dialRaw(t testing.TB, address string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// readFrame reads one frame as a Hadoop client does, and its response header.
func readFrame(t testing.TB, r io.Reader) (h responseHeader, rest []byte) {
	t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r, frame); err != nil {
		t.Fatalf("an answer is cut off: %v", err)
	}
	header, rest, err := delimited(frame)
	if err == nil {
		err = h.decode(header)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, rest
}

// wantClosed expects the end of the connection and nothing before it.
func wantClosed(t testing.TB, nc net.Conn) {
	t.Helper()
	b, err := io.ReadAll(nc)
	if len(b) > 0 {
		t.Fatalf("%d bytes before the end: %q", len(b), b)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
}

// packets of a hand-made client.

const rawID = "0123456789abcdef"

func hello(auth byte) []byte { return []byte{'h', 'r', 'p', 'c', 9, 0, auth} }

func helloAlice() []byte { return helloOf("alice") }

func helloOf(user string) []byte {
	return append(
		hello(authNone),
		appendContextFrame(nil, rawID, connectionContext{effectiveUser: user, protocol: echoProtocol})...)
}

func callFrame(t testing.TB, id int32, method, request string) []byte {
	t.Helper()
	b := appendRequestHeader(make([]byte, 4), id, 0, rawID, nil)
	b = appendCallHeader(b, method, echoProtocol, 1)
	b, err := appendMessage(b, text(request))
	if err != nil {
		t.Fatal(err)
	}
	putLength(b)
	return b
}

func frameOf(parts ...[]byte) []byte {
	b := make([]byte, 4)
	for _, p := range parts {
		b = append(b, p...)
	}
	putLength(b)
	return b
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
