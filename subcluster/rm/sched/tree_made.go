// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Queues are created on demand below a queue with AutoCreate in CapacityScheduler, and below any parent in
// FairScheduler.

// create makes the leaf of a path and its missing parents; it returns nil if that is not permitted.
func (t *Tree) create(path creel.QueuePath) *Queue {
	path = fullPath(path)
	if p, err := creel.ParseQueuePath(string(path)); err != nil || p.IsRoot() {
		return nil
	}
	above, missing := t.nearest(path)
	if above == nil || len(missing) == 0 || above.leaf != nil || above.StateNow() != creel.QueueRunning {
		return nil
	}
	auto := t.part.policy.template(above.spec, len(missing))
	if auto == nil {
		return nil
	}
	limit := auto.Max
	if limit <= 0 {
		limit = 1000
	}
	if above.made()+len(missing) > limit {
		return nil
	}
	q := above
	for i, name := range missing {
		spec := specOf(auto, name, i == len(missing)-1)
		auto = spec.AutoCreate
		q = t.addMade(spec, q)
	}
	return q
}

// nearest returns the nearest queue on a path, and the names below it that are missing; nil if the path has another
// root.
func (t *Tree) nearest(path creel.QueuePath) (above *Queue, missing []string) {
	for p := path; ; p = p.Parent() {
		if q := t.at(p); q != nil {
			slices.Reverse(missing)
			return q, missing
		}
		if missing = append(missing, p.Leaf()); p.IsRoot() || p == "" {
			return nil, nil
		}
	}
}

// addMade adds a queue created on demand.
func (t *Tree) addMade(spec *queues.Queue, above *Queue) *Queue {
	q := t.add(spec, above)
	q.lifetime.dynamic = true
	above.children = append(above.children, q)
	above.sum()
	return q
}

// mirror returns the queue that corresponds to q of the default partition. If q was created on demand, mirror adds
// the queue and its missing parents, and reports that it did.
func (t *Tree) mirror(q *Queue) (c *Queue, added bool) {
	if c := t.at(q.path); c != nil {
		return c, false
	}
	above, _ := t.mirror(q.parent)
	return t.addMade(t.specOfMade(q, above), above), true
}

// specOfMade returns this partition's specification of a queue created on demand in the default partition.
func (t *Tree) specOfMade(q, above *Queue) *queues.Queue {
	spec := q.spec.PartitionOfMade(t.part.label, above.spec.Labels)
	return &spec
}

// specOf returns the specification of a queue created on demand by a template.
func specOf(auto *queues.AutoCreate, name string, leaf bool) *queues.Queue {
	spec := auto.For(name, leaf)
	if spec.Capacity.Unit == queues.Unset {
		spec.Capacity = queues.WeightOf(1)
	}
	return &spec
}

// made counts the queues created on demand below q.
func (q *Queue) made() int {
	n := 0
	for _, c := range q.children {
		if c.lifetime.dynamic {
			n++
		}
		n += c.made()
	}
	return n
}

// remove removes an empty queue, and then each parent created on demand that has no other child. It returns them.
func (t *Tree) remove(q *Queue) (gone []*Queue) {
	for {
		q.lifetime.removed = true
		delete(t.byPath, q.path)
		if t.names[q.name] == q {
			delete(t.names, q.name)
		}
		p := q.parent
		p.tally.add(&q.tally)
		p.children, t.all = without(p.children, q), without(t.all, q)
		p.sum()
		gone = append(gone, q)
		if !p.lifetime.dynamic || len(p.children) > 0 {
			return gone
		}
		q = p
	}
}

// without returns a new list without q: callers may read the old one.
func without(list []*Queue, q *Queue) []*Queue {
	return slices.DeleteFunc(slices.Clone(list), func(x *Queue) bool { return x == q })
}
