// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DropUnacknowledged returns a net.Dialer's Control. It makes the kernel close a connection whose peer has acknowledged
// no byte for the given time. By default TCP retries for a quarter of an hour. Only Linux supports it.
func DropUnacknowledged(life time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if outer := c.Control(func(fd uintptr) { // RFC 5482, tcp(7)
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(life.Milliseconds()))
		}); outer != nil {
			return outer
		}
		return err
	}
}
