// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// A change of the tree (Tree) applies to all partitions, to the deadlines of its queues, and to the sizes of queues.

// Reload replaces the specification of the queues at run time. It rejects, as a whole, a tree that is invalid,
// changes the scheduler or the calculator, or lacks a queue in use. Then the old tree stays. Schedule is due.
func (s *Scheduler) Reload(spec queues.Spec) error {
	if err := s.tree.CheckReload(&spec); err != nil {
		return err
	}
	s.adopt(&spec)
	for _, p := range s.parts {
		part := spec.Partition(p.label) // checked with the whole tree
		p.adopt(&part)
		p.mirrorMade()
	}
	s.preempt.configure(spec.Preemption)
	return nil
}

// adopt applies a checked specification to one partition.
func (s *Scheduler) adopt(spec *queues.Spec) {
	s.policy = policyOf(spec)
	for _, q := range s.tree.merge(spec) {
		s.timers.stop(&q.idleTimer)
	}
	for _, q := range s.tree.all {
		if !q.dynamic {
			s.timers.stop(&q.idleTimer) // it ends only queues that were made on demand
		}
	}
	s.resize()
}

// CreateQueue creates the leaf of a path and its missing parents; it returns nil if that is not permitted.
func (s *Scheduler) CreateQueue(path creel.QueuePath) *Queue {
	q := s.tree.create(path)
	if q == nil {
		return nil
	}
	s.resize()
	for _, p := range s.parts {
		p.counterpart(q) // its part of the label counts now
	}
	return q
}

// mirrorMade adds to a partition the queues created on demand in the default one.
func (s *Scheduler) mirrorMade() {
	for _, q := range s.main.tree.all {
		if q.dynamic {
			s.counterpart(q)
		}
	}
}

// counterpart returns the queue of a partition that corresponds to q of the default one, and creates it if q was
// created on demand.
func (s *Scheduler) counterpart(q *Queue) *Queue {
	c, added := s.tree.mirror(q)
	if added {
		s.resize()
	}
	return c
}

// idle starts the timeout after which an empty queue that was created on demand is removed.
func (q *Queue) idle() {
	if !q.dynamic || q.leaf == nil || q.leaf.apps > 0 {
		return
	}
	keep := 300 * time.Second
	if a := q.parent.spec.AutoCreate; a != nil && a.KeepIdle != 0 {
		keep = a.KeepIdle
	}
	if keep < 0 {
		return
	}
	s := q.s
	s.timers.stop(&q.idleTimer)
	q.idleTimer = s.timers.start(s.now+int64(keep), func() {
		q.idleTimer = nil
		if q.leaf.apps == 0 && q.containers == 0 {
			s.removeQueue(q)
			s.resizeDue = true
		}
	})
}

// removeQueue removes an empty queue in all partitions, with its empty parents that were created on demand.
func (s *Scheduler) removeQueue(q *Queue) {
	for _, x := range s.tree.remove(q) {
		s.timers.stop(&x.idleTimer)
		for _, p := range s.parts {
			if c := p.tree.at(x.path); c != nil {
				p.removeQueue(c)
			}
		}
	}
}

// resize runs after the cluster or the configuration changed. Guarantees and maximums are computed at the next use
// (sized), so idle queues cost nothing. Waiting queues are ranked again, and queues that a limit had stopped are
// tried again.
func (s *Scheduler) resize() {
	s.tree.version++
	s.tree.sharesAt = 0
	if s.waiting > 0 {
		s.tree.root.reorder()
	}
	s.loosen()
	if s.main != nil {
		s.main.resizeDue = true // there, AMs of the partition wait in line
	}
}

// loosen retries the asks that limits had stopped.
func (s *Scheduler) loosen() {
	s.retries.loosen(s.line.try)
	s.lending.again()
}
