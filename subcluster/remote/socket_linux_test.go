// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"
)

// Both ways to a member, by RPC and by REST, leave no bytes behind for longer
// than SocketLife.
func TestKernelDropsUnacknowledgedData(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := NewPool(Config{})
	defer p.Close()
	for name, dial := range map[string]func(ctx context.Context, network, address string) (net.Conn, error){
		"RPC": dial, "REST": p.http.Transport.(*http.Transport).DialContext,
	} {
		nc, err := dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		raw, err := nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var ms int
		if outer := raw.Control(func(fd uintptr) {
			ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); outer != nil || err != nil || int64(ms) != SocketLife.Milliseconds() {
			t.Errorf("%s: unacknowledged bytes live for %d ms: %v, %v", name, ms, err, outer)
		}
	}
}
