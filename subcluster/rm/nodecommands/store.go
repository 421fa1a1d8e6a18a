// SPDX-License-Identifier: Apache-2.0

// Package nodecommands stores commands about single containers until the next heartbeat of their node.
package nodecommands

import "github.com/creelrm/creel"

// Store has commands to nodes: kill a container, or delete a container's acknowledged completion. Each node has a
// chain of commands, newest first, in one shared store. So a command needs no separate allocation and does not touch
// the node.
//
// The store fills a page from one end to the other. A page is reused after all its commands have been taken. Nodes
// send a heartbeat every second, so a page soon becomes free, and no search for a free slot is needed. The layout is
// justified by BenchmarkChurn of subcluster/rm: a release writes next to the previous release. The zero Store is
// ready.
type Store struct {
	heads []int32 // of each node's chain, by serial number; see closed
	pages []*page
	page  int32   // the page being filled
	free  []int32 // other pages without commands
}

type page struct {
	used, live int32
	list       [perPage]command
}

// command is an entry of a chain; places are numbered from 1, and 0 ends a chain. It stores the parts of a
// container's id without padding: two commands fit a cache line.
type command struct {
	stamp, seq   int64
	app, attempt int32
	next         int32
	forget       bool // else kill
}

func (x *command) id() creel.ContainerID {
	app := creel.ApplicationID{ClusterTimestamp: x.stamp, ID: x.app}
	return creel.ContainerID{Attempt: creel.AttemptID{Application: app, Attempt: x.attempt}, ID: x.seq}
}

const (
	perPage = 1024
	closed  = -1 // the head of a node that will not send a heartbeat again: nothing is stored for it
)

func (s *Store) at(i int32) (*page, *command) {
	p := s.pages[(i-1)/perPage]
	return p, &p.list[(i-1)%perPage]
}

// AddNode adds the node with the next serial number.
func (s *Store) AddNode() { s.heads = append(s.heads, 0) }

// Open records whether a node may send another heartbeat. For a node that may not, the Store stores nothing.
func (s *Store) Open(node int32, yes bool) {
	if yes {
		s.heads[node] = max(s.heads[node], 0)
		return
	}
	s.Drop(node)
	s.heads[node] = closed
}

// IsOpen reports the last value passed to Open.
func (s *Store) IsOpen(node int32) bool { return s.heads[node] != closed }

// None reports whether there are no commands for a node.
func (s *Store) None(node int32) bool { return s.heads[node] <= 0 }

// Kill queues the command to kill a container.
func (s *Store) Kill(node int32, id creel.ContainerID) { s.put(node, &id, false) }

// Forget queues the command to delete a container's acknowledged completion.
func (s *Store) Forget(node int32, id creel.ContainerID) { s.put(node, &id, true) }

func (s *Store) put(node int32, id *creel.ContainerID, forget bool) {
	chain := &s.heads[node]
	if *chain == closed {
		return
	}
	if len(s.pages) == 0 || s.pages[s.page].used == perPage {
		if k := len(s.free); k > 0 {
			s.page, s.free = s.free[k-1], s.free[:k-1]
		} else {
			s.page = int32(len(s.pages))
			s.pages = append(s.pages, &page{})
		}
	}
	p := s.pages[s.page]
	x, app := &p.list[p.used], &id.Attempt.Application
	x.stamp, x.app, x.attempt, x.seq = app.ClusterTimestamp, app.ID, id.Attempt.Attempt, id.ID
	x.next, x.forget = *chain, forget
	p.used++
	p.live++
	*chain = s.page*perPage + p.used
}

// Drop empties a node's chain.
func (s *Store) Drop(node int32) {
	chain := &s.heads[node]
	if *chain == closed {
		return
	}
	for i := *chain; i != 0; {
		p, x := s.at(i)
		at := (i - 1) / perPage
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

// Take empties a node's chain into lists, oldest first.
func (s *Store) Take(node int32) (kills, forgets []creel.ContainerID) {
	k, f, head := 0, 0, max(s.heads[node], 0)
	for i := head; i != 0; {
		_, x := s.at(i)
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
		_, x := s.at(i)
		if x.forget {
			f--
			forgets[f] = x.id()
		} else {
			k--
			kills[k] = x.id()
		}
		i = x.next
	}
	s.Drop(node)
	return kills, forgets
}

// Prefetch reads a node's head, so that a later command to it does not wait for memory. The caller adds the result to
// a sum and stores the sum.
func (s *Store) Prefetch(node int32) int32 { return s.heads[node] }
