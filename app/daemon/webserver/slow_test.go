// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve runs a port for a test.
func serve(t *testing.T, h http.HandlerFunc, c Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Task(l, h, c)(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, address, says string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, says); err != nil {
		t.Fatal(err)
	}
	return c
}

// A client that sends nothing, half of its headers or half of its body is disconnected when the time for headers is
// over. The handler that reads the body gets an error. A silent client is not logged as slow: clients keep spare
// connections.
func TestSlowHeadersAndSlowBodiesEnd(t *testing.T) {
	read := make(chan error, 1)
	figures := NewFigures()
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	}, Config{ReadHeaderTimeout: 300 * time.Millisecond, Figures: figures})
	for name, says := range map[string]string{
		"nothing":      "",
		"half headers": "GET / HTTP/1.1\r\nHost: x\r\nX-",
		"half a body":  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf",
	} {
		began := time.Now()
		c := dial(t, address, says)
		c.SetReadDeadline(began.Add(3 * time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: it was not hung up on", name)
		}
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("%s: it was hung up on after %v", name, took)
		}
	}
	if err := <-read; err == nil {
		t.Error("the handler did not learn that the body ended early")
	}
	if n := figures.slowCount.Load(); n != 2 {
		t.Errorf("%d connections were told of as slow, not the two that had begun something", n)
	}
}

// A request that lasts longer than its body may take is served to its end.
func TestBodyHasItsOwnTimeout(t *testing.T) {
	const given = time.Second
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the request was ended")
		case <-time.After(5 * given / 2):
		}
		fmt.Fprint(w, "served")
	}, Config{ReadHeaderTimeout: given})
	resp, err := http.Post("http://"+address, "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "served" {
		t.Errorf("the answer is %q, %v", b, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestConnectionLimitReasonIsReported(t *testing.T) {
	address := serve(t, func(http.ResponseWriter, *http.Request) {}, Config{MaxConnections: 3, MaxPerAddress: 9})
	for range 3 {
		dial(t, address, "")
	}
	time.Sleep(50 * time.Millisecond) // accepted
	c := dial(t, address, "")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(b), "3 connections, its limit") {
		t.Errorf("it was told %d %q, %v", resp.StatusCode, b, err)
	}
}

// One address that has all it may have leaves room for the others.
func TestAnAddressHasALimitOfItsOwn(t *testing.T) {
	address := serve(t, func(http.ResponseWriter, *http.Request) {}, Config{MaxConnections: 4})
	for range 2 {
		dial(t, address, "")
	}
	time.Sleep(50 * time.Millisecond) // accepted
	get := func(c net.Conn) (int, string) {
		c.SetDeadline(time.Now().Add(3 * time.Minute))
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // a refusal may have closed it already
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	third := dial(t, address, "")
	time.Sleep(50 * time.Millisecond)
	third.SetDeadline(time.Now().Add(3 * time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(third), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 503 || !strings.Contains(string(b), "127.0.0.1 has 2") {
		t.Errorf("its third connection was told %d %q", resp.StatusCode, b)
	}
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if code, text := get(other); code != http.StatusOK {
		t.Errorf("another address was told %d %q", code, text)
	}
}

// Idle connections are closed to make room, the longest idle first: silent ones, served ones without a new request,
// and those with half a body. A connection whose request is being served stays.
func TestThoseThatAreWaitedForGiveWay(t *testing.T) {
	finish := make(chan struct{})
	var port atomic.Pointer[listener]
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		port.Store(r.Context().Value(connKey{}).(*conn).l)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.URL.Path == "/long" {
			<-finish
		}
		fmt.Fprint(w, "x")
	}, Config{})
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	served := dial(t, address, "POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	quiet := []net.Conn{
		dial(t, address, ""),
		dial(t, address, get),
		dial(t, address, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf"),
	}
	if _, err := http.ReadResponse(bufio.NewReader(quiet[1]), nil); err != nil {
		t.Fatal(err)
	}
	waitedFor := func(n int) {
		l := port.Load()
		for is := -1; is != n; time.Sleep(time.Millisecond) {
			l.mu.Lock()
			is = l.quiet.Len()
			l.mu.Unlock()
		}
	}
	waitedFor(len(quiet))
	for range maxQuiet - len(quiet) {
		dial(t, address, "")
	}
	waitedFor(maxQuiet)
	time.Sleep(2 * quietTime)
	for range quiet {
		dial(t, address, "")
	}
	for i, c := range quiet {
		c.SetReadDeadline(time.Now().Add(3 * time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%d was not given up: %v", i, err)
		}
	}
	close(finish)
	resp, err := http.ReadResponse(bufio.NewReader(served), nil)
	if err != nil {
		t.Fatalf("the one that was being served was given up: %v", err)
	}
	resp.Body.Close()
}
