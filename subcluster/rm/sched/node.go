// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/nodeindex"
	"github.com/creelrm/creel/subcluster/rm/sched/topology"
)

// AddNode registers a node, empty and Off; its serial numbers start with 0.
func (s *Scheduler) AddNode(n *Node, id creel.NodeID, rack string) {
	*n = Node{nodeRest: &nodeRest{id: id, of: &s.main}, serial: int32(len(s.main.nodes.All()))}
	s.main.nodes.Skip()
	s.main.nodes.locate(n, rack)
	for _, p := range s.labelled {
		p.nodes.Skip()
	}
}

// locate adds a node of the partition to its host and rack.
func (ns *nodes) locate(n *Node, rack string) {
	host := n.id.Host
	if ns.portInNames {
		host = n.id.String()
	}
	n.host, n.rack = ns.Put(n.serial, n, host, rack)
}

// SetRack moves a node, Off or in use, to another rack.
func (s *Scheduler) SetRack(n *Node, name string) { n.of.nodes.setRack(n, name) }

func (ns *nodes) setRack(n *Node, name string) {
	p := ns.part
	if r := ns.Named(name); r != n.rack {
		p.tags.move(n, r.Name())
		ns.Move(n.serial, n.rack, r)
		n.rack = r
		ns.reindex(n)
		ns.roomOn(n)
	}
}

// SetUse changes the permitted use of a node. The owner releases the containers of a node that goes Off.
func (s *Scheduler) SetUse(n *Node, u Use) { n.of.nodes.setUse(n, u) }

func (ns *nodes) setUse(n *Node, u Use) {
	p := ns.part
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
		p.active += int(sign)
		p.total.AddTimes(&n.total, sign)
		p.resizeDue = true
	}
	if u != Open && n.hold != nil {
		p.reservations.drop(n.hold)
	}
	ns.reindex(n)
	if u == Open {
		ns.roomOn(n)
	}
}

// SetTotal changes a node's size; its containers stay, even if they exceed it.
func (s *Scheduler) SetTotal(n *Node, v *amounts.Vec) { n.of.nodes.setTotal(n, v) }

func (ns *nodes) setTotal(n *Node, v *amounts.Vec) {
	p := ns.part
	if n.use != Off {
		p.total.Sub(&n.total)
		p.total.Add(v)
		p.resizeDue = true
	}
	n.free.Add(v)
	n.free.Sub(&n.total)
	n.total = *v
	if n.hold != nil && !p.sizes.Fits(&n.hold.size.V, v) {
		p.reservations.drop(n.hold)
	}
	ns.reindex(n)
	ns.roomOn(n)
}

// roomy reports whether the node may get new containers.
func (n *Node) roomy() bool { return n.use == Open && !n.held }

// reindex moves a node to the position of its free resources.
func (ns *nodes) reindex(n *Node) {
	ns.part.changes.node(n)
	ns.Update(n.serial, n.rack, &n.free, n.roomy())
}

// roomOn records that a node may have more free resources than before.
func (ns *nodes) roomOn(n *Node) {
	if !n.dirty {
		n.dirty = true
		ns.dirty = append(ns.dirty, n)
	}
}

// roomEverywhere offers all free resources of a partition again.
func (ns *nodes) roomEverywhere() {
	for _, n := range ns.All() {
		if n != nil && n.use == Open {
			ns.roomOn(n)
		}
	}
}

// Heartbeat counts a heartbeat of a node with free resources as an opportunity skipped by asks with preferred places;
// see delay.go.
func (s *Scheduler) Heartbeat(n *Node) {
	p := &s.main
	if len(s.labelled) > 0 {
		p = n.of
	}
	if p.delays.waiting.Len() > 0 && n.roomy() && p.sizes.Fits(&p.sizes.Least, &n.free) {
		p.delays.opportunity()
	}
}

// find returns any node that fits an ask, nil for none.
func (ns *nodes) find(w *Ask) *Node { return ns.findOn(nil, w) }

// findOn is find within a rack; anywhere if it is nil.
func (ns *nodes) findOn(r *topology.Rack, w *Ask) *Node {
	p := ns.part
	need, black := &w.size.V, &w.app.black
	suits := func(i int32) bool {
		n := ns.At(i)
		return p.sizes.Fits(need, &n.free) && !black.bars(n)
	}
	if w.want != nil {
		return ns.findFor(r, w, suits)
	}
	return ns.Find(r, need, nodeOrder(w.app.queue.settings.nodes), suits)
}

// findFor is findOn for an ask with a constraint.
func (ns *nodes) findFor(r *topology.Rack, w *Ask, suits func(i int32) bool) *Node {
	p := ns.part
	return ns.Find(r, &w.size.V, nodeOrder(w.app.queue.settings.nodes), func(i int32) bool {
		return suits(i) && p.tags.satisfied(w, ns.At(i))
	})
}

func nodeOrder(o queues.NodeOrder) nodeindex.Order {
	if o == queues.Pack {
		return nodeindex.LeastRoom
	}
	return nodeindex.MostRoom
}

// ID is the node's id.
func (n *Node) ID() creel.NodeID { return n.id }

// Serial is the node's number, in order of AddNode.
func (n *Node) Serial() int32 { return n.serial }

// Rack is the name of the node's rack.
func (n *Node) Rack() string { return n.rack.Name() }

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
