// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"

	"github.com/creelrm/creel"
)

// Sketch is a what-if on the live amounts: containers are thought away or
// added, nodes and queues resized, and questions asked; Undo puts everything
// back, last change first. Between the first change and Undo the machine must
// not be given events: it is the same state, not a copy, which makes a question
// as cheap as a decision. Preemption, reservations and simulations are asked
// through it.
type Sketch struct {
	m    *Machine
	undo []func()
}

// Sketch begins a what-if.
func (m *Machine) Sketch() *Sketch { return &Sketch{m: m} }

// Undo takes back every change, and leaves the sketch empty.
func (s *Sketch) Undo() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

// shift moves an amount between a node's free room and the use of an
// application, its user and its queues, without telling anybody.
func (s *Sketch) shift(a *app, n *node, v *vec, sign int64) {
	m := s.m
	apply := func(sign int64) {
		n.free.addTimes(v, -sign)
		m.placeInIndex(n)
		a.used.addTimes(v, sign)
		a.user.used.addTimes(v, sign)
		if a.user.waitingApps > 0 {
			a.queue.leaf.usedByActive.addTimes(v, sign)
		}
		for q := a.queue; q != nil; q = q.parent {
			q.used.addTimes(v, sign)
		}
	}
	// Where in its cell a node stands decides ties, so it is put back too.
	cell, rackCell := m.inAll[n.serial], m.inRack[n.serial]
	apply(sign)
	s.undo = append(s.undo, func() {
		apply(-sign)
		m.ix.restore(n, cell)
		if n.rack.ix != nil {
			n.rack.ix.restore(n, rackCell)
		}
	})
}

// Remove thinks a container away: what preempting it would free.
func (s *Sketch) Remove(id creel.ContainerID) error {
	c := s.m.container(id)
	if c == nil {
		return &creel.Error{
			Kind: creel.ErrContainerNotFound,
			What: fmt.Sprintf("Container with id '%s' doesn't exist", id),
		}
	}
	s.shift(c.owner().app, c.node, &s.m.sizeOf(c).v, -1)
	return nil
}

// Place thinks a container of an application onto a node, limits or not.
func (s *Sketch) Place(id creel.ApplicationID, on creel.NodeID, r creel.Resource) error {
	a, n := s.m.apps[id], s.m.nodes[on]
	switch {
	case a == nil || !a.inQueue:
		return noApp(id)
	case n == nil:
		return noNode(on)
	}
	v := s.m.t.vec(r)
	s.shift(a, n, &v, 1)
	return nil
}

// Resize thinks a node larger or smaller.
func (s *Sketch) Resize(on creel.NodeID, r creel.Resource) error {
	m := s.m
	n := m.nodes[on]
	if n == nil {
		return noNode(on)
	}
	v := m.t.vec(r)
	v.sub(&n.total)
	apply := func(sign int64) {
		n.total.addTimes(&v, sign)
		n.free.addTimes(&v, sign)
		if n.state.runs() {
			m.total.addTimes(&v, sign)
		}
		m.tree.version++
		m.placeInIndex(n)
	}
	cell, rackCell := m.inAll[n.serial], m.inRack[n.serial]
	apply(1)
	s.undo = append(s.undo, func() {
		apply(-1)
		m.ix.restore(n, cell)
		if n.rack.ix != nil {
			n.rack.ix.restore(n, rackCell)
		}
	})
	return nil
}

// SetMaximum thinks a queue's hard bound to be another.
func (s *Sketch) SetMaximum(queue string, r creel.Resource) error {
	m := s.m
	q := m.tree.find(queue)
	if q == nil || q.parent == nil {
		return noQueue(queue)
	}
	q.sized()
	was, bounded := q.max, q.bounded
	q.max, q.bounded = m.t.vec(r), true
	s.undo = append(s.undo, func() { q.max, q.bounded = was, bounded })
	return nil
}

// Fits asks whether the application could get one container of a size now, and
// where; if not, which limit is in the way.
func (s *Sketch) Fits(id creel.ApplicationID, r creel.Resource) (creel.NodeID, Limit, error) {
	m := s.m
	a := m.apps[id]
	if a == nil || !a.inQueue || a.current == nil {
		return creel.NodeID{}, LimitNone, noApp(id)
	}
	v, err := m.normalize(r, &a.queue.largest)
	if err != nil {
		return creel.NodeID{}, LimitNone, err
	}
	if verdict := m.admit(a, m.size(v), nil); verdict.limit != LimitNone {
		return creel.NodeID{}, verdict.limit, nil
	}
	n := m.ix.find(&m.t, &v, a.queue.order, &a.current.black)
	if n == nil {
		return creel.NodeID{}, LimitRoom, nil
	}
	return n.id, LimitNone, nil
}
