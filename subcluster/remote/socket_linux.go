// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func dropUnacknowledged(_, _ string, c syscall.RawConn) error {
	var err error
	if outer := c.Control(func(fd uintptr) { // RFC 5482, tcp(7)
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(SocketLife.Milliseconds()))
	}); outer != nil {
		return outer
	}
	return err
}
