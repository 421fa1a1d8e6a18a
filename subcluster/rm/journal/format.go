// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrCorrupt is wrapped by errors of Open about damage that no crash explains.
var ErrCorrupt = errors.New("journal is corrupt")

const (
	magic         = "CREELJ1\n"
	headerBytes   = 48 // magic 8, kind 1, zero 3, salt 4, first 8, count 8, after 8, zero 4, checksum 4
	frameBytes    = 20 // mark 4, number 8, length 4, checksum 4
	maxBlockBytes = 1 << 30

	kindLog  = 0
	kindBase = 1 // replaces every segment before it
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	blockMagic = []byte{0xC7, 0xEE, 0x1B, 0x10}
)

// header is the start of a segment. The salt is part of each checksum of the segment, so that bytes inside a value
// that look like a block are never read as one.
type header struct {
	kind  byte
	salt  uint32
	first uint64 // number of the first block
	count uint64 // base only: number of blocks
	after uint64 // base only: number of the first block in the next segment
}

func (h header) encode() []byte {
	b := make([]byte, headerBytes)
	copy(b, magic)
	b[8] = h.kind
	binary.LittleEndian.PutUint32(b[12:], h.salt)
	binary.LittleEndian.PutUint64(b[16:], h.first)
	binary.LittleEndian.PutUint64(b[24:], h.count)
	binary.LittleEndian.PutUint64(b[32:], h.after)
	binary.LittleEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
	return b
}

func decodeHeader(b []byte) (header, error) {
	switch {
	case len(b) < headerBytes:
		return header{}, fmt.Errorf("header has %d of %d bytes", len(b), headerBytes)
	case string(b[:8]) != magic:
		return header{}, errors.New("this is not a journal segment: wrong first bytes")
	case crc32.Checksum(b[:44], castagnoli) != binary.LittleEndian.Uint32(b[44:]):
		return header{}, errors.New("header checksum differs")
	case b[8] > kindBase:
		return header{}, fmt.Errorf("segment kind %d is not known", b[8])
	}
	return header{
		kind:  b[8],
		salt:  binary.LittleEndian.Uint32(b[12:]),
		first: binary.LittleEndian.Uint64(b[16:]),
		count: binary.LittleEndian.Uint64(b[24:]),
		after: binary.LittleEndian.Uint64(b[32:]),
	}, nil
}

// seal completes a block whose body begins at buf[frameBytes:].
func seal(buf []byte, number uint64, salt uint32) {
	copy(buf, blockMagic)
	binary.LittleEndian.PutUint64(buf[4:], number)
	binary.LittleEndian.PutUint32(buf[12:], uint32(len(buf)-frameBytes))
	binary.LittleEndian.PutUint32(buf[16:], checksum(buf, salt))
}

func checksum(block []byte, salt uint32) uint32 {
	return crc32.Update(crc32.Update(salt, castagnoli, block[:16]), castagnoli, block[frameBytes:])
}

// openBlock returns the body of the block at the start of b and the block's
// whole length, or ok false.
func openBlock(b []byte, salt uint32) (number uint64, body []byte, ok bool) {
	if len(b) < frameBytes || !bytes.Equal(b[:4], blockMagic) {
		return 0, nil, false
	}
	length := uint64(binary.LittleEndian.Uint32(b[12:]))
	if length > maxBlockBytes || uint64(len(b)-frameBytes) < length {
		return 0, nil, false
	}
	block := b[:frameBytes+length]
	if checksum(block, salt) != binary.LittleEndian.Uint32(b[16:]) {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(b[4:]), block[frameBytes:], true
}

// nextBlock finds the first readable block at or after the start of b.
func nextBlock(b []byte, salt uint32) (at int, ok bool) {
	for at < len(b) {
		i := bytes.Index(b[at:], blockMagic)
		if i < 0 {
			return 0, false
		}
		at += i
		if _, _, ok := openBlock(b[at:], salt); ok {
			return at, true
		}
		at++
	}
	return 0, false
}
