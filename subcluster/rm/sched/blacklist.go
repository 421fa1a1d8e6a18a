// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"maps"
	"slices"
)

func (b *blacklist) bars(n *Node) bool {
	if len(b.names) == 0 {
		return false
	}
	if _, ok := b.names[n.host.Name()]; ok {
		return true
	}
	_, ok := b.names[n.rack.Name()]
	return ok
}

func (b *blacklist) change(add, remove []string) {
	if len(add) > 0 && b.names == nil {
		b.names = map[string]struct{}{}
	}
	for _, name := range add {
		b.names[name] = struct{}{}
	}
	for _, name := range remove {
		delete(b.names, name)
	}
}

// Avoid adds hosts and racks to an application's blacklist, and removes others. Its asks may fit on nodes where they
// did not fit before: Serve is due.
func (a *App) Avoid(add, remove []string) {
	if len(add)+len(remove) == 0 {
		return
	}
	a.black.change(add, remove)
	for _, x := range a.parts {
		x.black = a.black
	}
}

// AvoidNothing empties the blacklist.
func (a *App) AvoidNothing() {
	a.black.names = nil
	for _, x := range a.parts {
		x.black = a.black
	}
}

// Avoids reports whether the application avoids a node's host or rack.
func (a *App) Avoids(n *Node) bool { return a.black.bars(n) }

// Avoided returns the hosts and racks it avoids, sorted.
func (a *App) Avoided() []string { return slices.Sorted(maps.Keys(a.black.names)) }
