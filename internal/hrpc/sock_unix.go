// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hrpc

import "syscall"

// readSocket reads without blocking; again means that no byte is available yet.
func readSocket(fd uintptr, b []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Read(int(fd), b)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return max(n, 0), false, err
		}
	}
}

// writeSocket writes as many bytes as the socket accepts without blocking.
func writeSocket(fd uintptr, b []byte) (n int, err error) {
	for n < len(b) {
		m, err := syscall.Write(int(fd), b[n:])
		switch err {
		case nil:
			n += m
		case syscall.EINTR:
		case syscall.EAGAIN:
			return n, nil
		default:
			return n, err
		}
	}
	return n, nil
}
