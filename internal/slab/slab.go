// SPDX-License-Identifier: Apache-2.0

// Package slab allocates many values of one type at once, so that values used together are adjacent and begin on a
// cache line.
//
// The reason: a slab of more than 32 KB begins on a page. Go adds a word before smaller arrays with pointers, so that
// each value of one cache line would span two. BenchmarkChurn and BenchmarkMemory of subcluster/rm show the benefit
// (docs/bench/scheduler.md).
package slab

import "reflect"

// Pool allocates values from slabs. The zero Pool is ready.
type Pool[T any] struct{ rest []T }

// least is the minimum size of a slab in bytes: above the size classes of Go's allocator that add a header word.
const least = 64 << 10

// New returns the next zero value.
func (p *Pool[T]) New() *T {
	if len(p.rest) == 0 {
		p.rest = make([]T, max(1, least/max(1, reflect.TypeFor[T]().Size())))
	}
	x := &p.rest[0]
	p.rest = p.rest[1:]
	return x
}
