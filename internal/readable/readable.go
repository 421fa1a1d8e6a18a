// SPDX-License-Identifier: Apache-2.0

// Package readable waits for the first byte of a connection, on as little stack as
// a goroutine can have: whoever connects and says nothing costs little more.
package readable

import "syscall"

// Wait returns when the socket has something to read, or its end or an error to
// tell; nothing is taken from it. The error is that of a deadline or of a socket
// that was closed meanwhile.
func Wait(raw syscall.RawConn) error { return raw.Read(peek) }

// peek reports whether a read would not block.
func peek(fd uintptr) bool {
	var b [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}
