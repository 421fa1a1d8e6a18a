// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
)

func addRecordedFrames(f *propertytest.F) {
	for _, name := range recordings {
		for _, frame := range frames(f, recorded(f, name+".c2s")[7:]) {
			f.Add(frame)
		}
		for _, frame := range frames(f, recorded(f, name+".s2c")) {
			f.Add(frame)
		}
	}
}

// A decoded message must be the same after encoding and decoding it again, and nothing may panic or read outside the
// frame.
func FuzzHeaders(t *testing.F) {
	f := propertytest.Fuzz(t)
	addRecordedFrames(f)
	f.Add(appendErrorFrame(nil, 7, 1, rawID, Busy("no"))[4:])
	f.Add(
		appendRequestHeader(
			nil,
			5,
			1,
			rawID,
			&CallOptions{
				Trace:         TraceInfo{TraceID: 1, SpanContext: []byte("s")},
				CallerContext: CallerContext{Context: "c", Signature: []byte("g")},
			},
		),
	)
	f.Fuzz(func(t *testing.T, frame []byte) {
		header, rest, err := delimited(frame)
		if err != nil {
			return
		}
		var h requestHeader
		if h.decode(header) == nil {
			o := &CallOptions{}
			if o.Trace.decode(h.trace) == nil && o.CallerContext.decode(h.caller) == nil {
				again, _, err := delimited(appendRequestHeader(nil, h.callID, h.retryCount, string(h.clientID), o))
				var b requestHeader
				if err != nil || b.decode(again) != nil || b.callID != h.callID || b.retryCount != h.retryCount ||
					!bytes.Equal(b.clientID, h.clientID) {
					t.Errorf("%+v became %+v", h, b)
				}
			}
			var general requestHeader
			if err := general.decode(
				append(bytes.Clone(header), 0x78, 0),
			); err == nil &&
				(general.callID != h.callID || general.retryCount != h.retryCount ||
					general.kind != h.kind || general.op != h.op || !bytes.Equal(general.clientID, h.clientID)) {
				t.Errorf("the short cut decodes %+v, the general way %+v", h, general)
			}
		}
		var r responseHeader
		if r.decode(header) == nil {
			again, _, err := delimited(appendSuccessHeader(nil, r.callID, r.retryCount, string(r.clientID)))
			var b responseHeader
			if err != nil || b.decode(again) != nil || b.callID != r.callID || b.retryCount != r.retryCount ||
				!bytes.Equal(b.clientID, r.clientID) {
				t.Errorf("%+v became %+v", r, b)
			}
		}
		message, _, err := delimited(rest)
		if err != nil {
			return
		}
		var ch callHeader
		if ch.decode(message) == nil {
			again, _, err := delimited(appendCallHeader(nil, string(ch.method), string(ch.protocol), ch.version))
			var b callHeader
			if err != nil || b.decode(again) != nil || string(b.method) != string(ch.method) ||
				string(b.protocol) != string(ch.protocol) ||
				b.version != ch.version {
				t.Errorf("%+v became %+v", ch, b)
			}
		}
		var cc connectionContext
		if cc.decode(message) == nil {
			var h requestHeader
			rest, err := h.open(appendContextFrame(nil, "", cc)[4:])
			if err != nil {
				t.Fatal(err)
			}
			again, _, _ := delimited(rest)
			var b connectionContext
			if b.decode(again) != nil || b != cc {
				t.Errorf("%+v became %+v", cc, b)
			}
		}
	})
}

func FuzzSasl(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, name := range []string{"am", "nm-start"} {
		for _, frame := range append(frames(f, recorded(f, name+".c2s")[7:])[:2], frames(f, recorded(f, name+".s2c"))[:2]...) {
			_, rest, _ := delimited(frame)
			message, _, _ := delimited(rest)
			f.Add(message)
			var m saslMessage
			if m.decode(message) == nil {
				f.Add(m.token)
				for _, a := range m.auths {
					f.Add([]byte(a.challenge))
				}
			}
		}
	}
	f.Add([]byte(`a="b\"c", d = e ,,f=`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m saslMessage
		if m.decode(b) == nil {
			var again saslMessage
			encoded := m.append(nil)
			if err := again.decode(encoded); err != nil || !bytes.Equal(again.append(nil), encoded) {
				t.Errorf("%+v became %+v, %v", m, again, err)
			}
		}
		parseChallenge(string(b))
		if a, err := parseResponse(
			string(b),
			"n",
			[]Protection{Authentication, Privacy},
		); err == nil &&
			(a.user == "" || a.nonce != "n" || a.verify(nil) && a.response != a.digest.response()) {
			t.Errorf("%q was taken as %+v", b, a)
		}
		i := &integrity{}
		if _, err := i.Open(b); err == nil && i.openSeq != 1 {
			t.Error("opened without counting")
		}
	})
}

// FuzzFraming sends anything to a real server, as it is and in two pieces: the
// server answers frames or closes; it does not panic, hang or leak. Its coverage
// depends on timing, so that minimizing would never end: run it with
// -fuzzminimizetime 1x.
func FuzzFraming(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, name := range recordings {
		f.Add(recorded(f, name+".c2s"), uint16(9))
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(2))
	f.Add(append(helloAlice(), callFrame(f, 1, "echo", "x")...), uint16(40))
	cfg := echoConfig()
	cfg.Tokens = func([]byte) ([]byte, Identity, error) { return []byte("p"), Identity{User: "u"}, nil }
	s, err := NewServer(cfg)
	if err != nil {
		f.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, l) }()
	f.Cleanup(func() { cancel(); <-done })
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Skip(err) // the fuzzer may run out of ports
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		at := min(int(cut), len(b))
		nc.Write(b[:at])
		nc.Write(b[at:])
		nc.(*net.TCPConn).CloseWrite()
		out, err := io.ReadAll(nc)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatalf("no end within a minute, after %q", out)
		}
		if bytes.HasPrefix(out, []byte("HTTP/")) {
			return
		}
		for len(out) > 0 { // the bytes that it returns as frames
			frame, rest, ok, err := cutFrame(out, 128<<20)
			if err != nil {
				t.Fatalf("answered %q", out)
			}
			if !ok {
				return // reset in the middle
			}
			header, _, err := delimited(frame)
			var h responseHeader
			if err != nil || h.decode(header) != nil {
				t.Fatalf("answered a frame %q", frame)
			}
			out = rest
		}
	})
}
