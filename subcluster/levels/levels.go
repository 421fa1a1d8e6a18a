// SPDX-License-Identifier: Apache-2.0

package levels

import "strings"

// Level is the reason for the choice of a node.
type Level uint8

// Levels, in the order of trial.
const (
	OnHost Level = iota
	OnRack
	Anywhere
	Levels = iota
)

// Ask is the number of containers that are still wanted. Serve lowers it.
type Ask struct {
	Count  int32
	Strict bool     // only the named places
	Places []*Place // in order of arrival
}

// Place is a host or rack with the number of containers that are still wanted there.
type Place struct {
	Name   string
	Count  int32
	Strict bool // of a rack: only its named hosts
}

// OfRack reports whether the place is a rack.
func (p *Place) OfRack() bool { return strings.HasPrefix(p.Name, "/") }

// Nodes are the nodes that may get containers of an ask.
type Nodes[N any] struct {
	Host  func(name string) []N
	Rack  func(name string) []N
	Least []N // for any place, the least loaded first
	// Start returns the index at which a round over n nodes begins.
	Start func(n int) int
	// More reports whether the call may place another container.
	More func() bool
	// Place places one container on a node, if the node admits it.
	Place func(node N, level Level) bool
}

// Serve places containers of an ask.
func (l *Nodes[N]) Serve(a *Ask) {
	for _, p := range a.Places {
		if !p.OfRack() {
			l.onHost(a, p)
		}
	}
	for _, p := range a.Places {
		if p.OfRack() && !p.Strict {
			l.onRack(a, p)
		}
	}
	if !a.Strict {
		l.anywhere(a)
	}
}

// wants reports whether the ask may get another container.
func (l *Nodes[N]) wants(a *Ask) bool { return a.Count > 0 && l.More() }

// place places one container of the ask on a node, if the node admits it.
func (l *Nodes[N]) place(a *Ask, n N, at Level) bool {
	if !l.Place(n, at) {
		return false
	}
	a.Count--
	return true
}

// onHost places containers on the nodes of a named host.
func (l *Nodes[N]) onHost(a *Ask, p *Place) {
	for _, n := range l.Host(p.Name) {
		for p.Count > 0 && l.wants(a) && l.place(a, n, OnHost) {
			p.Count--
		}
	}
}

// onRack places containers on the nodes of a named rack, one after the other.
func (l *Nodes[N]) onRack(a *Ask, p *Place) {
	nodes := l.Rack(p.Name)
	if len(nodes) == 0 || !l.wants(a) {
		return
	}
	at, refused := l.Start(len(nodes)), 0
	for p.Count > 0 && l.wants(a) && refused < len(nodes) {
		if l.place(a, nodes[at], OnRack) {
			p.Count--
			refused = 0
		} else {
			refused++
		}
		at = (at + 1) % len(nodes)
	}
}

// anywhere places each container on the first admitting node of the least loaded ones.
func (l *Nodes[N]) anywhere(a *Ask) {
	for len(l.Least) > 0 && l.wants(a) {
		from, found := l.Start(len(l.Least)), false
		for i := 0; i < len(l.Least) && !found; i++ {
			found = l.place(a, l.Least[(from+i)%len(l.Least)], Anywhere)
		}
		if !found {
			return
		}
	}
}
