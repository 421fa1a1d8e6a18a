// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// readyConn is a server's connection whose handshake is done, without a reader.
func readyConn(t testing.TB, cfg Config) *conn {
	t.Helper()
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialRaw(t, l.Addr().String())
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	c, err := newConn(s, nc)
	if err != nil {
		t.Fatal(err)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	t.Cleanup(c.cancel)
	c.who = &Identity{User: "alice"}
	if err := c.drawOn(s.shares.join(c.remote.Addr(), "alice")); err != nil {
		t.Fatal(err)
	}
	return c
}

func hotFrame(t testing.TB, method string) []byte {
	b := appendCallHeader(appendRequestHeader(nil, 77, 0, rawID, nil), method, echoProtocol, 1)
	b, err := appendMessage(b, wrapperspb.Bytes(make([]byte, 200)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An inline call whose messages come from pools costs no allocation at all: header, dispatch, context, handler,
// answer.
func TestInlineCallsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Log("under the race detector pools drop what they hold: counted without it only")
		return
	}
	c := readyConn(t, benchConfig(nil))
	for _, method := range []string{"vt", "raw"} {
		frame := hotFrame(t, method)
		serve := func() {
			if err := c.packet(frame); err != nil {
				t.Fatal(err)
			}
			c.batch = c.batch[:0]
		}
		serve()
		if n := testing.AllocsPerRun(1000, serve); n != 0 {
			t.Errorf("%s: %v allocations per call", method, n)
		}
	}
}

// BenchmarkDispatch is a call without its socket.
func BenchmarkDispatch(b *testing.B) {
	for _, method := range []string{"vt", "raw", "stock"} {
		b.Run(method, func(b *testing.B) {
			c := readyConn(b, benchConfig(nil))
			frame := hotFrame(b, method)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.packet(frame); err != nil {
					b.Fatal(err)
				}
				c.batch = c.batch[:0]
			}
		})
	}
}

// BenchmarkClient measures a creel client on one connection to a creel server in another process: one caller, then
// many whose calls share writes.
func BenchmarkClient(b *testing.B) {
	s := startProcess(b, "hrpc")
	c := client(b, ClientConfig{})
	p := c.Peer(Target{Address: s.address, Protocol: echoProtocol, Login: alice})
	request := &vtBytes{}
	request.Value = make([]byte, 200)
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			b.ReportAllocs()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					var response proto.Message = &vtBytes{}
					for range (b.N + i) / callers {
						if err := p.Call(context.Background(), "vt", request, response); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
