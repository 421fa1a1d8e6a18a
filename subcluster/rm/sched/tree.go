// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Tree returns the queues of the partition without a label.
func (s *Scheduler) Tree() *Tree { return &s.main.tree }

// Find returns the queue of a path, or of a unique leaf name; nil for none.
func (t *Tree) Find(name string) *Queue {
	if q := t.at(creel.QueuePath(name)); q != nil {
		return q
	}
	if q := t.names[name]; q != nil && !q.lifetime.removed {
		return q
	}
	return t.at(fullPath(creel.QueuePath(name)))
}

// at returns the queue with exactly this path, nil for none.
func (t *Tree) at(path creel.QueuePath) *Queue {
	if q := t.byPath[path]; q != nil && !q.lifetime.removed {
		return q
	}
	return nil
}

// Leaf returns the leaf with exactly this path, nil for none.
func (t *Tree) Leaf(path creel.QueuePath) *Queue {
	if q := t.at(path); q != nil && q.leaf != nil {
		return q
	}
	return nil
}

// Queues returns all queues, parents before children, in configured order. The list is read-only.
func (t *Tree) Queues() []*Queue { return t.all }

// Root is the root queue.
func (t *Tree) Root() *Queue { return t.root }

// Spec is the specification of the tree. It must not be changed.
func (t *Tree) Spec() *queues.Spec { return t.spec }

// UserOf returns the first queue whose own list names a label, "" if there is none.
func (t *Tree) UserOf(label string) creel.QueuePath {
	for _, q := range t.all {
		if slices.Contains(q.spec.Labels, label) {
			return q.path
		}
	}
	return ""
}

// MappedOnly reports whether a queue takes only applications that a mapping sends there: one below a legacy managed
// parent.
func (t *Tree) MappedOnly(path creel.QueuePath) bool {
	p := t.at(fullPath(path).Parent())
	return p != nil && p.spec.AutoCreate != nil && p.spec.AutoCreate.Managed
}

// fullPath is a path from the root; a path that does not begin there is one below the root.
func fullPath(path creel.QueuePath) creel.QueuePath {
	if path.IsFull() {
		return path
	}
	return creel.RootQueue.Child(string(path))
}
