// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// Responses to clients that violate the protocol. answer is the class of a FATAL answer with its call id and detail;
// "" is a close without an answer.
func TestBadClientsGetErrorOrClose(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, 1<<30)
	negative := []byte{0xff, 0xff, 0xff, 0xff}
	bareCall := func(edit func([]byte) []byte) []byte { return append(helloAlice(), frameOf(edit(nil))...) }
	header := func(callID int32) []byte { return appendRequestHeader(nil, callID, 0, rawID, nil) }
	for _, c := range []struct {
		what   string
		bytes  []byte
		answer string
		id     int32
		detail Detail
	}{
		{"a newer version", []byte("hrpc\x0a\x00\x00"), ClassVersionMismatch, -1, DetailFatalVersionMismatch},
		{"an older version", []byte("hrpc\x04\x00\x00"), "", 0, 0},
		{"garbage", bytes.Repeat([]byte{0xa5}, 10_000), ClassVersionMismatch, -1, DetailFatalVersionMismatch},
		{"garbage of low bytes", bytes.Repeat([]byte{1}, 10_000), "", 0, 0},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "", 0, 0},
		{"an unknown auth byte", hello(7), ClassIPC, -1, DetailFatalUnauthorized},
		{"a frame above the limit", append(helloAlice(), huge...), "", 0, 0},
		{"a frame of negative length", append(helloAlice(), negative...), "", 0, 0},
		{"a large frame before the context", append(hello(authNone), 0, 2, 0, 0), "", 0, 0},
		{"a call before the context", append(hello(authNone), callFrame(t, 3, "echo", "")...), ClassRPCServer, 3, DetailFatalInvalidHeader},
		{"a second context", append(helloAlice(), helloAlice()[7:]...), ClassRPCServer, idContext, DetailFatalInvalidHeader},
		{"SASL on a connection without", append(helloAlice(), appendSaslFrame(nil, &saslMessage{state: saslNegotiate}, true)...), ClassRPCServer, idSasl, DetailFatalInvalidHeader},
		{"a context before SASL", append(hello(authSasl), helloAlice()[7:]...), ClassRPCServer, idContext, DetailFatalInvalidHeader},
		{"an unknown negative id", bareCall(func([]byte) []byte { return header(-7) }), ClassRPCServer, -7, DetailFatalInvalidHeader},
		{"no RPC kind", bareCall(func([]byte) []byte { return []byte{6, 2 << 3, 0, 3 << 3, 2, 4<<3 | 2, 0} }), ClassRPCServer, 1, DetailFatalInvalidHeader},
		{"RPC kind writable", bareCall(func([]byte) []byte { return []byte{8, 1 << 3, 1, 2 << 3, 0, 3 << 3, 2, 4<<3 | 2, 0} }), ClassRPCServer, 1, DetailFatalInvalidHeader},
		{"a continuation packet", bareCall(func([]byte) []byte { return []byte{8, 1 << 3, 2, 2 << 3, 1, 3 << 3, 2, 4<<3 | 2, 0} }), ClassRPCServer, 1, DetailFatalInvalidHeader},
		{"no call id", bareCall(func([]byte) []byte { return []byte{6, 1 << 3, 2, 2 << 3, 0, 4<<3 | 2, 0} }), ClassRPCServer, -1, DetailFatalDeserializing},
		{"a header of nonsense", bareCall(func([]byte) []byte { return []byte{5, 0xff, 0xff, 0xff, 0xff, 0xff} }), ClassRPCServer, -1, DetailFatalDeserializing},
		{"an empty frame", append(helloAlice(), 0, 0, 0, 0), ClassRPCServer, -1, DetailFatalDeserializing},
		{"no call header", bareCall(func([]byte) []byte { return header(4) }), ClassRPCServer, 4, DetailFatalDeserializing},
		{"a context of nonsense", append(hello(authNone), frameOf(header(idContext), []byte{2, 3<<3 | 2, 9})...), ClassRPCServer, idContext, DetailFatalDeserializing},
		{"a context without a user", append(hello(authNone), appendContextFrame(nil, rawID, connectionContext{protocol: echoProtocol})...), ClassAccessControl, idContext, DetailFatalUnauthorized},
		{"SASL of nonsense", append(hello(authSasl), frameOf(header(idSasl), []byte{2, 0xff, 0xff})...), ClassRPCServer, idSasl, DetailFatalDeserializing},
	} {
		t.Run(c.what, func(t *testing.T) {
			cfg := echoConfig()
			if c.what == "a context before SASL" {
				cfg.Tokens = knowsToken
			}
			s := start(t, cfg)
			nc := dialRaw(t, s.address)
			nc.Write(c.bytes)
			if c.answer == "" {
				if c.what == "TLS" || strings.HasPrefix(c.what, "garbage") {
					nc.(*net.TCPConn).CloseWrite()
				}
				wantClosed(t, nc)
				return
			}
			h, rest := readFrame(t, nc)
			if h.status != statusFatal || string(h.class) != c.answer || h.callID != c.id || h.detail != c.detail ||
				len(rest) > 0 ||
				len(h.message) == 0 {
				t.Errorf("answered %+v %q %q", h, h.class, h.message)
			}
			wantClosed(t, nc)
		})
	}
}

