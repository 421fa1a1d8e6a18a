// SPDX-License-Identifier: Apache-2.0

// Package sockwait waits for the first byte of a connection, on the smallest stack that a goroutine can have: a
// silent client costs little more than its connection.
package sockwait

import "syscall"

// Wait returns when the socket has data, its end or an error to read; it reads nothing. Its error is a deadline's, or
// a socket's that was closed meanwhile.
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
