// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Queues made on demand: below a queue with AutoCreate in CapacityScheduler,
// anywhere below a parent in FairScheduler.

// createQueue makes the leaf of a path, with the parents on the way; nil if it
// may not be made.
func (m *Machine) createQueue(path creel.QueuePath) *queue {
	if !path.IsFull() {
		path = creel.RootQueue.Child(string(path))
	}
	if p, err := creel.ParseQueuePath(string(path)); err != nil || p.IsRoot() {
		return nil
	}
	// The nearest queue that exists.
	var above *queue
	missing := []string{}
	for p := path; ; p = p.Parent() {
		if q := m.tree.byPath[p]; q != nil && !q.removed {
			above = q
			break
		}
		missing = append([]string{p.Leaf()}, missing...)
		if p.IsRoot() || p == "" {
			return nil
		}
	}
	if len(missing) == 0 || above.leaf != nil || above.stateNow() != creel.QueueRunning {
		return nil
	}
	auto := above.auto()
	if m.tree.spec.Scheduler == queues.FairScheduler {
		if auto == nil {
			auto = &queues.AutoCreate{Depth: 64}
		}
	} else if auto == nil || len(missing) > max(auto.Depth, 1) {
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
		template := auto.Leaf
		if i < len(missing)-1 {
			template = auto.Parent
			template.AutoCreate = auto
		}
		template.Name, template.Children = name, nil
		if template.Capacity.Unit == queues.Unset {
			template.Capacity = queues.WeightOf(1)
		}
		spec := &template
		c := m.addQueue(spec, q)
		c.dynamic = true
		q.children = append(q.children, c)
		q.sum()
		q = c
	}
	m.resize()
	return q
}

// auto is the rule for children that are not listed: the queue's own.
func (q *queue) auto() *queues.AutoCreate { return q.spec.AutoCreate }

// made counts the queues made on demand below q.
func (q *queue) made() int {
	n := 0
	for _, c := range q.children {
		if c.dynamic {
			n++
		}
		n += c.made()
	}
	return n
}

// idle lets an empty queue that was made on demand go after a while.
func (m *Machine) idle(q *queue) {
	if !q.dynamic || q.leaf == nil || q.leaf.apps > 0 {
		return
	}
	keep := 300 * time.Second
	if a := q.parent.auto(); a != nil && a.KeepIdle != 0 {
		keep = a.KeepIdle
	}
	if keep < 0 {
		return
	}
	m.stop(&q.idleTimer)
	q.idleTimer = m.timer(m.now+int64(keep), func() {
		q.idleTimer = nil
		if q.leaf.apps == 0 && q.containers == 0 {
			m.removeQueue(q)
			m.tree.stale = true
		}
	})
}

// removeQueue takes an empty queue out of the tree, and its made parents with it.
func (m *Machine) removeQueue(q *queue) {
	q.removed = true
	m.stop(&q.idleTimer)
	delete(m.tree.byPath, q.path)
	if m.tree.names[q.name] == q {
		delete(m.tree.names, q.name)
	}
	p := q.parent
	for i, c := range p.children {
		if c == q {
			p.children = append(p.children[:i:i], p.children[i+1:]...)
			break
		}
	}
	p.sum()
	for i, c := range m.tree.all {
		if c == q {
			m.tree.all = append(m.tree.all[:i:i], m.tree.all[i+1:]...)
			break
		}
	}
	if p.dynamic && len(p.children) == 0 {
		m.removeQueue(p)
	}
}
