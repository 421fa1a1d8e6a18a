// SPDX-License-Identifier: Apache-2.0

package zkclient

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/certs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTermIsShorterThanTheSession(t *testing.T) {
	if term := (Servers{Timeout: 9 * time.Second}).Term(); term != 6*time.Second {
		t.Errorf("a claim is valid for %v", term)
	}
}

// endless is a connection whose deadlines are recorded.
type endless struct {
	net.Conn
	read, write time.Time
}

func (e *endless) SetReadDeadline(t time.Time) error  { e.read = t; return nil }
func (e *endless) SetWriteDeadline(t time.Time) error { e.write = t; return nil }

func TestWaitsForAServerAreBounded(t *testing.T) {
	var conn endless
	s := &stream{Conn: &conn, dialer: &dialer{servers: Servers{Timeout: time.Minute}}}
	soon := time.Now().Add(time.Second)
	latest := time.Now().Add(2 * time.Minute)
	for _, c := range []struct {
		set   time.Time
		exact bool
	}{{soon, true}, {time.Time{}, false}, {time.Now().Add(time.Hour), false}} {
		must(t, s.SetReadDeadline(c.set))
		must(t, s.SetWriteDeadline(c.set))
		for _, got := range []time.Time{conn.read, conn.write} {
			if c.exact != got.Equal(c.set) || got.IsZero() || got.After(latest) {
				t.Errorf("the deadline %v became %v", c.set, got)
			}
		}
	}
}

// numbers are 32-bit numbers as ZooKeeper writes them.
func numbers(list ...int32) (b []byte) {
	for _, n := range list {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// message is a message with its length.
func message(parts ...[]byte) []byte {
	b := bytes.Join(parts, nil)
	return append(numbers(int32(len(b))), b...)
}

// greeting is the first message of a server that grants 4 s.
func greeting(session int32) []byte {
	return message(numbers(0, 4000, 0, session, 16), make([]byte, 16), []byte{0})
}

// answer is a server's answer to a token.
func answer(id, code int32, token []byte) []byte {
	if token == nil {
		return message(numbers(id, 0, 0, code, -1))
	}
	return message(numbers(id, 0, 0, code, int32(len(token))), token)
}

// request reads a message of the client.
func request(server net.Conn) []byte {
	size := make([]byte, 4)
	if _, err := io.ReadFull(server, size); err != nil {
		return nil
	}
	b := make([]byte, binary.BigEndian.Uint32(size))
	_, _ = io.ReadFull(server, b)
	return b
}

// two is an exchange of two tokens of the client.
type two struct{ steps int }

func (x *two) Step(token []byte) (reply []byte, done bool, err error) {
	x.steps++
	switch {
	case x.steps == 1:
		return []byte("ticket"), false, nil
	case string(token) == "proof":
		return nil, true, nil
	}
	return nil, false, errors.New("the server has another key")
}

// streamTo is a connection to a server that a test plays.
func streamTo(t *testing.T, login Exchange, plays func(server net.Conn)) *stream {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	go func() {
		defer server.Close()
		plays(server)
	}()
	d := &dialer{servers: Servers{}.WithDefaults()}
	return &stream{Conn: client, dialer: d, address: "z1:2181", login: login}
}

// The timeout that the server grants is in its first message, which may arrive in pieces.
func TestGrantedTimeoutIsRead(t *testing.T) {
	s := streamTo(t, nil, func(server net.Conn) {
		first := greeting(7)
		for len(first) > 0 {
			n := min(5, len(first))
			_, _ = server.Write(first[:n])
			first = first[n:]
		}
		_, _ = server.Write([]byte("more"))
	})
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, append(greeting(7), "more"...)) || s.dialer.timeout.Load() != 4000 {
		t.Errorf("the timeout is %d ms, and the library reads %x (%v)", s.dialer.timeout.Load(), got, err)
	}
}

// The library gets the server's first message after the login alone, so that it sends no request before.
func TestLoginPrecedesEveryRequest(t *testing.T) {
	var tokens []string
	confirmed := false
	s := streamTo(t, &two{}, func(server net.Conn) {
		_, _ = server.Write(greeting(7))
		for id, token := range [][]byte{[]byte("proof"), nil} {
			r := request(server)
			if len(r) < 12 || !bytes.Equal(r[:8], numbers(int32(id+1), opSASL)) {
				t.Errorf("request %x", r)
				return
			}
			tokens = append(tokens, string(r[12:]))
			confirmed = token == nil
			_, _ = server.Write(answer(int32(id+1), 0, token))
		}
	})
	first := make([]byte, len(greeting(7)))
	if _, err := io.ReadFull(s, first); err != nil || !bytes.Equal(first, greeting(7)) || !confirmed {
		t.Errorf("the first message is %x (%v), the login confirmed: %v", first, err, confirmed)
	}
	if len(tokens) != 2 || tokens[0] != "ticket" || tokens[1] != "" {
		t.Errorf("the tokens are %q", tokens)
	}
}

// An expired session needs no login: the library begins another one.
func TestExpiredSessionDoesNotLogIn(t *testing.T) {
	s := streamTo(t, &two{}, func(server net.Conn) { _, _ = server.Write(greeting(0)) })
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, greeting(0)) {
		t.Errorf("the library reads %x (%v)", got, err)
	}
}

