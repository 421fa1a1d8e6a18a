// SPDX-License-Identifier: Apache-2.0

// Package nodeset has two sets of nodes with interleaved bits.
package nodeset

import (
	"iter"
	"math/bits"
)

// Sets are two sets of nodes, by serial number: nodes that ran containers of an attempt, and nodes that it has a
// token for. Each grant reads both, so the bits of a node are adjacent: that costs one cache line, not two
// (BenchmarkChurn of subcluster/rm). The nil Sets are empty.
type Sets []uint64

// Kind selects one of the two sets.
type Kind uint8

// The two sets.
const (
	Ran Kind = iota
	Token
	kinds = 2
)

// Has reports whether node i is in set k.
func (b Sets) Has(k Kind, i int32) bool {
	at := int(i)*kinds + int(k)
	return at/64 < len(b) && b[at/64]>>(at%64)&1 != 0
}

// Add adds node i to set k.
func (b *Sets) Add(k Kind, i int32) {
	at := int(i)*kinds + int(k)
	if n := at/64 + 1 - len(*b); n > 0 {
		*b = append(*b, make([]uint64, n)...)
	}
	(*b)[at/64] |= 1 << (at % 64)
}

// Drop removes node i from set k.
func (b Sets) Drop(k Kind, i int32) {
	if at := int(i)*kinds + int(k); at/64 < len(b) {
		b[at/64] &^= 1 << (at % 64)
	}
}

// every has the bits of all nodes of one kind.
func every(k Kind) uint64 { return 0x5555555555555555 << k }

// DropAll empties set k.
func (b Sets) DropAll(k Kind) {
	for i := range b {
		b[i] &^= every(k)
	}
}

// All returns the members of one set in order.
func (b Sets) All(k Kind) iter.Seq[int32] {
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
