// SPDX-License-Identifier: Apache-2.0

package places

import (
	"slices"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/sched/topology"
)

// Distance is the distance of a node from the places that an ask names.
type Distance uint8

// Distances, the smallest first.
const (
	AtNode Distance = iota
	AtRack
	AtAny
	NumDistances = iota
)

// few is the number of places up to which a list is faster than a map.
const few = 12

// mostUnused limits the number of places retained for reuse.
const mostUnused = 1 << 16

// Place is a host or rack entry of an ask. Host or Rack is its target, nil until a node registers there.
type Place[N any] struct {
	Name   string
	Host   *topology.Host[N]
	Rack   *topology.Rack
	OfRack bool
	Strict bool // of a rack: only its named hosts
	Count  int32
}

// Pool resolves the places of a partition, and retains unused ones. The zero value with Nodes is ready.
type Pool[N any] struct {
	Nodes  *topology.Map[N]
	unused []*Place[N]
}

// Resolve looks up a place's host or rack.
func (l *Pool[N]) Resolve(p *Place[N]) {
	if p.OfRack {
		p.Rack = l.Nodes.Rack(p.Name)
	} else {
		p.Host = l.Nodes.Host(p.Name)
	}
}

func (l *Pool[N]) take() *Place[N] {
	k := len(l.unused)
	if k == 0 {
		return &Place[N]{}
	}
	p := l.unused[k-1]
	l.unused = l.unused[:k-1]
	return p
}

func (l *Pool[N]) put(p *Place[N]) {
	if *p = (Place[N]{}); len(l.unused) < mostUnused {
		l.unused = append(l.unused, p)
	}
}

// List is the places that an ask names. The zero value is empty.
type List[N any] struct {
	byName map[string]*Place[N] // if there are many
	Hosts  []*Place[N]          // with a count above zero, in order of arrival; read-only
	Racks  []*Place[N]
}

// Any reports whether the ask names a place.
func (l *List[N]) Any() bool { return len(l.Hosts) > 0 || len(l.Racks) > 0 }

// Place returns the entry of a host or rack, nil if there is none.
func (l *List[N]) Place(name string) *Place[N] {
	if l.byName != nil {
		return l.byName[name]
	}
	list := l.Hosts
	if ofRack(name) {
		list = l.Racks
	}
	for _, p := range list {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func ofRack(name string) bool { return strings.HasPrefix(name, "/") }

// OnHost returns the entry that names a node's host, nil if there is none.
func (l *List[N]) OnHost(h *topology.Host[N]) *Place[N] {
	if l.byName != nil {
		return l.byName[h.Name()]
	}
	for _, p := range l.Hosts {
		if p.Host == h || p.Host == nil && p.Name == h.Name() {
			return p
		}
	}
	return nil
}

// OnRack returns the entry that names a node's rack, nil if there is none.
func (l *List[N]) OnRack(r *topology.Rack) *Place[N] {
	if l.byName != nil {
		return l.byName[r.Name()]
	}
	for _, p := range l.Racks {
		if p.Rack == r || p.Rack == nil && p.Name == r.Name() {
			return p
		}
	}
	return nil
}

// Set sets the number of containers wanted at a place. Zero removes it.
func (l *List[N]) Set(pool *Pool[N], name string, count int32, strict bool) {
	p := l.Place(name)
	if p == nil {
		if count <= 0 {
			return
		}
		p = pool.take()
		p.Name, p.OfRack = name, ofRack(name)
		pool.Resolve(p)
		l.add(p)
	}
	p.Count, p.Strict = count, strict
	if count <= 0 {
		l.drop(pool, p)
	}
}

func (l *List[N]) add(p *Place[N]) {
	if p.OfRack {
		l.Racks = append(l.Racks, p)
	} else {
		l.Hosts = append(l.Hosts, p)
	}
	if l.byName != nil {
		l.byName[p.Name] = p
	} else if len(l.Hosts)+len(l.Racks) > few {
		l.byName = make(map[string]*Place[N], 2*few)
		for _, x := range l.Hosts {
			l.byName[x.Name] = x
		}
		for _, x := range l.Racks {
			l.byName[x.Name] = x
		}
	}
}

// Lower counts a container granted at a place of the list; nil changes nothing.
func (l *List[N]) Lower(pool *Pool[N], p *Place[N]) {
	if p == nil {
		return
	}
	if p.Count--; p.Count <= 0 {
		l.drop(pool, p)
	}
}

func (l *List[N]) drop(pool *Pool[N], p *Place[N]) {
	if l.byName != nil {
		delete(l.byName, p.Name)
	}
	list := &l.Hosts
	if p.OfRack {
		list = &l.Racks
	}
	if i := slices.Index(*list, p); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	pool.put(p)
}
