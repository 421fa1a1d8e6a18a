// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"iter"
	"math/bits"
)

// bitset is a set of small numbers.
type bitset []uint64

func (b bitset) has(i int) bool { return i/64 < len(b) && b[i/64]>>(i%64)&1 != 0 }

func (b *bitset) set(i int) {
	if k := i/64 + 1 - len(*b); k > 0 {
		*b = append(*b, make([]uint64, k)...)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b bitset) drop(i int) {
	if i/64 < len(b) {
		b[i/64] &^= 1 << (i % 64)
	}
}

// all gives the members in order.
func (b bitset) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
