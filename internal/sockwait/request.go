// SPDX-License-Identifier: Apache-2.0

package sockwait

import (
	"bytes"
	"sync"
	"syscall"
)

// longHeaders is the number of bytes after which the wait for the end of headers stops.
const longHeaders = 8 << 10

var headers = sync.Pool{New: func() any { return new([longHeaders]byte) }}

// WaitForRequest is Wait for a server of HTTP/1. It returns when all headers of a request have arrived, or the bytes
// cannot become a request. So a client that sends a part of the headers costs no more than a silent one. begun reports
// whether any byte arrived: clients open spare connections on which they send nothing.
func WaitForRequest(raw syscall.RawConn) (begun bool, err error) {
	if err := Wait(raw); err != nil { // the stack of silent connections remains small
		return false, err
	}
	return true, raw.Read(peekHeaders)
}

// peekHeaders reports whether further waiting is useless.
func peekHeaders(fd uintptr) bool {
	b := headers.Get().(*[longHeaders]byte)
	defer headers.Put(b)
	for {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil || n <= 0 || n == len(b):
			return true
		}
		return complete(b[:n])
	}
}

// complete reports whether b contains the end of a request's headers, or can never contain it.
func complete(b []byte) bool {
	if b[0] < 'A' || b[0] > 'Z' {
		return true // no method: a TLS client, for example, gets an answer at once
	}
	return bytes.Contains(b, []byte("\n\r\n")) || bytes.Contains(b, []byte("\n\n"))
}
