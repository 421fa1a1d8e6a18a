// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/sched/topology"
)

// distance is the permitted distance of an ask from its places.
type distance uint8

const (
	atNode distance = iota
	atRack
	atAny
)

// askPlace is a host or rack entry of an ask. host or onRack is its target, nil until a node registers there.
type askPlace struct {
	name   string
	host   *topology.Host[Node]
	onRack *topology.Rack
	rack   bool
	strict bool
	count  int32
}

// fewPlaces is the number of places up to which a list is faster than a map.
const fewPlaces = 12

// morePlaces limits the number of places retained for reuse.
const morePlaces = 1 << 16

// resolve looks up a place's host or rack.
func (s *Scheduler) resolve(p *askPlace) {
	if p.rack {
		p.onRack = s.nodes.Rack(p.name)
	} else {
		p.host = s.nodes.Host(p.name)
	}
}

func (w *Ask) placed() bool { return len(w.hosts) > 0 || len(w.racks) > 0 }

// place returns the entry of a host or rack, nil if there is none.
func (w *Ask) place(name string) *askPlace {
	if w.byName != nil {
		return w.byName[name]
	}
	list := w.hosts
	if strings.HasPrefix(name, "/") {
		list = w.racks
	}
	for _, p := range list {
		if p.name == name {
			return p
		}
	}
	return nil
}

// atHost and atRack return the entry that names the host or the rack of a node.
func (w *Ask) atHost(n *Node) *askPlace {
	if w.byName != nil {
		return w.byName[n.host.Name()]
	}
	for _, p := range w.hosts {
		if p.host == n.host || p.host == nil && p.name == n.host.Name() {
			return p
		}
	}
	return nil
}

func (w *Ask) atRack(n *Node) *askPlace {
	if w.byName != nil {
		return w.byName[n.rack.Name()]
	}
	for _, p := range w.racks {
		if p.onRack == n.rack || p.onRack == nil && p.name == n.rack.Name() {
			return p
		}
	}
	return nil
}

func (s *Scheduler) setPlace(w *Ask, name string, count int32, strict bool) {
	p := w.place(name)
	if p == nil {
		if count <= 0 {
			return
		}
		p = s.newPlace()
		p.name, p.rack = name, strings.HasPrefix(name, "/")
		s.resolve(p)
		if p.rack {
			w.racks = append(w.racks, p)
		} else {
			w.hosts = append(w.hosts, p)
		}
		if w.byName != nil {
			w.byName[name] = p
		} else if len(w.hosts)+len(w.racks) > fewPlaces {
			w.byName = make(map[string]*askPlace, 2*fewPlaces)
			for _, x := range w.hosts {
				w.byName[x.name] = x
			}
			for _, x := range w.racks {
				w.byName[x.name] = x
			}
		}
	}
	p.count, p.strict = count, strict
	if count <= 0 {
		s.dropPlace(w, p)
	}
}

func (s *Scheduler) newPlace() *askPlace {
	k := len(s.places)
	if k == 0 {
		return &askPlace{}
	}
	p := s.places[k-1]
	s.places = s.places[:k-1]
	return p
}

func (s *Scheduler) dropPlace(w *Ask, p *askPlace) {
	if w.byName != nil {
		delete(w.byName, p.name)
	}
	list := &w.hosts
	if p.rack {
		list = &w.racks
	}
	if i := slices.Index(*list, p); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	if *p = (askPlace{}); len(s.places) < morePlaces {
		s.places = append(s.places, p)
	}
}
