// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"iter"
	"maps"
	"slices"
)

// living finds the live containers that carry an attempt's number, by
// ContainerID.ID. Numbers are given out one after the other, so they lie in
// pages by number; a page whose containers are all gone is dropped. Numbers of
// an earlier life of this ResourceManager, which start anew, are in a map.
type living struct {
	epoch int64 // of the numbers in pages
	first int64 // number of pages[0], in pages
	pages []livePage
	older map[int64]*container
	n     int
	spare *[1 << pageBits]*container // of the page dropped last
}

const (
	pageBits  = 6
	epochBits = 40
)

// livePage has its list elsewhere, so that the counts of many pages lie in one
// line: ends are all over the pages, and each counts down.
type livePage struct {
	n    int
	list *[1 << pageBits]*container // nil when n is 0
}

func (l *living) get(id int64) *container {
	if id>>epochBits == l.epoch {
		seq := id & (1<<epochBits - 1)
		if k := seq>>pageBits - l.first; k >= 0 && k < int64(len(l.pages)) && l.pages[k].n > 0 {
			if c := l.pages[k].list[seq&(1<<pageBits-1)]; c != nil {
				return c
			}
		}
	}
	return l.older[id] // of this epoch too: nodes bring back containers in any order
}

// put adds a container. A number far from the others, which only a node that
// registers with containers of its own can bring, goes to the map.
func (l *living) put(id int64, c *container) {
	l.n++
	if l.n == 1 && len(l.older) == 0 {
		l.epoch, l.first, l.pages = id>>epochBits, id&(1<<epochBits-1)>>pageBits, l.pages[:0]
	}
	k := id&(1<<epochBits-1)>>pageBits - l.first
	if id>>epochBits != l.epoch || k < 0 || k > int64(len(l.pages))+1024 {
		if l.older == nil {
			l.older = map[int64]*container{}
		}
		l.older[id] = c
		return
	}
	for int64(len(l.pages)) <= k {
		l.pages = append(l.pages, livePage{})
	}
	p := &l.pages[k]
	if p.list == nil {
		if p.list, l.spare = l.spare, nil; p.list == nil {
			p.list = new([1 << pageBits]*container)
		}
	}
	p.n++
	p.list[id&(1<<pageBits-1)] = c
}

func (l *living) drop(id int64) {
	l.n--
	k := id&(1<<epochBits-1)>>pageBits - l.first
	if id>>epochBits != l.epoch || k < 0 || k >= int64(len(l.pages)) || len(l.older) > 0 && l.older[id] != nil {
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

// all gives them: those in the map first, then those in pages, each by number.
// They may be dropped on the way.
func (l *living) all() iter.Seq[*container] {
	return func(yield func(*container) bool) {
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

// oldest gives the one with the least number in the pages, nil for none.
func (l *living) oldest() *container {
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
