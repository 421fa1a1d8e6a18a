// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/constraints"

// Waiting asks with a constraint are tried again after a count of tagged containers or an attribute changed. Package
// constraints has the counts, and decides which nodes a constraint admits.

// Tags returns the scheduling requests and the tags of nodes.
func (s *Scheduler) Tags() *Tags { return &s.main.tags }

// place returns the node as constraints see it.
func (n *Node) place() constraints.Node {
	return constraints.Node{Serial: n.serial, Host: n.id.Host, Rack: n.rack.Name(), Label: n.of.label}
}

// Count counts (by 1) or removes (by -1) a container with allocation tags on a node. by 1 is for a container from
// before this ResourceManager started, by -1 for one that ends. Granted ones are counted at once. It is due before
// Release, and Schedule after it.
func (t *Tags) Count(a *App, n *Node, tags []string, by int32) {
	if len(tags) == 0 {
		return
	}
	t.counts.Count(&a.whole().tagged, n.place(), tags, by)
	t.change()
}

// move moves the counts of a node's containers to its new rack. Schedule is due.
func (t *Tags) move(n *Node, to string) {
	t.change() // even for a node without tags, because its neighbours changed
	t.counts.Move(n.place(), to)
}

// SetAttributes sets a host's attributes, by PREFIX/NAME. Schedule is due.
func (t *Tags) SetAttributes(host string, values map[string]string) {
	t.counts.SetAttributes(host, values)
	t.change()
}

// SetTags sets the application tags of an application.
func (a *App) SetTags(tags []string) { a.tagged.Tags = tags }

// change records that constraints may be satisfied on further nodes.
func (t *Tags) change() {
	s := t.part.cluster
	s.main.tags.changed = len(s.main.tags.waiting) > 0
	for _, p := range s.labelled {
		p.tags.changed = len(p.tags.waiting) > 0
	}
}

// allows reports whether the constraint of an ask, if it has one, admits a node. It is inlined: an ask without a
// constraint pays for one comparison.
func (t *Tags) allows(w *Ask, n *Node) bool { return w.want == nil || t.satisfied(w, n) }

//go:noinline
func (t *Tags) satisfied(w *Ask, n *Node) bool {
	return t.refused(w, n) == nil
}

// refused returns the clause of an ask's constraint that excludes a node, nil if none does.
func (t *Tags) refused(w *Ask, n *Node) *constraints.Constraint {
	at := n.place()
	return t.counts.Refused(w.want.Constraint, &w.app.whole().tagged, &at)
}

// On returns a node's counts by tag, nil for none.
func (t *Tags) On(n *Node) []constraints.TagCount { return t.counts.On(n.serial) }
