// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/nodeindex"
)

// DefaultRack is the rack of nodes that name none.
const DefaultRack = "/default-rack"

// bigRack is the number of nodes from which a rack has a separate index.
const bigRack = 64

// Host is the nodes of one host: usually one; tests run several.
type Host[N any] struct {
	name  string
	nodes []*N
	one   [1]*N // initial memory of nodes
}

// Name is the host's name.
func (h *Host[N]) Name() string { return h.name }

// Nodes are its nodes, in order of Put. The caller must not change the slice.
func (h *Host[N]) Nodes() []*N { return h.nodes }

// Rack is the nodes of one rack. A large one has a separate index; a small one is searched linearly.
type Rack struct {
	name  string
	nodes []int32 // by serial number
	index *nodeindex.Index
}

// Name is the rack's name.
func (r *Rack) Name() string { return r.name }

// Map is the nodes of a partition. Init makes it ready; it must not be copied after that.
type Map[N any] struct {
	nodes     []*N            // by serial number, as are the next four
	links     nodeindex.Links // positions in the index of all nodes
	rackLinks nodeindex.Links // and in the rack's index
	room      []int64         // free memory, -1 for an unusable node: read when a rack is searched
	slots     []int32         // positions in the rack's list

	sizes    *amounts.Sizes
	state    func(n *N) (free *amounts.Vec, usable bool)
	index    *nodeindex.Index
	hosts    map[string]*Host[N]
	racks    map[string]*Rack
	list     []*Rack
	bigRacks int // racks with a separate index
}

// Init makes the map ready, for asks of the given sizes. state returns the free resources of a node and whether it may
// get containers.
func (m *Map[N]) Init(sizes *amounts.Sizes, state func(n *N) (free *amounts.Vec, usable bool)) {
	m.sizes, m.state = sizes, state
	m.index = nodeindex.New(sizes, &m.links)
	m.hosts, m.racks = map[string]*Host[N]{}, map[string]*Rack{}
}

// Skip makes an empty entry for the node with the next serial number.
func (m *Map[N]) Skip() {
	m.nodes, m.room, m.slots = append(m.nodes, nil), append(m.room, -1), append(m.slots, 0)
	m.links.AddNode()
	m.rackLinks.AddNode()
}

// Put fills an empty entry with a node on a host and a rack.
func (m *Map[N]) Put(serial int32, n *N, host, rack string) (*Host[N], *Rack) {
	m.nodes[serial] = n
	h := m.hosts[host]
	if h == nil {
		h = &Host[N]{name: host}
		h.nodes = h.one[:0]
		m.hosts[host] = h
	}
	h.nodes = append(h.nodes, n)
	r := m.Named(rack)
	m.toRack(serial, r)
	return h, r
}

// Remove empties the entry of a node.
func (m *Map[N]) Remove(serial int32, h *Host[N], r *Rack) {
	n := m.nodes[serial]
	m.fromRack(serial, r)
	h.nodes = slices.DeleteFunc(h.nodes, func(x *N) bool { return x == n })
	m.nodes[serial] = nil
}

// Move moves a node to another rack.
func (m *Map[N]) Move(serial int32, from, to *Rack) {
	m.fromRack(serial, from)
	m.toRack(serial, to)
}

// Named returns the rack of a name, "" for the default one. It makes a missing one.
func (m *Map[N]) Named(name string) *Rack {
	if name == "" {
		name = DefaultRack
	}
	r := m.racks[name]
	if r == nil {
		r = &Rack{name: name}
		m.racks[name] = r
		m.list = append(m.list, r)
		if len(m.list) == 2 && len(m.list[0].nodes) >= bigRack {
			m.indexRack(m.list[0])
		}
	}
	return r
}

func (m *Map[N]) toRack(serial int32, r *Rack) {
	m.slots[serial] = int32(len(r.nodes))
	r.nodes = append(r.nodes, serial)
	if r.index == nil && len(r.nodes) >= bigRack && len(m.list) > 1 {
		m.indexRack(r)
	}
}

func (m *Map[N]) indexRack(r *Rack) {
	m.bigRacks++
	r.index = nodeindex.New(m.sizes, &m.rackLinks)
	for _, serial := range r.nodes {
		free, usable := m.state(m.nodes[serial])
		r.index.Update(serial, free, usable)
	}
}

func (m *Map[N]) fromRack(serial int32, r *Rack) {
	if r.index != nil {
		r.index.Drop(serial)
	}
	last := r.nodes[len(r.nodes)-1]
	r.nodes[m.slots[serial]] = last
	m.slots[last] = m.slots[serial]
	r.nodes = r.nodes[:len(r.nodes)-1]
}

// Update moves a node to the position of its free resources, or takes an unusable one out of the search.
func (m *Map[N]) Update(serial int32, r *Rack, free *amounts.Vec, usable bool) {
	if m.room[serial] = -1; usable {
		m.room[serial] = free.Memory
	}
	m.index.Update(serial, free, usable)
	if m.bigRacks > 0 && r.index != nil {
		r.index.Update(serial, free, usable)
	}
}

// At returns the node of a serial number, nil for one of another partition.
func (m *Map[N]) At(serial int32) *N { return m.nodes[serial] }

// All returns the nodes by serial number, nil for those of other partitions. The caller must not change the slice.
func (m *Map[N]) All() []*N { return m.nodes }

// Host returns a host with nodes, nil if no node of that name was put here.
func (m *Map[N]) Host(name string) *Host[N] { return m.hosts[name] }

// Rack returns a rack, nil if no node of that rack was put here.
func (m *Map[N]) Rack(name string) *Rack { return m.racks[name] }

// Find returns the first usable node in order that accepts, by its serial number, returns true for: on a rack, or
// anywhere if the rack is nil. It returns nil if there is none.
func (m *Map[N]) Find(r *Rack, need *amounts.Vec, order nodeindex.Order, accepts func(serial int32) bool) *N {
	ix := m.index
	if r != nil && len(m.list) > 1 {
		if ix = r.index; ix == nil {
			return m.findOn(r, need.Memory, order == nodeindex.LeastRoom, accepts)
		}
	}
	at := ix.Find(need, order, accepts)
	if at < 0 {
		return nil
	}
	return m.nodes[at]
}

// findOn is Find on a rack without an index.
func (m *Map[N]) findOn(r *Rack, need int64, least bool, accepts func(serial int32) bool) *N {
	best, room := int32(-1), int64(0)
	for _, serial := range r.nodes {
		has := m.room[serial]
		if has < need || best >= 0 && (least && has >= room || !least && has <= room) {
			continue
		}
		if accepts(serial) {
			best, room = serial, has
		}
	}
	if best < 0 {
		return nil
	}
	return m.nodes[best]
}