func TestABrowserIsSentAway(t *testing.T) {
	s := start(t, echoConfig())
	nc := dialRaw(t, s.address)
	nc.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	b, _ := io.ReadAll(nc)
	if !bytes.HasPrefix(b, []byte("HTTP/1.1 404 Not Found\r\n")) || !bytes.Contains(b, []byte("Hadoop RPC")) {
		t.Errorf("answered %q", b)
	}
}

func TestBadRequestsFailTheCallOnly(t *testing.T) {
	s := start(t, echoConfig())
	nc := dialRaw(t, s.address)
	nc.Write(helloAlice())
	head := func(id int32) []byte {
		return appendCallHeader(appendRequestHeader(nil, id, 0, rawID, nil), "echo", echoProtocol, 1)
	}
	for id, body := range map[int32][]byte{1: {3, 1<<3 | 2, 9, 0}, 2: {200}, 3: nil} {
		nc.Write(frameOf(head(id), body))
		h, rest := readFrame(t, nc)
		if h.callID != id || h.status != statusError || string(h.class) != ClassInvalidProtobuf ||
			h.detail != DetailApplication ||
			len(rest) > 0 {
			t.Errorf("request %x: %+v %s", body, h, h.class)
		}
	}
	nc.Write(appendPing(nil, rawID)) // no answer
	nc.Write(callFrame(t, 8, "echo", "fine"))
	if h, rest := readFrame(
		t,
		nc,
	); h.callID != 8 || h.status != statusSuccess ||
		!bytes.Contains(rest, []byte("fine")) {
		t.Errorf("%+v %q", h, rest)
	}
}

func TestATruncatedFrameEndsWithItsConnection(t *testing.T) {
	s := start(t, echoConfig())
	whole := append(helloAlice(), callFrame(t, 1, "echo", "hello")...)
	for n := range whole {
		nc := dialRaw(t, s.address)
		nc.Write(whole[:n])
		nc.(*net.TCPConn).CloseWrite()
		wantClosed(t, nc)
	}
	eventually(t, "all connections are gone", func() bool { return s.Stats().Connections == 0 })
}

func TestAStalledHandshakeIsEnded(t *testing.T) {
	cfg := echoConfig()
	cfg.Tokens = knowsToken
	cfg.HandshakeTime = time.Second
	s := start(t, cfg)
	var stalled []net.Conn
	for _, so := range [][]byte{nil, []byte("hr"), hello(authNone), hello(authSasl), helloAlice()[:20],
		append(hello(authSasl), appendSaslFrame(nil, &saslMessage{state: saslNegotiate}, true)...)} {
		nc := dialRaw(t, s.address)
		nc.Write(so)
		stalled = append(stalled, nc)
	}
	for _, nc := range stalled {
		io.Copy(io.Discard, nc) // returns when the server closes
	}
	nc := dialRaw(t, s.address)
	nc.Write(helloAlice())
	time.Sleep(cfg.HandshakeTime * 3 / 2) // for the opposite to show: a ready connection stays
	nc.Write(callFrame(t, 1, "echo", ""))
	if h, _ := readFrame(t, nc); h.callID != 1 {
		t.Errorf("%+v", h)
	}
}

