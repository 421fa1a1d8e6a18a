// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel"

// notes are what nodes are to be told of single containers at their next
// heartbeat: to kill one, or that its end was taken note of. Each node has a
// chain, newest first, through one store, so that a note costs no memory of its
// own and does not touch the node.
//
// The store is written from one end of a page to the other, and a page is used
// again when all its notes have been taken: nodes speak every second, so a page
// does not wait long, and no decision looks for a free place.
type notes struct {
	heads []int32 // of each node's chain, by its serial number; see deaf
	pages []*notePage
	page  int32   // that is being filled
	free  []int32 // others without notes
}

type notePage struct {
	used, live int32
	list       [notesInPage]note
}

// note is one of a chain; places are numbered from 1, 0 ends a chain. It holds a
// container's id in its parts, without their gaps: two notes fill a cache line.
type note struct {
	stamp, seq   int64
	app, attempt int32
	next         int32
	forget       bool // else: kill
}

func (x *note) id() creel.ContainerID {
	app := creel.ApplicationID{ClusterTimestamp: x.stamp, ID: x.app}
	return creel.ContainerID{Attempt: creel.AttemptID{Application: app, Attempt: x.attempt}, ID: x.seq}
}

const (
	notesInPage = 1024
	deaf        = -1 // the head of a node that will not speak again: it is told nothing
)

func (s *notes) at(i int32) (*notePage, *note) {
	p := s.pages[(i-1)/notesInPage]
	return p, &p.list[(i-1)%notesInPage]
}

// listen says whether a node may speak again and then hear what is kept for it.
func (s *notes) listen(node int32, yes bool) {
	if yes {
		s.heads[node] = max(s.heads[node], 0)
		return
	}
	s.drop(node)
	s.heads[node] = deaf
}

func (s *notes) none(node int32) bool { return s.heads[node] <= 0 }

func (s *notes) put(node int32, id *creel.ContainerID, forget bool) {
	chain := &s.heads[node]
	if *chain == deaf {
		return
	}
	if len(s.pages) == 0 || s.pages[s.page].used == notesInPage {
		if k := len(s.free); k > 0 {
			s.page, s.free = s.free[k-1], s.free[:k-1]
		} else {
			s.page = int32(len(s.pages))
			s.pages = append(s.pages, &notePage{})
		}
	}
	p := s.pages[s.page]
	x, app := &p.list[p.used], &id.Attempt.Application
	x.stamp, x.app, x.attempt, x.seq = app.ClusterTimestamp, app.ID, id.Attempt.Attempt, id.ID
	x.next, x.forget = *chain, forget
	p.used++
	p.live++
	*chain = s.page*notesInPage + p.used
}

// drop empties a node's chain.
func (s *notes) drop(node int32) {
	chain := &s.heads[node]
	if *chain == deaf {
		return
	}
	for i := *chain; i != 0; {
		p, x := s.at(i)
		at := (i - 1) / notesInPage
		i = x.next
		if p.live--; p.live > 0 {
			continue
		}
		p.used = 0
		if at != s.page {
			s.free = append(s.free, at)
		}
	}
	*chain = 0
}

// tellKill has a node told to kill a container, tellForget that its end was
// taken note of.
func (m *Machine) tellKill(node int32, id creel.ContainerID) { m.notes.put(node, &id, false) }

func (m *Machine) tellForget(node int32, id creel.ContainerID) { m.notes.put(node, &id, true) }

// listens: the node may speak again and then hear what is kept for it.
func (n *node) listens() bool {
	return n.state.runs() || n.state == nodeState(creel.NodeUnhealthy) || n.state == 0
}

// takeNotes empties a node's chain into lists, oldest first.
func (m *Machine) takeNotes(n *node) (kills, forgets []creel.ContainerID) {
	k, f, head := 0, 0, max(m.notes.heads[n.serial], 0)
	for i := head; i != 0; {
		_, x := m.notes.at(i)
		if x.forget {
			f++
		} else {
			k++
		}
		i = x.next
	}
	if k > 0 {
		kills = make([]creel.ContainerID, k)
	}
	if f > 0 {
		forgets = make([]creel.ContainerID, f)
	}
	for i := head; i != 0; {
		_, x := m.notes.at(i)
		if x.forget {
			f--
			forgets[f] = x.id()
		} else {
			k--
			kills[k] = x.id()
		}
		i = x.next
	}
	m.notes.drop(n.serial)
	return kills, forgets
}
