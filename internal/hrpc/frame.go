// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

var (
	errFrameSize  = errors.New("frame length is out of bounds")
	errOverBudget = errors.New("too many request bytes are held already")
	errNothingYet = errors.New("the socket has nothing yet")
)

// budget is a number of bytes that connections share. Taking from it also takes from its parent budget.
type budget struct {
	limit int64
	used  atomic.Int64
	from  *budget // nil for the whole
}

func (b *budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	if !b.from.take(n) {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) {
	for ; b != nil; b = b.from {
		b.used.Add(-n)
	}
}

// fits reports whether n bytes are available now.
func (b *budget) fits(n int64) bool {
	for ; b != nil; b = b.from {
		if b.used.Load()+n > b.limit {
			return false
		}
	}
	return true
}

// force takes n bytes even beyond the limit.
func (b *budget) force(n int64) { b.give(-n) }

// frameReader cuts frames from a socket. It reads only when the socket is ready. So a connection between frames uses no
// buffer, and one at the start of a frame uses little more. The buffer of a large frame grows with the received bytes,
// not with the announced length. While the rest of a frame is awaited, its memory is taken from a budget, except for a
// small amount that every connection may use.
type frameReader struct {
	raw    syscall.RawConn
	onRead func(fd uintptr) bool // readReady, bound once

	buf    []byte // nil while idle; buf[r:w] is not yet consumed
	parked bool   // buf is trimmed to its content while the rest of the frame is awaited
	r, w   int
	err    error   // of the last read
	shared *budget // for buffers above uncounted
	held   int64   // bytes taken from shared
	bytes  uint64  // total of read bytes

	// restart makes a read without available bytes return errNothingYet instead of waiting.
	restart bool
}

func (f *frameReader) init(conn net.Conn, shared *budget) error {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("hrpc: %T is not a socket", conn)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	f.raw, f.shared = raw, shared
	f.onRead = f.readReady
	return nil
}

// readReady reads the available bytes of the socket. Returning false means "call me when the socket is ready".
func (f *frameReader) readReady(fd uintptr) bool {
	switch {
	case f.buf == nil && f.bytes == 0:
		b := getTiny()
		f.buf = b[:cap(b)]
	case f.buf == nil:
		b := getBuffer(smallBuffer)
		f.buf = b[:cap(b)]
	case f.parked:
		b := getBuffer(smallBuffer)
		b = b[:cap(b)]
		f.w = copy(b, f.buf[f.r:f.w])
		f.buf, f.r, f.parked = b, 0, false
	}
	n, again, err := readSocket(fd, f.buf[f.w:])
	if again {
		f.err = f.park()
		if f.err == nil && f.restart {
			f.err = errNothingYet
		}
		return f.err != nil
	}
	switch {
	case err != nil:
		f.err = err
	case n == 0:
		f.err = io.EOF
	default:
		f.w += n
		f.bytes += uint64(n)
	}
	return true
}

const (
	// maxParked is the largest part of an incomplete frame, in bytes, that is copied to a buffer of its own size.
	maxParked = smallBuffer / 4
	// uncounted is the number of bytes that each connection, and each call, may use outside all budgets.
	uncounted = 1 << 10
)

// park trims the buffer while the socket has no data, and charges it to the budget.
func (f *frameReader) park() error {
	switch {
	case f.r == f.w:
		f.dropBuffer()
		return nil
	case len(f.buf) <= smallBuffer && f.w-f.r <= maxParked:
		b := append([]byte(nil), f.buf[f.r:f.w]...)
		putBuffer(f.buf)
		f.buf, f.r, f.w, f.parked = b, 0, len(b), true
	}
	if len(f.buf) <= uncounted {
		return nil
	}
	return f.count(int64(len(f.buf)))
}

// count changes the amount taken from the budget to n bytes.
func (f *frameReader) count(n int64) error {
	switch more := n - f.held; {
	case more < 0:
		f.shared.give(-more)
	case !f.shared.take(more):
		return errOverBudget
	}
	f.held = n
	return nil
}

func (f *frameReader) dropBuffer() {
	f.parked = false
	if f.buf != nil {
		putBuffer(f.buf)
		f.buf = nil
	}
	f.r, f.w = 0, 0
	if f.held > 0 {
		f.shared.give(f.held)
		f.held = 0
	}
}

// fill blocks until at least one more byte arrives.
func (f *frameReader) fill() error {
	if f.buf != nil && f.w == len(f.buf) && !f.parked {
		return errFrameSize // callers make room first
	}
	f.err = nil
	if err := f.raw.Read(f.onRead); err != nil {
		return err
	}
	return f.err
}

// room makes the buffer large enough for a frame that announces size bytes (including the length), of which buf[r:w]
// has arrived.
func (f *frameReader) room(size int) error {
	if f.r == f.w && len(f.buf) > smallBuffer {
		f.dropBuffer() // the large frame is finished
	}
	if f.buf == nil || f.parked || f.r+size <= len(f.buf) {
		return nil // a parked buffer is replaced when bytes arrive
	}
	if f.r > 0 {
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r = 0
	}
	if f.w < len(f.buf) {
		return nil // continue reading into the existing buffer
	}
	n := min(size, 4*len(f.buf))
	var b []byte
	if n > largeBuffer && f.shared != nil {
		b = make([]byte, n) // the allocation must not exceed the charged size
	} else {
		b = getBuffer(n)
		b = b[:cap(b)]
	}
	if err := f.count(int64(len(b))); err != nil {
		putBuffer(b)
		return err
	}
	copy(b, f.buf[:f.w])
	putBuffer(f.buf)
	f.buf = b
	return nil
}

// announced is the length of the current frame, whose first four bytes have arrived.
func (f *frameReader) announced() int {
	return int(int32(binary.BigEndian.Uint32(f.buf[f.r:])))
}

// buffered returns the next frame if it has already arrived. It is valid until the next call of buffered or next.
func (f *frameReader) buffered(limit int) (frame []byte, ok bool, err error) {
	if f.w-f.r < 4 {
		return nil, false, nil
	}
	size := int32(binary.BigEndian.Uint32(f.buf[f.r:]))
	if size < 0 || int(size) > limit {
		return nil, false, fmt.Errorf("%w: %d, the limit is %d", errFrameSize, size, limit)
	}
	end := f.r + 4 + int(size)
	if f.w < end {
		return nil, false, nil
	}
	frame = f.buf[f.r+4 : end : end]
	f.r = end
	return frame, true, nil
}

// next waits for the next frame and returns it. The error is io.EOF at the end between frames and io.ErrUnexpectedEOF
// within one.
func (f *frameReader) next(limit int) ([]byte, error) {
	for {
		frame, ok, err := f.buffered(limit)
		if ok || err != nil {
			return frame, err
		}
		if err := f.more(); err != nil {
			return nil, err
		}
	}
}

// more reads missing bytes of the current frame.
func (f *frameReader) more() error {
	want := 4
	if f.w-f.r >= 4 {
		want += int(binary.BigEndian.Uint32(f.buf[f.r:]))
	}
	if err := f.room(want); err != nil {
		return err
	}
	err := f.fill()
	if err == io.EOF && f.w > f.r {
		return io.ErrUnexpectedEOF
	}
	return err
}

// peek waits for n bytes and returns them without consuming them.
func (f *frameReader) peek(n int) ([]byte, error) {
	for f.w-f.r < n {
		if err := f.room(n); err != nil {
			return nil, err
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
	return f.buf[f.r : f.r+n], nil
}

// partial reports whether a part of a frame has been read.
func (f *frameReader) partial() bool { return f.w > f.r }

// skip begins to discard the current frame, however long. It returns the number of its bytes that have not yet arrived.
func (f *frameReader) skip() (left int) {
	left = 4 + int(binary.BigEndian.Uint32(f.buf[f.r:]))
	return f.skipMore(left)
}

func (f *frameReader) skipMore(left int) int {
	n := min(left, f.w-f.r)
	if f.r += n; f.r == f.w {
		f.r, f.w = 0, 0
	}
	return left - n
}
