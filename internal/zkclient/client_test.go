// SPDX-License-Identifier: Apache-2.0

package zkclient

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"
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
	pieces      [][]byte
}

func (e *endless) SetReadDeadline(t time.Time) error  { e.read = t; return nil }
func (e *endless) SetWriteDeadline(t time.Time) error { e.write = t; return nil }
func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.pieces[0])
	e.pieces = e.pieces[1:]
	return n, nil
}

func TestWaitsForAServerAreBounded(t *testing.T) {
	var conn endless
	s := &stream{Conn: &conn, patience: time.Minute, timeout: new(atomic.Int64)}
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

// The timeout that the server grants is in its first message, which may arrive in pieces.
func TestGrantedTimeoutIsRead(t *testing.T) {
	first := binary.BigEndian.AppendUint32(nil, 37)
	first = append(binary.BigEndian.AppendUint32(first, 0), 0, 0, 0x0f, 0xa0)
	conn := endless{pieces: [][]byte{first[:5], append(first[5:], 1, 2, 3), {9, 9}}}
	var timeout atomic.Int64
	s := &stream{Conn: &conn, timeout: &timeout}
	b := make([]byte, 64)
	for len(conn.pieces) > 0 {
		_, err := s.Read(b)
		must(t, err)
	}
	if got := timeout.Load(); got != 4000 {
		t.Errorf("the timeout is %d ms", got)
	}
}
