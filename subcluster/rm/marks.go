// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"iter"
	"math/bits"
)

// marks are two sets of nodes, by serial number: those that ran something of an
// attempt, and those that it has a token for. Both are asked for together, so
// the bits of a node lie side by side.
type marks []uint64

type mark uint8

const (
	ran mark = iota
	token
	kinds = 2
)

func (b marks) has(k mark, i int32) bool {
	at := int(i)*kinds + int(k)
	return at/64 < len(b) && b[at/64]>>(at%64)&1 != 0
}

func (b *marks) set(k mark, i int32) {
	at := int(i)*kinds + int(k)
	if n := at/64 + 1 - len(*b); n > 0 {
		*b = append(*b, make([]uint64, n)...)
	}
	(*b)[at/64] |= 1 << (at % 64)
}

func (b marks) drop(k mark, i int32) {
	if at := int(i)*kinds + int(k); at/64 < len(b) {
		b[at/64] &^= 1 << (at % 64)
	}
}

// every has the bit of each node of one kind.
func every(k mark) uint64 { return 0x5555555555555555 << k }

func (b marks) dropAll(k mark) {
	for i := range b {
		b[i] &^= every(k)
	}
}

// all gives the members of one set in order.
func (b marks) all(k mark) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, word := range b {
			for word &= every(k); word != 0; word &= word - 1 {
				if !yield(int32((i*64 + bits.TrailingZeros64(word)) / kinds)) {
					return
				}
			}
		}
	}
}
