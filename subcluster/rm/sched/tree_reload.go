// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// CheckReload returns the error that Scheduler.Reload would return, and changes nothing.
func (t *Tree) CheckReload(spec *queues.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if spec.Scheduler != t.spec.Scheduler || spec.Calculator != t.spec.Calculator {
		return invalid(
			"cannot reload the queues",
			"the scheduler or its resource calculator would change",
			"restart the ResourceManager for that",
		)
	}
	policy := policyOf(spec)
	listed := map[creel.QueuePath]*queues.Queue{}
	flatten(&spec.Root, creel.RootQueue, listed)
	for _, q := range t.all {
		if why := t.staysInUse(q, listed, policy); why != "" {
			return refuse(q, why)
		}
	}
	return nil
}

// merge applies a checked specification, and returns the queues that it removed.
func (t *Tree) merge(spec *queues.Spec) (gone []*Queue) {
	t.spec, t.names = spec, map[string]*Queue{}
	old := t.all
	t.all = nil
	t.mergeQueue(&spec.Root, t.root, nil)
	stays := map[*Queue]bool{}
	for _, q := range t.all {
		stays[q] = true
	}
	for _, q := range old {
		if !stays[q] {
			t.drop(q, stays)
			gone = append(gone, q)
		}
	}
	return gone
}

// drop removes a queue that a merge did not list. The nearest ancestor that stays keeps its counts.
func (t *Tree) drop(q *Queue, stays map[*Queue]bool) {
	q.lifetime.removed = true
	above := q.parent
	for !stays[above] { // the root always stays
		above = above.parent
	}
	above.tally.add(&q.tally)
	if t.byPath[q.path] == q {
		delete(t.byPath, q.path)
	}
	if q.slot != 0 {
		q.parent.ready.Remove(q)
	}
	q.dropPark()
}

// staysInUse returns the reason why a new specification cannot change a queue in use this way, "" if it can.
func (t *Tree) staysInUse(q *Queue, listed map[creel.QueuePath]*queues.Queue, policy policy) string {
	spec := listed[q.path]
	switch {
	case q.lifetime.removed:
	case spec == nil && q.lifetime.dynamic:
		p := listed[q.parent.path]
		lost := p == nil && !q.parent.lifetime.dynamic || p != nil && !policy.keepsMade(p)
		if lost && q.leaf != nil && q.leaf.apps > 0 {
			return "its parent would no longer have it"
		}
	case spec == nil && q.leaf != nil && (q.leaf.apps > 0 || q.containers > 0):
		return fmt.Sprintf("it has %d applications", q.leaf.apps)
	case spec == nil && q.leaf != nil && policy.removesOnlyStopped && q.lifetime.state == creel.QueueRunning:
		return "it is not stopped"
	case spec != nil && q.leaf != nil && !spec.IsLeaf() && q.leaf.apps > 0:
		return "it would become a parent and has applications"
	case spec != nil && q.leaf == nil && spec.IsLeaf() && len(q.children) > 0 && q.containers > 0:
		return "it would become a leaf and its children are in use"
	}
	return ""
}

func refuse(q *Queue, why string) error {
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: fmt.Sprintf("Queue %s cannot be deleted or changed", q.path),
		Why:  why,
		Try:  "stop the queue, wait until it is empty, and reload",
	}
}

func flatten(q *queues.Queue, path creel.QueuePath, out map[creel.QueuePath]*queues.Queue) {
	out[path] = q
	for i := range q.Children {
		flatten(&q.Children[i], path.Child(q.Children[i].Name), out)
	}
}

// mergeQueue applies the new specification to a live queue and its descendants, and creates missing ones. Queues
// created on demand stay.
func (t *Tree) mergeQueue(spec *queues.Queue, q *Queue, parent *Queue) *Queue {
	if q == nil {
		return t.add(spec, parent)
	}
	q.spec, q.lifetime.dynamic = spec, false
	t.list(q)
	before := q.children
	q.children = nil
	for i := range spec.Children {
		var old *Queue
		for _, c := range before {
			if c.name == spec.Children[i].Name {
				old = c
			}
		}
		q.children = append(q.children, t.mergeQueue(&spec.Children[i], old, q))
	}
	for _, c := range before {
		if c.lifetime.dynamic && !containsName(spec.Children, c.name) && t.part.policy.keepsMade(spec) {
			t.keepDynamic(c, spec.AutoCreate)
			q.children = append(q.children, c)
		}
	}
	q.sum()
	leaf := len(q.children) == 0 && spec.AutoCreate == nil
	switch {
	case leaf && q.leaf == nil:
		q.becomeLeaf()
		t.name(q)
	case !leaf:
		q.leaf = nil
		q.order()
	default:
		t.name(q)
		q.reweigh()
	}
	return q
}

// keepDynamic applies the current template to a queue created on demand.
func (t *Tree) keepDynamic(q *Queue, auto *queues.AutoCreate) {
	switch {
	case t.part.label != "":
		q.spec = t.specOfMade(t.part.cluster.main.tree.at(q.path), q.parent)
	case auto != nil:
		q.spec = specOf(auto, q.name, q.leaf != nil)
	}
	t.list(q)
	for _, c := range q.children {
		t.keepDynamic(c, q.spec.AutoCreate)
	}
	q.sum()
	if q.leaf != nil {
		t.name(q)
		q.reweigh()
	}
}

// reweigh applies the new order of applications and weights of users.
func (q *Queue) reweigh() {
	less := q.ordering.apps
	q.leaf.weights, q.leaf.allWeights = 0, 0
	for _, u := range q.leaf.userList {
		u.weight = q.weightOf(u.name)
		q.leaf.allWeights += u.weight
		if u.waitingApps > 0 {
			q.leaf.weights += u.weight
		}
		u.apps.Less = less
		for _, a := range u.apps.Items {
			a.ratio = q.share(a)
		}
		u.apps.Rebuild()
	}
	q.users.Less = func(a, b *user) bool { return less(a.apps.Top(), b.apps.Top()) }
	q.users.Rebuild()
}

func containsName(qs []queues.Queue, name string) bool {
	for i := range qs {
		if qs[i].Name == name {
			return true
		}
	}
	return false
}
