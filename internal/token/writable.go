// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/creelrm/creel"
)

// AppendVLong appends v as Hadoop's VLong (VInt is the same for values of 32 bits). That is one byte for -112..127,
// otherwise a byte with sign and length, and the magnitude big-endian (org.apache.hadoop.io.WritableUtils).
func AppendVLong(b []byte, v int64) []byte {
	if v >= -112 && v <= 127 {
		return append(b, byte(v))
	}
	tag := -112
	if v < 0 {
		v, tag = ^v, -120
	}
	n := (bits.Len64(uint64(v)) + 7) / 8
	b = append(b, byte(tag-n))
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		b = append(b, byte(v>>shift))
	}
	return b
}

// AppendText appends s as Hadoop's Text: its length in bytes as a VInt, then UTF-8.
func AppendText(b []byte, s string) []byte {
	return append(AppendVLong(b, int64(len(s))), s...)
}

// AppendBytes appends p with its length as a VInt before it.
func AppendBytes(b, p []byte) []byte {
	return append(AppendVLong(b, int64(len(p))), p...)
}

// Reader reads Writables from bytes. The first failure is permanent: every later read returns zero, and Err returns the
// error. A result never uses more memory than the input has bytes.
type Reader struct {
	b   []byte
	err error
}

// NewReader reads b without copying it.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err is the first failure, of kind ErrInvalidRequest.
func (r *Reader) Err() error { return r.err }

// Rest returns the unread bytes.
func (r *Reader) Rest() []byte { return r.b }

// Fail makes the reader fail with a reason, unless it has failed before.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(format, args...)
	}
	r.b = nil
}

func malformed(format string, args ...any) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: "malformed token data", Why: fmt.Sprintf(format, args...),
		Try: "send the bytes as Hadoop's Credentials and Token classes write them"}
}

// Next takes n bytes; they share memory with the input.
func (r *Reader) Next(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.Fail("%d bytes wanted, %d are left", n, len(r.b))
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

// VLong reads a VLong in any of its encodings, minimal or not, as in Java.
func (r *Reader) VLong() int64 {
	p := r.Next(1)
	if p == nil {
		return 0
	}
	first := int8(p[0])
	if first >= -112 {
		return int64(first)
	}
	n, negative := int(-112-first), false
	if first < -120 {
		n, negative = int(-120-first), true
	}
	p = r.Next(n)
	if p == nil {
		return 0
	}
	var word [8]byte
	copy(word[8-n:], p)
	v := int64(binary.BigEndian.Uint64(word[:]))
	if negative {
		v = ^v
	}
	return v
}

// VInt reads a VLong that must fit into 32 bits.
func (r *Reader) VInt() int32 {
	v := r.VLong()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.Fail("%d does not fit into a VInt", v)
		return 0
	}
	return int32(v)
}

// Bytes reads a length and the bytes that follow; they share memory with the input.
func (r *Reader) Bytes() []byte { return r.Next(int(r.VInt())) }

// Text reads a Text. Invalid UTF-8 remains unchanged.
func (r *Reader) Text() string { return string(r.Bytes()) }
