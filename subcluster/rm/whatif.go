// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Sketch is the scheduler's what-if, by ids: remove or add containers, resize nodes and queues, then ask questions;
// Undo restores everything. Between the first change and Undo the machine must not receive events.
type Sketch struct {
	m *Machine
	k *sched.Sketch
}

// Sketch starts a what-if.
func (m *Machine) Sketch() *Sketch { return &Sketch{m, m.sched.Sketch()} }

// Undo undoes every change and empties the sketch.
func (s *Sketch) Undo() { s.k.Undo() }

// Remove removes a container: the effect of preempting it.
func (s *Sketch) Remove(id creel.ContainerID) error {
	c := s.m.apps.container(id)
	if c == nil {
		return refusal(creel.ErrContainerNotFound, containerUnknown, id)
	}
	if !c.uncharged() {
		s.k.Shift(&c.owner().app.App, &c.node.Node, s.m.sizeOf(c).V, -1)
	}
	return nil
}

// Place adds a container of an application to a node, regardless of limits.
func (s *Sketch) Place(id creel.ApplicationID, on creel.NodeID, r creel.Resource) error {
	a, n := s.m.apps.byID[id], s.m.nodes.byID[on]
	switch {
	case a == nil || !a.InQueue():
		return noApp(id)
	case n == nil:
		return noNode(on)
	}
	s.k.Shift(&a.App, &n.Node, s.m.sizes.Vec(r), 1)
	return nil
}

// Resize changes a node's size.
func (s *Sketch) Resize(on creel.NodeID, r creel.Resource) error {
	n := s.m.nodes.byID[on]
	if n == nil {
		return noNode(on)
	}
	s.k.Resize(&n.Node, s.m.sizes.Vec(r))
	return nil
}

// SetMaximum changes a queue's maximum.
func (s *Sketch) SetMaximum(queue string, r creel.Resource) error {
	q := s.m.sched.Tree().Find(queue)
	if q == nil {
		return noQueue(queue)
	}
	return s.k.SetMaximum(q, s.m.sizes.Vec(r))
}

// Fits reports whether and where the application could get one container of a size now; if not, which limit prevents
// it.
func (s *Sketch) Fits(id creel.ApplicationID, r creel.Resource) (creel.NodeID, explain.Limit, error) {
	a := s.m.apps.byID[id]
	if a == nil || !a.InQueue() || a.current == nil {
		return creel.NodeID{}, explain.LimitNone, noApp(id)
	}
	n, limit, err := s.k.Fits(&a.App, r)
	if n == nil {
		return creel.NodeID{}, limit, err
	}
	return n.ID(), limit, nil
}
