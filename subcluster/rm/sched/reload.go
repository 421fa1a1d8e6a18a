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
	if err := s.main.tree.CheckReload(&spec); err != nil {
		return err
	}
	s.main.adopt(&spec)
	for _, p := range s.labelled {
		part := spec.Partition(p.label) // checked with the whole tree
		p.adopt(&part)
		p.mirrorMade()
	}
	s.main.preempt.configure(spec.Preemption)
	return nil
}

// adopt applies a checked specification to one partition.
func (p *partition) adopt(spec *queues.Spec) {
	p.policy = policyOf(spec)
	for _, q := range p.tree.merge(spec) {
		p.cluster.timers.stop(&q.lifetime.idle)
	}
	for _, q := range p.tree.all {
		if !q.lifetime.dynamic {
			p.cluster.timers.stop(&q.lifetime.idle) // it ends only queues that were made on demand
		}
	}
	p.resize()
}

// CreateQueue creates the leaf of a path and its missing parents; it returns nil if that is not permitted.
func (s *Scheduler) CreateQueue(path creel.QueuePath) *Queue {
	q := s.main.tree.create(path)
	if q == nil {
		return nil
	}
	s.main.resize()
	for _, p := range s.labelled {
		p.counterpart(q) // its part of the label counts now
	}
	return q
}

// RemoveMade removes a queue that CreateQueue created, and that has had no application.
func (s *Scheduler) RemoveMade(q *Queue) {
	s.main.removeQueue(q)
	s.main.resize()
}

// mirrorMade adds to a partition the queues created on demand in the default one.
func (p *partition) mirrorMade() {
	for _, q := range p.cluster.main.tree.all {
		if q.lifetime.dynamic {
			p.counterpart(q)
		}
	}
}

// counterpart returns the queue of a partition that corresponds to q of the default one, and creates it if q was
// created on demand.
func (p *partition) counterpart(q *Queue) *Queue {
	c, added := p.tree.mirror(q)
	if added {
		p.resize()
	}
	return c
}

// idle starts the timeout after which an empty queue that was created on demand is removed.
func (p *partition) idle(q *Queue) {
	if !q.lifetime.dynamic || q.leaf == nil || q.leaf.apps > 0 {
		return
	}
	keep := 300 * time.Second
	if a := q.parent.spec.AutoCreate; a != nil && a.KeepIdle != 0 {
		keep = a.KeepIdle
	}
	if keep < 0 {
		return
	}
	p.cluster.timers.stop(&q.lifetime.idle)
	q.lifetime.idle = p.cluster.timers.start(p.now+int64(keep), func() {
		q.lifetime.idle = nil
		if q.leaf.apps == 0 && q.containers == 0 {
			p.removeQueue(q)
			p.resizeDue = true
		}
	})
}

// removeQueue removes an empty queue, with its empty parents that were created on demand; from the partition without
// a label also in all others.
func (part *partition) removeQueue(q *Queue) {
	for _, x := range part.tree.remove(q) {
		part.cluster.timers.stop(&x.lifetime.idle)
		for _, p := range part.others() {
			if c := p.tree.at(x.path); c != nil {
				p.removeQueue(c)
			}
		}
	}
}

// resize runs after the cluster or the configuration changed. Guarantees and maximums are computed at the next use
// (sized), so idle queues cost nothing. Waiting queues are ranked again, and queues that a limit had stopped are
// tried again.
func (p *partition) resize() {
	p.tree.version++
	p.tree.sharesAt = 0
	if p.waiting > 0 {
		p.tree.root.reorder()
	}
	p.loosen()
	if p.label != "" {
		p.cluster.main.resizeDue = true // there, AMs of the partition wait in line
	}
}

// loosen retries the asks that limits had stopped.
func (p *partition) loosen() {
	p.retries.loosen(p.cluster.line.try)
	p.lendAgain()
}
