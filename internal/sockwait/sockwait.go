// SPDX-License-Identifier: Apache-2.0

// Package sockwait waits for the first byte of a connection on the smallest stack of a goroutine. A silent client costs
// little more than its connection.
package sockwait

import "syscall"

// Wait returns when a read of the socket would return data, its end or an error; it reads nothing. Its own error comes
// from a deadline, or from a socket that was closed meanwhile.
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
