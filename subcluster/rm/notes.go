// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel"

// notes are what nodes are to be told of single containers at their next
// heartbeat: to kill one, or that its end was taken note of. Each node has a
// chain, newest first, through one store, so that a note costs no memory of its
// own and touches no line of the node but the one every decision touches.
type notes struct {
	pages [][]note
	spare int32 // chain of places to use again
	used  int32 // places given out so far
}

// note is one of a chain; places are numbered from 1, 0 ends a chain.
type note struct {
	id     creel.ContainerID
	next   int32
	forget bool // else: kill
}

const notePage = 1024

func (s *notes) at(i int32) *note { return &s.pages[(i-1)/notePage][(i-1)%notePage] }

func (s *notes) put(chain *int32, id creel.ContainerID, forget bool) {
	i := s.spare
	if i != 0 {
		s.spare = s.at(i).next
	} else {
		if int(s.used) == len(s.pages)*notePage {
			s.pages = append(s.pages, make([]note, notePage))
		}
		s.used++
		i = s.used
	}
	*s.at(i) = note{id: id, next: *chain, forget: forget}
	*chain = i
}

// tellKill has a node told to kill a container, tellForget that its end was
// taken note of.
func (m *Machine) tellKill(n *node, id creel.ContainerID) {
	if n.listens() {
		m.notes.put(&n.notes, id, false)
	}
}

func (m *Machine) tellForget(n *node, id creel.ContainerID) {
	if n.listens() {
		m.notes.put(&n.notes, id, true)
	}
}

// listens: the node may speak again and then hear what is kept for it.
func (n *node) listens() bool {
	return n.state.runs() || n.state == nodeState(creel.NodeUnhealthy) || n.state == 0
}

// takeNotes empties a node's chain into lists, oldest first.
func (m *Machine) takeNotes(n *node) (kills, forgets []creel.ContainerID) {
	k, f := 0, 0
	for i := n.notes; i != 0; {
		p := m.notes.at(i)
		if p.forget {
			f++
		} else {
			k++
		}
		i = p.next
	}
	if k > 0 {
		kills = make([]creel.ContainerID, k)
	}
	if f > 0 {
		forgets = make([]creel.ContainerID, f)
	}
	for i := n.notes; i != 0; i = m.notes.at(i).next {
		if p := m.notes.at(i); p.forget {
			f--
			forgets[f] = p.id
		} else {
			k--
			kills[k] = p.id
		}
	}
	m.dropNotes(n)
	return kills, forgets
}

func (m *Machine) dropNotes(n *node) {
	for i := n.notes; i != 0; {
		p := m.notes.at(i)
		next := p.next
		p.next, m.notes.spare = m.notes.spare, i
		i = next
	}
	n.notes = 0
}
