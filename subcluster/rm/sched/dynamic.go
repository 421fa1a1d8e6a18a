// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Queues are created on demand below a queue with AutoCreate in CapacityScheduler, and below any parent in
// FairScheduler.

// CreateQueue creates the leaf of a path and its missing parents; it returns nil if that is not permitted.
func (s *Scheduler) CreateQueue(path creel.QueuePath) *Queue {
	if !path.IsFull() {
		path = creel.RootQueue.Child(string(path))
	}
	if p, err := creel.ParseQueuePath(string(path)); err != nil || p.IsRoot() {
		return nil
	}
	// Find the nearest existing queue.
	var above *Queue
	missing := []string{}
	for p := path; ; p = p.Parent() {
		if q := s.tree.byPath[p]; q != nil && !q.removed {
			above = q
			break
		}
		missing = append([]string{p.Leaf()}, missing...)
		if p.IsRoot() || p == "" {
			return nil
		}
	}
	if len(missing) == 0 || above.leaf != nil || above.StateNow() != creel.QueueRunning {
		return nil
	}
	auto := s.policy.template(above.spec, len(missing))
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
		c := s.addQueue(spec, q)
		c.dynamic = true
		q.children = append(q.children, c)
		q.sum()
		q = c
	}
	s.resize()
	for _, p := range s.parts {
		p.counterpart(q) // its part of the label counts now
	}
	return q
}

// MappedOnly reports whether a queue takes only applications that a mapping sends there: one below a legacy managed
// parent.
func (s *Scheduler) MappedOnly(path creel.QueuePath) bool {
	if !path.IsFull() {
		path = creel.RootQueue.Child(string(path))
	}
	p := s.tree.byPath[path.Parent()]
	return p != nil && p.spec.AutoCreate != nil && p.spec.AutoCreate.Managed
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
		if c.dynamic {
			n++
		}
		n += c.made()
	}
	return n
}

// idle starts the timeout after which an empty queue that was created on demand is removed.
func (s *Scheduler) idle(q *Queue) {
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
	s.stop(&q.idleTimer)
	q.idleTimer = s.timer(s.now+int64(keep), func() {
		q.idleTimer = nil
		if q.leaf.apps == 0 && q.containers == 0 {
			s.removeQueue(q)
			s.tree.stale = true
		}
	})
}

// removeQueue removes an empty queue from the tree, and its empty parents that were created on demand.
func (s *Scheduler) removeQueue(q *Queue) {
	q.removed = true
	s.stop(&q.idleTimer)
	delete(s.tree.byPath, q.path)
	if s.tree.names[q.name] == q {
		delete(s.tree.names, q.name)
	}
	p := q.parent
	p.tally.add(&q.tally)
	for i, c := range p.children {
		if c == q {
			p.children = append(p.children[:i:i], p.children[i+1:]...)
			break
		}
	}
	p.sum()
	for i, c := range s.tree.all {
		if c == q {
			s.tree.all = append(s.tree.all[:i:i], s.tree.all[i+1:]...)
			break
		}
	}
	for _, x := range s.parts {
		if c := x.tree.byPath[q.path]; c != nil {
			x.removeQueue(c)
		}
	}
	if p.dynamic && len(p.children) == 0 {
		s.removeQueue(p)
	}
}
