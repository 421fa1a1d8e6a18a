// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/nodeindex"
)

// Node is the scheduler's part of a node: its size and its free resources. It is one cache line of 64 bytes; its
// owner's type embeds it. Releases read and change its first half; grants read its location from the second.
// BenchmarkChurn of subcluster/rm needs this layout.
type Node struct {
	free    amounts.Vec // its size minus its containers
	serial  int32       // its index in Scheduler.nodes
	use     Use
	dirty   bool // in Scheduler.dirtyNodes
	held    bool // reserved: hold or kept is set
	changed bool // in Changes.Nodes

	rack *rack
	host *host
	hold *reservation
	*nodeRest
}

// nodeRest holds fields that few decisions need.
type nodeRest struct {
	id        creel.NodeID
	total     amounts.Vec
	rackSlot  int
	increases []*Increase // of containers here, waiting for free resources
	kept      []*claim    // preemption's claims on free resources: the node is held
	of        *Scheduler  // its partition
}

// Use is the permitted use of a node.
type Use uint8

// Uses of a node.
const (
	Off      Use = iota // none: not part of the cluster
	Draining            // its containers keep running, new ones are not placed
	Open                // everything
)

// host is the nodes of one host: usually one; tests run several.
type host struct {
	name  string
	nodes []*Node
	one   [1]*Node // initial memory of nodes
}

// rack is the nodes of one rack. A large one has a separate index; a small one is searched linearly.
type rack struct {
	name  string
	nodes []int32 // by serial number
	index *nodeindex.Index
}

// bigRack is the number of nodes from which a rack has a separate index.
const bigRack = 64

const defaultRack = "/default-rack"

// AddNode registers a node, empty and Off; its serial numbers start with 0.
func (s *Scheduler) AddNode(n *Node, id creel.NodeID, rack string) {
	*n = Node{nodeRest: &nodeRest{id: id, of: s}, serial: int32(len(s.nodes))}
	s.noNode()
	s.nodes[n.serial] = n
	s.toHost(n)
	s.toRack(n, s.rack(rack))
	for _, p := range s.parts {
		p.noNode()
	}
}

func (s *Scheduler) toHost(n *Node) {
	name := n.id.Host
	if s.portInNames {
		name = n.id.String()
	}
	h := s.hosts[name]
	if h == nil {
		h = &host{name: name}
		h.nodes = h.one[:0]
		s.hosts[name] = h
	}
	h.nodes = append(h.nodes, n)
	n.host = h
}

// SetRack moves a node, Off or in use, to another rack.
func (s *Scheduler) SetRack(n *Node, name string) { n.of.setRack(n, name) }

func (s *Scheduler) setRack(n *Node, name string) {
	if r := s.rack(name); r != n.rack {
		s.tags.move(n, r.name)
		s.fromRack(n)
		s.toRack(n, r)
	}
}

func (s *Scheduler) rack(name string) *rack {
	if name == "" {
		name = defaultRack
	}
	r := s.racks[name]
	if r == nil {
		r = &rack{name: name}
		s.racks[name] = r
		s.rackList = append(s.rackList, r)
		if len(s.rackList) == 2 && len(s.rackList[0].nodes) >= bigRack {
			s.indexRack(s.rackList[0])
		}
	}
	return r
}

func (s *Scheduler) toRack(n *Node, r *rack) {
	n.rack, n.rackSlot = r, len(r.nodes)
	r.nodes = append(r.nodes, n.serial)
	if r.index == nil && len(r.nodes) >= bigRack && len(s.rackList) > 1 {
		s.indexRack(r)
	}
}

func (s *Scheduler) indexRack(r *rack) {
	s.bigRacks++
	r.index = nodeindex.New(&s.sizes, &s.rackLinks)
	for _, serial := range r.nodes {
		n := s.nodes[serial]
		r.index.Update(serial, &n.free, n.roomy())
	}
}

func (s *Scheduler) fromRack(n *Node) {
	r := n.rack
	if r.index != nil {
		r.index.Drop(n.serial)
	}
	last := r.nodes[len(r.nodes)-1]
	r.nodes[n.rackSlot] = last
	s.nodes[last].rackSlot = n.rackSlot
	r.nodes = r.nodes[:len(r.nodes)-1]
}

// SetUse changes the permitted use of a node. The owner releases the containers of a node that goes Off.
func (s *Scheduler) SetUse(n *Node, u Use) { n.of.setUse(n, u) }

func (s *Scheduler) setUse(n *Node, u Use) {
	was := n.use
	if was == u {
		return
	}
	n.use = u
	if was == Off || u == Off {
		sign := int64(1)
		if u == Off {
			sign = -1
		}
		s.active += int(sign)
		s.total.AddTimes(&n.total, sign)
		s.tree.stale = true
	}
	if u != Open && n.hold != nil {
		s.unreserve(n.hold)
	}
	s.reindex(n)
	if u == Open {
		s.roomOn(n)
	}
}