func TestIdleConnectionsAreClosedWhenThereAreMany(t *testing.T) {
	cfg := echoConfig()
	cfg.IdleTime, cfg.IdleThreshold = 50*time.Millisecond, 2
	s := start(t, cfg)
	busy := dialRaw(t, s.address)
	busy.Write(append(helloAlice(), callFrame(t, 1, "never", "")...))
	eventually(t, "a call is in flight", func() bool { return s.Stats().CallsInFlight == 1 })
	time.Sleep(4 * cfg.IdleTime)
	if n := s.Stats().Connections; n != 1 {
		t.Fatalf("%d connections", n)
	}
	idle := dialRaw(t, s.address)
	idle.Write(helloAlice())
	wantClosed(t, idle) // two are open, and this one waits for nothing
	eventually(t, "one is left", func() bool { return s.Stats().Connections == 1 })
	if st := s.Stats(); st.CallsInFlight != 1 {
		t.Errorf("%+v", st)
	}
	busy.Close()
}

func TestUnfinishedFrameTimesOut(t *testing.T) {
	cfg := echoConfig()
	cfg.StallTime = 50 * time.Millisecond
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.Write(append(helloAlice(), 0, 1, 0, 0, 1, 2, 3))
	wantClosed(t, nc)
}

// wantBusy expects the answer that Hadoop's clients take as "try again".
func wantBusy(t *testing.T, nc net.Conn, id int32, status int32) {
	t.Helper()
	h, rest := readFrame(t, nc)
	if h.callID != id || h.status != status || string(h.class) != ClassRetriable || len(rest) > 0 {
		t.Errorf("answered %+v %s", h, h.class)
	}
}

func TestConnectionsAboveLimitGetRetry(t *testing.T) {
	for _, limit := range []func(*Config){
		func(c *Config) { c.MaxConnections = 3 },
		func(c *Config) { c.MaxPerAddress = 3 },
	} {
		cfg := echoConfig()
		limit(&cfg)
		s := start(t, cfg)
		var open []net.Conn
		for range 3 {
			open = append(open, dialRaw(t, s.address))
		}
		eventually(t, "three are in", func() bool { return s.Stats().Connections == 3 })
		above := dialRaw(t, s.address)
		above.Write(append(helloAlice(), callFrame(t, 1, "echo", "")...))
		wantBusy(t, above, idUnauthorized, statusFatal)
		wantClosed(t, above)
		open[0].Close()
		eventually(t, "one is gone", func() bool { return s.Stats().Connections == 2 })
		p := s.peer(client(t, ClientConfig{}), alice)
		if got := call(t, p, "echo", "room again"); got != "room again" {
			t.Errorf("echo answered %q", got)
		}
		if st := s.Stats(); st.Refused != 1 {
			t.Errorf("%+v", st)
		}
	}
}

func TestCallsAboveLimitGetRetry(t *testing.T) {
	for _, limit := range []func(*Config){
		func(c *Config) { c.MaxCalls = 5 },
		func(c *Config) { c.MaxCallsPerConn = 5 },
	} {
		cfg := echoConfig()
		limit(&cfg)
		cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: (&parked{}).serve, Inline: true}
		s := start(t, cfg)
		for _, method := range []string{"never", "park"} {
			nc := dialRaw(t, s.address)
			nc.Write(helloAlice())
			for i := range int32(5) {
				nc.Write(callFrame(t, i, method, ""))
			}
			eventually(t, "five are in flight", func() bool { return s.Stats().CallsInFlight == 5 })
			for i := range int32(3) {
				nc.Write(callFrame(t, 100+i, method, ""))
				wantBusy(t, nc, 100+i, statusError)
			}
			nc.Close()
			eventually(t, "none is in flight", func() bool { return s.Stats().CallsInFlight == 0 })
		}
	}
}

