// SPDX-License-Identifier: Apache-2.0

// Package pagemap is a map from consecutive numbers to pointers, as dense as an array and as small as its contents. The
// lookup of a container at its release takes two memory reads. In a Go map it takes a hash and a chain of buckets.
// BenchmarkChurn of subcluster/rm shows the benefit.
package pagemap

import (
	"iter"
	"maps"
	"slices"
)

// Map finds values by consecutively assigned numbers, such as the live containers of an attempt by ContainerID.ID.
// Pages contain the values by number; an empty page is dropped. The bits of a number from EpochBits up are its epoch. A
// Go map contains the numbers of other epochs, which start again from the beginning. The zero Map is ready.
type Map[T any] struct {
	epoch int64 // of the numbers in pages
	first int64 // number of pages[0], in pages
	pages []page[T]
	older map[int64]*T
	n     int
	spare *[1 << pageBits]*T // from the last dropped page
}

const (
	pageBits = 6
	// EpochBits is the lowest bit of the epoch in a number.
	EpochBits = 40
)

// page stores its list elsewhere, so that one cache line contains the counts of many pages. Completions occur in all
// pages, and each decrements a count.
type page[T any] struct {
	n    int
	list *[1 << pageBits]*T // nil when n is 0
}

// Len returns the number of values.
func (l *Map[T]) Len() int { return l.n }

// Get returns the value of a number, nil if there is none.
func (l *Map[T]) Get(id int64) *T {
	if id>>EpochBits == l.epoch {
		seq := id & (1<<EpochBits - 1)
		if k := seq>>pageBits - l.first; k >= 0 && k < int64(len(l.pages)) && l.pages[k].n > 0 {
			if c := l.pages[k].list[seq&(1<<pageBits-1)]; c != nil {
				return c
			}
		}
	}
	return l.older[id] // also for this epoch: after a restart numbers return in any order
}

// Put adds a value under an unused number. A number far from the others is stored in the Go map. A node that
// registers with existing containers can bring such a number, and a NodeManager that issues numbers itself.
func (l *Map[T]) Put(id int64, c *T) {
	l.n++
	if l.n == 1 && len(l.older) == 0 {
		l.epoch, l.first, l.pages = id>>EpochBits, id&(1<<EpochBits-1)>>pageBits, l.pages[:0]
	}
	k := id&(1<<EpochBits-1)>>pageBits - l.first
	if id>>EpochBits != l.epoch || k < 0 || k > int64(len(l.pages))+1024 {
		if l.older == nil {
			l.older = map[int64]*T{}
		}
		l.older[id] = c
		return
	}
	for int64(len(l.pages)) <= k {
		l.pages = append(l.pages, page[T]{})
	}
	p := &l.pages[k]
	if p.list == nil {
		if p.list, l.spare = l.spare, nil; p.list == nil {
			p.list = new([1 << pageBits]*T)
		}
	}
	p.n++
	p.list[id&(1<<pageBits-1)] = c
}

// Drop removes the value of a number. The number must have a value.
func (l *Map[T]) Drop(id int64) {
	l.n--
	k := id&(1<<EpochBits-1)>>pageBits - l.first
	if id>>EpochBits != l.epoch || k < 0 || k >= int64(len(l.pages)) || len(l.older) > 0 && l.older[id] != nil {
		delete(l.older, id)
		return
	}
	p := &l.pages[k]
	p.list[id&(1<<pageBits-1)] = nil
	if p.n--; p.n > 0 {
		return
	}
	l.spare, p.list = p.list, nil
	free := 0
	for free < len(l.pages) && l.pages[free].n == 0 {
		free++
	}
	if free > 0 {
		l.pages = l.pages[free:]
		l.first += int64(free)
	}
}

// All yields the values: first those in the Go map, then those in pages, each by number. Values may be dropped during
// the iteration.
func (l *Map[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		if len(l.older) > 0 {
			for _, id := range slices.Sorted(maps.Keys(l.older)) {
				if c := l.older[id]; c != nil && !yield(c) {
					return
				}
			}
		}
		for _, p := range l.pages {
			if p.list == nil {
				continue
			}
			for i := range p.list {
				if c := p.list[i]; c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// Oldest returns the value with the smallest number in the pages, nil if there is none.
func (l *Map[T]) Oldest() *T {
	for _, p := range l.pages {
		if p.list == nil {
			continue
		}
		for _, c := range p.list {
			if c != nil {
				return c
			}
		}
	}
	return nil
}

// Prefetch reads the slot of the number after the latest one in the last page. So a Put soon after does not wait
// for memory. The caller must add its result to a stored sum; otherwise the compiler omits the read.
func (l *Map[T]) Prefetch(id int64) int32 {
	if k := len(l.pages); k > 0 && l.pages[k-1].n > 0 && l.pages[k-1].list[id&(1<<pageBits-1)] != nil {
		return 1
	}
	return 0
}