// SetTotal changes a node's size; its containers stay, even if they exceed it.
func (s *Scheduler) SetTotal(n *Node, v *amounts.Vec) { n.of.setTotal(n, v) }

func (s *Scheduler) setTotal(n *Node, v *amounts.Vec) {
	if n.use != Off {
		s.total.Sub(&n.total)
		s.total.Add(v)
		s.tree.stale = true
	}
	n.free.Add(v)
	n.free.Sub(&n.total)
	n.total = *v
	if n.hold != nil && !s.sizes.Fits(&n.hold.size.V, v) {
		s.unreserve(n.hold)
	}
	s.reindex(n)
	s.roomOn(n)
}

// roomy reports whether the node may get new containers.
func (n *Node) roomy() bool { return n.use == Open && !n.held }

// reindex moves a node to the index position of its free memory.
func (s *Scheduler) reindex(n *Node) {
	s.nodeChanged(n)
	in := n.roomy()
	if s.room[n.serial] = -1; in {
		s.room[n.serial] = n.free.Memory
	}
	s.index.Update(n.serial, &n.free, in)
	if s.bigRacks > 0 && n.rack.index != nil {
		n.rack.index.Update(n.serial, &n.free, in)
	}
}

// roomOn records that a node may have more free resources than before.
func (s *Scheduler) roomOn(n *Node) {
	if !n.dirty {
		n.dirty = true
		s.dirtyNodes = append(s.dirtyNodes, n)
	}
}

// Heartbeat counts a heartbeat of a node with free resources as an opportunity skipped by asks with preferred places;
// see delay.go.
func (s *Scheduler) Heartbeat(n *Node) {
	if len(s.parts) > 0 {
		s = n.of
	}
	if s.delayed.Len() > 0 && n.roomy() && s.sizes.Fits(&s.sizes.Least, &n.free) {
		s.opportunity()
	}
}

// find returns any node that fits an ask, nil for none.
func (s *Scheduler) find(w *Ask) *Node { return s.findIn(s.index, w) }

func (s *Scheduler) findIn(ix *nodeindex.Index, w *Ask) *Node {
	need, black := &w.size.V, &w.app.black
	suits := func(i int32) bool {
		n := s.nodes[i]
		return s.sizes.Fits(need, &n.free) && !black.bars(n)
	}
	if w.want != nil {
		return s.findFor(ix, w, suits)
	}
	at := ix.Find(need, nodeOrder(w.app.queue.nodes), suits)
	if at < 0 {
		return nil
	}
	return s.nodes[at]
}

// findFor is findIn for an ask with a constraint.
func (s *Scheduler) findFor(ix *nodeindex.Index, w *Ask, suits func(i int32) bool) *Node {
	at := ix.Find(&w.size.V, nodeOrder(w.app.queue.nodes), func(i int32) bool {
		return suits(i) && s.tags.satisfied(w, s.nodes[i])
	})
	if at < 0 {
		return nil
	}
	return s.nodes[at]
}

func nodeOrder(o queues.NodeOrder) nodeindex.Order {
	if o == queues.Pack {
		return nodeindex.LeastRoom
	}
	return nodeindex.MostRoom
}

// findOn is find within a rack.
func (s *Scheduler) findOn(r *rack, w *Ask) *Node {
	switch {
	case len(s.rackList) == 1:
		return s.find(w)
	case r.index != nil:
		return s.findIn(r.index, w)
	}
	var best *Node
	need, pack := w.size.V.Memory, w.app.queue.nodes == queues.Pack
	room := int64(0) // of best
	for _, serial := range r.nodes {
		has := s.room[serial]
		if has < need || best != nil && (pack && has >= room || !pack && has <= room) {
			continue
		}
		if n := s.nodes[serial]; s.sizes.Fits(&w.size.V, &n.free) && !w.app.black.bars(n) {
			best, room = n, has
		}
	}
	return best
}

// ID is the node's id.
func (n *Node) ID() creel.NodeID { return n.id }

// Serial is the node's number, in order of AddNode.
func (n *Node) Serial() int32 { return n.serial }

// Rack is the name of the node's rack.
func (n *Node) Rack() string { return n.rack.name }

// Total is the node's size.
func (n *Node) Total() amounts.Vec { return n.total }

// Free returns its size minus its containers; negative after it shrank.
func (n *Node) Free() amounts.Vec { return n.free }

// Used returns the sum of its containers.
func (n *Node) Used() amounts.Vec {
	v := n.total
	v.Sub(&n.free)
	return v
}

// Reserved returns the application that the node is reserved for, nil for none.
func (n *Node) Reserved() *App {
	if n.hold == nil {
		return nil
	}
	return n.hold.ask.app.whole()
}
