// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// newTree makes the tree of a specification, without queues.
func newTree(p *partition, spec *queues.Spec) Tree {
	return Tree{part: p, spec: spec, byPath: map[creel.QueuePath]*Queue{}, names: map[string]*Queue{}, version: 1}
}

// plant adds the specified queues to a new tree.
func (t *Tree) plant() { t.root = t.add(&t.spec.Root, nil) }

// add makes a queue and its descendants. The caller adds it to the parent's children.
func (t *Tree) add(spec *queues.Queue, parent *Queue) *Queue {
	q := &Queue{part: t.part, spec: spec, name: spec.Name, parent: parent, least: amounts.Unlimited}
	q.path = creel.QueuePath(spec.Name)
	if parent != nil {
		q.path = parent.path.Child(spec.Name)
	}
	t.byPath[q.path] = q
	t.list(q)
	for i := range spec.Children {
		q.children = append(q.children, t.add(&spec.Children[i], q))
	}
	q.sum()
	if spec.IsLeaf() {
		q.becomeLeaf()
		t.name(q)
	}
	return q
}

// list adds a queue to the configured order, and applies its specification.
func (t *Tree) list(q *Queue) {
	q.serial = len(t.all)
	t.all = append(t.all, q)
	q.configure()
}

// name makes a leaf addressable by its last name, unless another leaf has the same.
func (t *Tree) name(q *Queue) {
	if old, taken := t.names[q.name]; taken && old != q {
		t.names[q.name] = nil
	} else {
		t.names[q.name] = q
	}
}

func (q *Queue) becomeLeaf() {
	q.leaf = &leafState{byName: map[string]*user{}}
	q.order()
	q.leaf.pending = intrusive.Heap[*user]{
		Less: func(a, b *user) bool { return fifoApps(a.pending.Top(), b.pending.Top()) },
		Slot: func(u *user) *int32 { return &u.pendSlot },
	}
	less := q.ordering.apps
	q.users = intrusive.Heap[*user]{
		Less: func(a, b *user) bool { return less(a.apps.Top(), b.apps.Top()) },
		Slot: func(u *user) *int32 { return &u.slot },
	}
}

// configure applies the specification, with inheritance.
func (q *Queue) configure() {
	var above *settings
	if q.parent != nil {
		above = &q.parent.settings
	}
	p := q.part
	q.lifetime.configure(q.spec.State)
	q.settings = settingsOf(q.spec, above, p.tree.spec, &p.sizes, &p.policy.traits)
	q.order()
}

// order sets the order of service below the queue. The default differs between leaves and parents.
func (q *Queue) order() {
	by := q.settings.order
	if by == queues.PolicyDefault {
		by = q.part.policy.defaultOrder(q)
	}
	q.ordering = orderings[by]
	q.ready = intrusive.Heap[*Queue]{
		Items: q.ready.Items,
		Less:  q.ordering.children,
		Slot:  func(c *Queue) *int32 { return &c.slot },
	}
}
