// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Reload replaces the specification of the queues at run time. It rejects, as a whole, a tree that is invalid,
// changes the scheduler or the calculator, or lacks a queue in use. Then the old tree stays. Schedule is due.
func (s *Scheduler) Reload(spec queues.Spec) error {
	if err := s.CheckReload(&spec); err != nil {
		return err
	}
	policy := policyOf(&spec)
	s.merge(&spec, policy)
	for _, p := range s.parts {
		part := spec.Partition(p.label) // checked with the whole tree
		p.merge(&part, policyOf(&part))
		for _, q := range s.tree.all {
			if q.dynamic {
				p.counterpart(q)
			}
		}
	}
	s.preempt.configure(spec.Preemption)
	return nil
}

// CheckReload returns the error that Reload would return, and changes nothing.
func (s *Scheduler) CheckReload(spec *queues.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if spec.Scheduler != s.tree.spec.Scheduler || spec.Calculator != s.tree.spec.Calculator {
		return invalid(
			"cannot reload the queues",
			"the scheduler or its resource calculator would change",
			"restart the ResourceManager for that",
		)
	}
	policy := policyOf(spec)
	listed := map[creel.QueuePath]*queues.Queue{}
	flatten(&spec.Root, creel.RootQueue, listed)
	for _, q := range s.tree.all {
		if why := q.staysInUse(listed, policy); why != "" {
			return refuse(q, why)
		}
	}
	return nil
}

// merge applies a checked tree.
func (s *Scheduler) merge(spec *queues.Spec, policy policy) {
	s.tree.spec, s.policy = spec, policy
	s.tree.names = map[string]*Queue{}
	old := s.tree.all
	s.tree.all = nil
	s.mergeQueue(&spec.Root, s.tree.root, nil)
	alive := map[*Queue]bool{}
	for _, q := range s.tree.all {
		alive[q] = true
	}
	for _, q := range old {
		if !alive[q] {
			q.removed = true
			above := q.parent
			for !alive[above] { // the root always is
				above = above.parent
			}
			above.tally.add(&q.tally)
			s.stop(&q.idleTimer)
			if s.tree.byPath[q.path] == q {
				delete(s.tree.byPath, q.path)
			}
			if q.slot != 0 {
				q.parent.ready.Remove(q)
			}
			q.dropPark()
		}
	}
	s.resize()
}

// staysInUse returns the reason why a new specification cannot change a queue in use this way, "" if it can.
func (q *Queue) staysInUse(listed map[creel.QueuePath]*queues.Queue, policy policy) string {
	spec := listed[q.path]
	switch {
	case q.removed:
	case spec == nil && q.dynamic:
		p := listed[q.parent.path]
		lost := p == nil && !q.parent.dynamic || p != nil && !policy.keepsMade(p)
		if lost && q.leaf != nil && q.leaf.apps > 0 {
			return "its parent would no longer have it"
		}
	case spec == nil && q.leaf != nil && (q.leaf.apps > 0 || q.containers > 0):
		return fmt.Sprintf("it has %d applications", q.leaf.apps)
	case spec == nil && q.leaf != nil && policy.removesOnlyStopped && q.state == creel.QueueRunning:
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
func (s *Scheduler) mergeQueue(spec *queues.Queue, q *Queue, parent *Queue) *Queue {
	if q == nil {
		return s.addQueue(spec, parent)
	}
	q.spec, q.dynamic = spec, false
	s.stop(&q.idleTimer) // it ends only queues that were made on demand
	s.readd(q)
	before := q.children
	q.children = nil
	for i := range spec.Children {
		var old *Queue
		for _, c := range before {
			if c.name == spec.Children[i].Name {
				old = c
			}
		}
		q.children = append(q.children, s.mergeQueue(&spec.Children[i], old, q))
	}
	for _, c := range before {
		if c.dynamic && !containsName(spec.Children, c.name) &&
			s.policy.keepsMade(spec) {
			s.keepDynamic(c, spec.AutoCreate)
			q.children = append(q.children, c)
		}
	}
	q.sum()
	leaf := len(q.children) == 0 && spec.AutoCreate == nil
	switch {
	case leaf && q.leaf == nil:
		q.becomeLeaf()
	case !leaf:
		q.leaf = nil
		q.order()
	default:
		q.relabel()
	}
	return q
}

// readd adds a queue that stays to the new order.
func (s *Scheduler) readd(q *Queue) {
	q.serial = len(s.tree.all)
	s.tree.all = append(s.tree.all, q)
	q.configure()
}

// keepDynamic applies the current template to a queue created on demand.
func (s *Scheduler) keepDynamic(q *Queue, auto *queues.AutoCreate) {
	switch {
	case s.main != nil:
		q.spec = s.specOfMade(s.main.tree.byPath[q.path], q.parent)
	case auto != nil:
		q.spec = specOf(auto, q.name, q.leaf != nil)
	}
	s.readd(q)
	for _, c := range q.children {
		s.keepDynamic(c, q.spec.AutoCreate)
	}
	q.sum()
	if q.leaf != nil {
		q.relabel()
	}
}

// relabel applies the new order of applications and weights of users.
func (q *Queue) relabel() {
	q.label()
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

// SetQueueState starts, stops or drains a queue. A stopped queue with
// applications drains until they have ended.
func (s *Scheduler) SetQueueState(q *Queue, to creel.QueueState) {
	q.state = to
	if to == creel.QueueStopped && q.appsBelow() > 0 {
		q.state = creel.QueueDraining
	}
}