func TestRequestBytesOfAllConnectionsAreBounded(t *testing.T) {
	cfg := echoConfig()
	cfg.MaxRequestBytes = 3 << 20
	s := start(t, cfg)
	first := dialRaw(t, s.address)
	big := callFrame(t, 1, "echo", strings.Repeat("x", 2_000_000))
	first.Write(append(helloAlice(), big[:len(big)-1]...))
	eventually(t, "the first is held", func() bool { return s.Stats().RequestBytes >= 2_000_000 })
	second := dialRaw(t, s.address)
	go second.Write(append(append(helloAlice(), big...), callFrame(t, 2, "echo", "small")...))
	wantBusy(t, second, 1, statusError)
	if h, _ := readFrame(t, second); h.callID != 2 || h.status != statusSuccess {
		t.Errorf("after the refused frame: %+v", h)
	}
	first.Write(big[len(big)-1:])
	if h, _ := readFrame(t, first); h.callID != 1 || h.status != statusSuccess {
		t.Errorf("the first: %+v", h)
	}
	eventually(t, "nothing is held", func() bool {
		first.Write(callFrame(t, 3, "echo", "")) // a large buffer goes when the next frame comes
		readFrame(t, first)
		return s.Stats().RequestBytes == 0
	})
}

// One user announces large frames on many connections and sends most of each. It
// holds its share and no more; large requests of another user are served.
func TestUserAtShareDoesNotBlockOthers(t *testing.T) {
	cfg := echoConfig()
	cfg.MaxFrame = 1 << 20
	cfg.MaxRequestBytes = 16 << 20
	s := start(t, cfg)
	frame := callFrame(t, 1, "echo", strings.Repeat("x", 1_000_000))
	for range 32 {
		nc := dialRaw(t, s.address)
		go nc.Write(append(helloOf("mallory"), frame[:len(frame)-1]...)) // some are refused and not read to the end
	}
	eventually(t, "the share is used", func() bool { return s.Stats().RequestBytes > 2<<20 })
	for range 20 {
		if n := s.Stats().RequestBytes; n > 4<<20+2<<20 { // and the bytes of alice's requests
			t.Fatalf("one user holds %d bytes of %d", n, cfg.MaxRequestBytes)
		}
		p := s.peer(client(t, ClientConfig{}), alice)
		if got := call(t, p, "echo", strings.Repeat("y", 900_000)); len(got) != 900_000 {
			t.Fatalf("another user's large request came back with %d bytes", len(got))
		}
	}
}

// A frame whose bytes arrive one by one is abandoned, however steadily they come.
func TestSlowFrameTimesOut(t *testing.T) {
	cfg := echoConfig()
	cfg.StallTime = 40 * time.Millisecond
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.Write(helloAlice())
	frame := callFrame(t, 1, "echo", strings.Repeat("x", 100_000))
	eventually(t, "the connection is closed", func() bool {
		for _, b := range frame[:10] {
			nc.Write([]byte{b})
			time.Sleep(2 * time.Millisecond)
		}
		frame = frame[10:]
		return s.Stats().Connections == 0
	})
}

func bigAnswers(size int) Service {
	answer := text(strings.Repeat("z", size))
	return Service{Protocol: echoProtocol, Version: 1, Methods: map[string]Method{
		"big": {
			NewRequest: newText,
			Inline:     true,
			Serve:      func(context.Context, proto.Message) (proto.Message, error) { return answer, nil },
		},
	}}
}

// A client that sends and never reads is not read either once its answers pile
// up, and closed when it goes on; others do not notice.
func TestUnreadingClientIsStoppedThenClosed(t *testing.T) {
	cfg := echoConfig()
	cfg.Services = []Service{bigAnswers(1 << 20)}
	cfg.MaxReplyBytes = 2 << 20
	cfg.StallTime = 2 * time.Second
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.(*net.TCPConn).SetReadBuffer(4096)
	nc.Write(helloAlice())
	for i := range int32(200) {
		nc.Write(callFrame(t, i, "big", ""))
	}
	eventually(t, "answers are queued", func() bool { return s.Stats().ReplyBytes > 0 })
	if n := s.Stats().ReplyBytes; n > 8<<20 {
		t.Errorf("%d bytes are queued", n)
	}
	p := s.peer(client(t, ClientConfig{}), alice)
	if got := call(t, p, "big", ""); len(got) != 1<<20 {
		t.Errorf("another client got %d bytes", len(got))
	}
	eventually(t, "the connection is closed", func() bool { return s.Stats().Connections == 1 })
	eventually(t, "nothing is queued", func() bool { return s.Stats().ReplyBytes == 0 })
}

