// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// errMalformed is the error of every codec for undecodable bytes; callers add the message's name.
var errMalformed = errors.New("malformed protobuf")

// fields iterates over the fields of one encoded message without copying. The headers are decoded for every call. A
// generated message would cost an allocation per call for a dozen small fields.
type fields struct {
	rest  []byte
	num   uint64
	value uint64 // varint and fixed values
	bytes []byte // length-delimited values, part of the input
	err   error
}

// next moves to the next field. It returns false at the end, or if err is set.
func (f *fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	tag, n := uvarint(f.rest)
	if n <= 0 || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
		return f.fail()
	}
	b := f.rest[n:]
	f.num, f.bytes, f.value = tag>>3, nil, 0
	switch tag & 7 {
	case 0:
		if f.value, n = uvarint(b); n <= 0 {
			return f.fail()
		}
	case 1:
		if n = 8; len(b) < n {
			return f.fail()
		}
		f.value = binary.LittleEndian.Uint64(b)
	case 2:
		size, m := uvarint(b)
		if m <= 0 || size > uint64(len(b)-m) {
			return f.fail()
		}
		n = m + int(size)
		f.bytes = b[m:n:n]
	case 5:
		if n = 4; len(b) < n {
			return f.fail()
		}
		f.value = uint64(binary.LittleEndian.Uint32(b))
	default: // groups: creel's messages contain none, a future field might
		n = protowire.ConsumeFieldValue(protowire.Number(f.num), protowire.Type(tag&7), b)
		if n < 0 {
			return f.fail()
		}
	}
	f.rest = b[n:]
	return true
}

func (f *fields) fail() bool {
	f.err, f.rest = errMalformed, nil
	return false
}

// uvarint is binary.Uvarint without its loop for values below 16,384, which nearly every size and tag is.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	if len(b) > 1 && b[1] < 0x80 {
		return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
	}
	return binary.Uvarint(b)
}

func sizeUvarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func zigzag(v int32) uint64   { return uint64(uint32(v<<1) ^ uint32(v>>31)) }
func unzigzag(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(v&1) }

// delimited cuts a varint-delimited message off the front of b.
func delimited(b []byte) (message, rest []byte, err error) {
	size, n := uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, errMalformed
	}
	end := n + int(size)
	return b[n:end:end], b[end:], nil
}

func appendVarintField(b []byte, num byte, v uint64) []byte {
	return binary.AppendUvarint(append(b, num<<3), v)
}

func appendBytesField[T []byte | string](b []byte, num byte, v T) []byte {
	b = binary.AppendUvarint(append(b, num<<3|2), uint64(len(v)))
	return append(b, v...)
}

func sizeBytesField(n int) int { return 1 + sizeUvarint(uint64(n)) + n }
