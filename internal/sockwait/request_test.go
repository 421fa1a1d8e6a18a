// SPDX-License-Identifier: Apache-2.0

package sockwait

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// It waits for the end of a request's headers, however they arrive. It does not wait after the end of the connection,
// or for bytes that are no request or a long one.
func TestHeadersAreWaitedForToTheirEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string // it waits after each
		then   string
	}{
		{"in one", nil, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"in parts", []string{"G", "ET / HTTP/1.1\r\n", "Host: x\r\n", "\r"}, "\nbody"},
		{"with bare newlines", []string{"GET / HTTP/1.1\n"}, "\n"},
		{"TLS", nil, "\x16\x03\x01"},
		{"long", []string{"GET /" + strings.Repeat("x", longHeaders-10)}, "xxxxxxxxxx"},
		{"the end", []string{"GET /"}, ""},
		{"nothing", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			raw, err := server.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				begun, err := WaitForRequest(raw)
				if says := len(c.before) > 0 || c.then != ""; begun != says {
					t.Errorf("it says that a request has begun: %v", begun)
				}
				done <- err
			}()
			for _, part := range c.before {
				client.Write([]byte(part))
				select {
				case err := <-done:
					t.Fatalf("after %q it did not wait: %v", part, err)
				case <-time.After(20 * time.Millisecond):
				}
			}
			if c.then == "" {
				if len(c.before) > 0 {
					client.(*net.TCPConn).CloseWrite()
				}
				// Bytes sent before stay available: a peek does not show the end.
				server.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			} else {
				client.Write([]byte(c.then))
			}
			select {
			case err := <-done:
				if (err != nil) != (c.then == "") {
					t.Errorf("it returned %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("it waits for ever")
			}
		})
	}
}