func TestQueuedAnswersOfAllConnectionsAreBounded(t *testing.T) {
	cfg := echoConfig()
	cfg.Services = []Service{bigAnswers(1 << 20)}
	cfg.MaxReplyBytesTotal = 8 << 20
	s := start(t, cfg)
	for range 8 {
		nc := dialRaw(t, s.address)
		nc.(*net.TCPConn).SetReadBuffer(4096)
		nc.Write(helloAlice())
		for i := range int32(12) {
			nc.Write(callFrame(t, i, "big", ""))
		}
	}
	eventually(t, "some are closed", func() bool { return s.Stats().Connections < 8 })
	if n := s.Stats().ReplyBytes; n > 8<<20 {
		t.Errorf("%d bytes are queued", n)
	}
}

// slowReader: an answer larger than the socket takes, read slowly, arrives whole.
func TestASlowReaderGetsEverything(t *testing.T) {
	cfg := echoConfig()
	cfg.Services = []Service{bigAnswers(1 << 20)}
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.Write(helloAlice())
	go func() {
		for i := range int32(40) {
			nc.Write(callFrame(t, i, "big", ""))
		}
	}()
	for i := range int32(40) {
		if i%10 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if h, rest := readFrame(t, nc); h.callID != i || len(rest) < 1<<20 || rest[len(rest)-1] != 'z' {
			t.Fatalf("answer %d: %+v of %d bytes", i, h, len(rest))
		}
	}
}

// The server is a process of its own: its memory is not ours, nor are its files.
func TestTenThousandHalfOpenConnectionsCostLittle(t *testing.T) {
	const many = 10_000
	if n := raiseFiles(); n < many+200 {
		t.Fatalf(
			"%d open files are needed, the limit is %d: raise it with `ulimit -Hn 65536` and run again",
			many+200,
			n,
		)
	}
	s := startProcess(t, "hrpc")
	before := s.memory(t)
	starts := [][]byte{nil, []byte("h"), hello(authSasl), hello(authNone), append(hello(authNone), 0, 0, 100, 0, 1)}
	conns := dialMany(t, s.address, many, func(i int) []byte { return starts[i%len(starts)] })
	eventually(t, "all are in", func() bool { return s.memory(t).connections == many })
	c := client(t, ClientConfig{})
	p := c.Peer(Target{Address: s.address, Protocol: echoProtocol, Login: alice})
	if got, err := p.CallRaw(
		context.Background(),
		"raw",
		[]byte("still served"),
	); err != nil ||
		string(got) != "still served" {
		t.Errorf("echo answered %q, %v", got, err)
	}
	after := s.memory(t)
	each := (after.heapAndStacks - before.heapAndStacks) / many
	t.Logf(
		"a half-open connection costs %d bytes of heap and stacks, %d resident",
		each,
		(after.resident-before.resident)/many,
	)
	if each > 20<<10 {
		t.Errorf("a half-open connection costs %d bytes", each)
	}
	for _, nc := range conns {
		nc.Close()
	}
	eventually(t, "all are gone", func() bool { return s.memory(t).connections <= 1 })
}

