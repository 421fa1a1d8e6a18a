// SPDX-License-Identifier: Apache-2.0

package hrpc

import "sync"

// Buffers come in a few sizes, each with its pool. An active connection reads into the smallest size. An idle
// connection uses no buffer.
const (
	tinyBuffer   = 2 << 10 // for a connection's first read: the handshake
	smallBuffer  = 16 << 10
	mediumBuffer = 64 << 10
	bigBuffer    = 256 << 10
	largeBuffer  = 1 << 20
	hugeBuffer   = 4 << 20
	giantBuffer  = 16 << 20 // an answer of tens of thousands of applications
)

var (
	tinyBuffers   = sync.Pool{New: func() any { return new([tinyBuffer]byte) }}
	smallBuffers  = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	mediumBuffers = sync.Pool{New: func() any { return new([mediumBuffer]byte) }}
	bigBuffers    = sync.Pool{New: func() any { return new([bigBuffer]byte) }}
	largeBuffers  = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
	hugeBuffers   = sync.Pool{New: func() any { return new([hugeBuffer]byte) }}
	giantBuffers  = sync.Pool{New: func() any { return new([giantBuffer]byte) }}
)

// getTiny returns an empty buffer of the smallest size.
func getTiny() []byte { return tinyBuffers.Get().(*[tinyBuffer]byte)[:0] }

// getBuffer returns an empty buffer with room for at least n bytes.
func getBuffer(n int) []byte {
	switch {
	case n <= smallBuffer:
		return smallBuffers.Get().(*[smallBuffer]byte)[:0]
	case n <= mediumBuffer:
		return mediumBuffers.Get().(*[mediumBuffer]byte)[:0]
	case n <= bigBuffer:
		return bigBuffers.Get().(*[bigBuffer]byte)[:0]
	case n <= largeBuffer:
		return largeBuffers.Get().(*[largeBuffer]byte)[:0]
	case n <= hugeBuffer:
		return hugeBuffers.Get().(*[hugeBuffer]byte)[:0]
	case n <= giantBuffer:
		return giantBuffers.Get().(*[giantBuffer]byte)[:0]
	}
	return make([]byte, 0, n)
}

// putBuffer returns a buffer to its pool; the caller must not use it afterwards. Other sizes (grown by append, or too
// large for the pools) are left to the GC.
func putBuffer(b []byte) {
	switch cap(b) {
	case tinyBuffer:
		tinyBuffers.Put((*[tinyBuffer]byte)(b[:tinyBuffer]))
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(b[:smallBuffer]))
	case mediumBuffer:
		mediumBuffers.Put((*[mediumBuffer]byte)(b[:mediumBuffer]))
	case bigBuffer:
		bigBuffers.Put((*[bigBuffer]byte)(b[:bigBuffer]))
	case largeBuffer:
		largeBuffers.Put((*[largeBuffer]byte)(b[:largeBuffer]))
	case hugeBuffer:
		hugeBuffers.Put((*[hugeBuffer]byte)(b[:hugeBuffer]))
	case giantBuffer:
		giantBuffers.Put((*[giantBuffer]byte)(b[:giantBuffer]))
	}
}

// growBuffer makes room for n more bytes after b. The caller must own b, and use only the result afterwards.
func growBuffer(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b
	}
	bigger := append(getBuffer(max(len(b)+n, min(2*cap(b), hugeBuffer))), b...)
	putBuffer(b)
	return bigger
}
