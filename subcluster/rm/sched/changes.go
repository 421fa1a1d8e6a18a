// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// Watch starts to record changes. There is at most one watcher.
func (s *Scheduler) Watch() *Changes {
	k := &Changes{used: map[*Queue]amounts.Vec{}}
	s.main.changes = k
	for _, p := range s.labelled {
		p.changes = k
	}
	return k
}

// Done clears the changes read so far.
func (k *Changes) Done() {
	for _, n := range k.Nodes {
		n.changed = false
	}
	for _, a := range k.Apps {
		a.changed = false
	}
	clear(k.Nodes)
	clear(k.Apps)
	k.Nodes, k.Apps = k.Nodes[:0], k.Apps[:0]
}

// node records a change of a node. Without a watcher k is nil.
func (k *Changes) node(n *Node) {
	if k != nil && !n.changed {
		n.changed = true
		k.Nodes = append(k.Nodes, n)
	}
}

// app records a change of an application.
func (k *Changes) app(a *App) {
	if k == nil {
		return
	}
	if a = a.whole(); !a.changed {
		a.changed = true
		k.Apps = append(k.Apps, a)
	}
}

// charged records the use of a queue and of those above it that no grant caused, so that it may exceed their maximum.
func (k *Changes) charged(q *Queue) {
	for ; q != nil && k != nil; q = q.parent {
		k.used[q] = q.used
	}
}