// One address sends most of each of many frames that are small, none of which would
// be refused alone. Together they get no more than its share; requests of another
// address, small and large, are served.
func TestManySmallFramesTogetherAreBounded(t *testing.T) {
	const limit, many = 8 << 20, 400
	cfg := echoConfig()
	cfg.MaxFrame = 2 << 20
	cfg.MaxRequestBytes = limit
	s := start(t, cfg)
	for i := range many {
		size := []int{6_000, 40_000, 60_000}[i%3]
		frame := callFrame(t, 1, "echo", strings.Repeat("x", size))
		nc := dialRaw(t, s.address)
		nc.Write(append(helloOf("mallory"+string(rune('a'+i%20))), frame[:len(frame)*3/4]...))
	}
	eventually(t, "much is held or refused", func() bool { st := s.Stats(); return st.Busy > 0 })
	time.Sleep(50 * time.Millisecond) // until the bytes above the share show
	if n := s.Stats().RequestBytes; n > limit/2 || n < limit/4 {
		t.Errorf("one address holds %d bytes, its share is %d", n, limit/2)
	}
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for id, size := range []int{5_000, 100_000, 1_000_000} {
		go other.Write(append(map[bool][]byte{true: helloAlice()}[id == 0],
			callFrame(t, int32(id), "apart", strings.Repeat("y", size))...))
		if h, rest := readFrame(t, other); h.status != statusSuccess || len(rest) < size {
			t.Fatalf("a request of %d bytes of another address: %+v %s", size, h, h.message)
		}
	}
}

// Requests that are being served count as well, until they are answered.
func TestRequestsBeingServedAreCounted(t *testing.T) {
	cfg := echoConfig()
	cfg.MaxFrame = 64 << 10
	cfg.MaxRequestBytes = 1 << 20
	cfg.Services[0].Methods["park"] = Method{NewRequest: newText, Serve: (&parked{}).serve, Inline: true}
	for _, method := range []string{"never", "park"} {
		s := start(t, cfg)
		nc := dialRaw(t, s.address)
		nc.Write(helloAlice())
		for id := range int32(12) { // 360,000 bytes; a user may have 262,144
			nc.Write(callFrame(t, id, method, strings.Repeat("x", 30_000)))
		}
		if h, _ := readFrame(t, nc); h.callID < 5 || string(h.class) != ClassRetriable {
			t.Errorf("%s: the first answer is %+v %s", method, h, h.class)
		}
		eventually(t, "some are held", func() bool { n := s.Stats().CallsInFlight; return n >= 5 && n <= 8 })
		if n := s.Stats().RequestBytes; n < 5*30_000 || n > 256<<10+64<<10 { // and the buffer that is being read
			t.Errorf("%s: %d bytes are held", method, n)
		}
		nc.Write(callFrame(t, 99, "echo", "small"))
		for {
			h, _ := readFrame(t, nc)
			if h.callID == 99 && h.status == statusSuccess {
				break
			}
			if string(h.class) != ClassRetriable {
				t.Fatalf("a small request: %+v", h)
			}
		}
		nc.Close()
		if method == "never" {
			eventually(t, "nothing is held", func() bool { return s.Stats().RequestBytes == 0 })
		}
	}
}

// The goroutine of a connection that falls silent after calls frees its stack. Later calls are served, and a stop of
// the server drains as usual.
func TestSilentConnectionReleasesStack(t *testing.T) {
	cfg := echoConfig()
	cfg.HandshakeTime = 400 * time.Millisecond // so that the sweeper looks often
	s := start(t, cfg, func(s *Server) { s.shallow = 100 * time.Millisecond })
	nc := dialRaw(t, s.address)
	nc.Write(append(helloAlice(), callFrame(t, 1, "echo", "deep")...))
	readFrame(t, nc)
	deep := func() bool {
		s.Server.mu.Lock()
		defer s.Server.mu.Unlock()
		for c := range s.Server.conns {
			return c.deep.Load()
		}
		return true
	}
	half := callFrame(t, 2, "echo", strings.Repeat("x", 5_000))
	for _, sent := range [][]byte{nil, half[:3_000]} {
		nc.Write(sent)
		eventually(t, "the stack is given back", func() bool { return !deep() })
		if len(sent) == 0 {
			nc.Write(callFrame(t, 3, "echo", "deep again"))
			readFrame(t, nc)
		}
	}
	nc.Write(half[3_000:])
	if h, _ := readFrame(t, nc); h.callID != 2 || h.status != statusSuccess {
		t.Errorf("after a half frame and a pause: %+v", h)
	}
}
