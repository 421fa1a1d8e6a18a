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
	spec, p := q.spec, q.part
	q.weight = 1
	if spec.Capacity.Unit == queues.Weight {
		q.weight = spec.Capacity.Value
	}
	if spec.State != 0 || q.state == 0 {
		q.state = spec.State
	}
	if q.state == 0 {
		q.state = creel.QueueRunning
	}
	q.orderBy, q.nodes, q.maxAM = spec.Policy, spec.NodeOrder, spec.MaxAMPercent
	q.largest = p.sizes.Most
	if q.parent != nil {
		q.largest = q.parent.largest
		if q.nodes == queues.NodeOrderDefault {
			q.nodes = q.parent.nodes
		}
		if q.orderBy == queues.PolicyDefault && p.policy.inheritsOrder {
			q.orderBy = q.parent.orderBy
		}
		if q.maxAM == 0 {
			q.maxAM = q.parent.maxAM
		}
	}
	if q.nodes == queues.NodeOrderDefault {
		q.nodes = queues.Spread
	}
	if q.maxAM == 0 {
		q.maxAM = p.policy.amShare
	}
	if !spec.MaxAllocation.IsZero() {
		v := p.sizes.Vec(spec.MaxAllocation)
		for i := 0; i < p.sizes.N; i++ {
			if v.At(i) > 0 {
				q.largest.Set(i, min(v.At(i), p.sizes.Most.At(i)))
			}
		}
	}
	q.maxRunning = spec.MaxParallelApps
	q.sizeWeight = spec.SizeWeight || p.tree.spec.SizeWeight
	q.order()
}

// order sets the order of service below the queue. The default differs between leaves and parents.
func (q *Queue) order() {
	by := q.orderBy
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
