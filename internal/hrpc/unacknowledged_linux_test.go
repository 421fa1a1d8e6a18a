// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that is gone acknowledges nothing. A connection to it ends after the time that a client tolerates without
// progress.
func TestConnectionToLostMachineEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for stall, want := range map[time.Duration]int{0: 60_000, 5 * time.Second: 5_000} {
		c := NewClient(ClientConfig{StallTime: stall})
		defer c.Close()
		nc, err := c.cfg.Dial(context.Background(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		raw, err := nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		ms := 0
		if outer := raw.Control(func(fd uintptr) {
			ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); outer != nil || err != nil || ms != want {
			t.Errorf("unacknowledged bytes live for %d ms, want %d: %v, %v", ms, want, err, outer)
		}
	}
}