func TestRejectedLoginEndsTheConnection(t *testing.T) {
	for want, answers := range map[string][][]byte{
		"rejects the ticket":         {answer(1, codeAuthFailed, nil)},
		"its log has the reason":     {answer(1, 0, []byte("proof")), answer(2, codeNoLogin, nil)},
		"code -4":                    {answer(1, 0, []byte("proof")), answer(2, -4, nil)},
		"no section Server":          {answer(1, 0, nil)},
		"has another key":            {answer(1, 0, []byte("guess"))},
		"does not speak ZooKeeper's": {answer(3, 0, []byte("proof"))},
		"the connection ended":       nil,
	} {
		var log bytes.Buffer
		s := streamTo(t, &two{}, func(server net.Conn) {
			_, _ = server.Write(greeting(7))
			request(server)
			for _, a := range answers {
				_, _ = server.Write(a)
				request(server)
			}
		})
		s.dialer.servers.Log = slog.New(slog.NewTextHandler(&log, nil))
		got, err := io.ReadAll(s)
		if err == nil || len(got) > 0 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "z1:2181: ") {
			t.Errorf("%s: the library reads %x (%v)", want, got, err)
		}
		if reason := s.dialer.failure.Load(); reason == nil || (*reason).Error() != err.Error() {
			t.Errorf("%s: the reason is %v", want, reason)
		}
		_ = s.dialer.failed("z2:2181", errors.New("again")) // one line for each reason
		_ = s.dialer.failed("z3:2181", errors.New("again"))
		if lines := strings.Count(log.String(), "\n"); answers != nil && lines != 2 || strings.Count(log.String(), "again") != 1 {
			t.Errorf("%s: the log is\n%s", want, &log)
		}
	}
	foreign := streamTo(t, nil, func(server net.Conn) { _, _ = server.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	if _, err := io.ReadAll(foreign); err == nil || !strings.Contains(err.Error(), "does not speak ZooKeeper's protocol") {
		t.Errorf("a web server: %v", err)
	}
}

// serve plays a ZooKeeper whose every answer has a code.
func serve(t *testing.T, code int32) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			server, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer server.Close()
				if r := request(server); len(r) != 44 && len(r) != 45 { // a client's first message
					return
				}
				_, _ = server.Write(greeting(7))
				for {
					r := request(server)
					if len(r) < 8 {
						return
					}
					_, _ = server.Write(message(r[:4], numbers(0, 0, code)))
				}
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "localhost:" + port
}

// get reads a node of a server, with the settings of a client.
func get(t *testing.T, s Servers) error {
	t.Helper()
	s.Timeout = 2 * time.Second
	c, err := Connect(s.WithDefaults())
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	for {
		if _, _, err = c.Get(ctx, "/a"); Final(err) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestServerThatRequiresALoginIsNamed(t *testing.T) {
	if err := get(t, Servers{Addresses: []string{serve(t, codeNoLogin)}}); !errors.Is(err, ErrLoginRequired) {
		t.Errorf("the answer is %v", err)
	}
	if err := get(t, Servers{Addresses: []string{serve(t, -101)}}); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("the answer is %v", err)
	}
}

func TestServerWithoutTLSIsNotUsedOverTLS(t *testing.T) {
	trust, err := certs.OpenTrust("", "", slog.New(slog.DiscardHandler))
	must(t, err)
	err = get(t, Servers{Addresses: []string{serve(t, -101)}, TLS: trust})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no connection to localhost:") {
		t.Errorf("the answer is %v", err)
	}
}

func TestUnreachableServersAreNamed(t *testing.T) {
	err := get(t, Servers{Addresses: []string{"127.0.0.1:1"}})
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "no connection to 127.0.0.1:1: connection refused: no server listens there" {
		t.Errorf("the answer is %v", err)
	}
	err = get(t, Servers{Addresses: []string{"nowhere.invalid:1"}})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no connection to nowhere.invalid:1: ") {
		t.Errorf("the answer is %v", err)
	}
}

// The library pauses when it has tried each server since the last connection.
func TestHostsAreTriedInTurn(t *testing.T) {
	h := &hosts{last: -1}
	must(t, h.Init([]string{"a:1", "b:2"}))
	for i, want := range []string{"a:1", "b:2", "a:1 again", "b:2", "a:1 again"} {
		name, round := h.Next()
		if round {
			name += " again"
		}
		if name != want {
			t.Errorf("attempt %d is at %s, want %s", i, name, want)
		}
	}
	h.Connected()
	if name, round := h.Next(); name != "b:2" || round {
		t.Errorf("after a connection the next attempt is at %s, %v", name, round)
	}
}
