// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Sketch is a what-if on the live amounts: remove or add containers, resize nodes and queues, then ask questions;
// Undo restores everything, last change first. Between the first change and Undo the scheduler must not be used
// otherwise. The sketch changes its state, not a copy, which makes a question as cheap as a decision. Preemption,
// reservations and simulations use it.
type Sketch struct {
	of   *Scheduler
	undo []func()
}

// Sketch starts a what-if.
func (s *Scheduler) Sketch() *Sketch { return &Sketch{of: s} }

// Undo undoes every change and empties the sketch.
func (k *Sketch) Undo() {
	for i := len(k.undo) - 1; i >= 0; i-- {
		k.undo[i]()
	}
	k.undo = nil
}

// change applies a change that moves a node in the index, and records its reversal. A node's position in its cell
// decides ties, so it is restored too.
func (k *Sketch) change(n *Node, apply func(sign int64)) {
	p := n.of
	at := p.nodes.Position(n.serial, n.rack)
	apply(1)
	k.undo = append(k.undo, func() {
		apply(-1)
		p.nodes.Restore(n.serial, n.rack, at)
	})
}

// Shift moves an amount from a node's free resources to the use of an application, its user and its queues,
// regardless of limits. Sign -1 moves it back, which is the effect of preempting a container.
func (k *Sketch) Shift(a *App, n *Node, v amounts.Vec, sign int64) {
	p := n.of
	if p != &k.of.main {
		x := a.partIn(p)
		if x == nil {
			x = k.of.appIn(a, p)
			k.undo = append(k.undo, func() {
				p.leave(x)
				a.parts = a.parts[:len(a.parts)-1]
			})
		}
		a = x
	}
	k.change(n, func(by int64) {
		by *= sign
		n.free.AddTimes(&v, -by)
		p.nodes.reindex(n)
		a.used.AddTimes(&v, by)
		a.user.uses(&v, by)
		for q := a.queue; q != nil; q = q.parent {
			q.used.AddTimes(&v, by)
		}
	})
}

// Resize changes a node's size.
func (k *Sketch) Resize(n *Node, to amounts.Vec) {
	p := n.of
	to.Sub(&n.total)
	k.change(n, func(sign int64) {
		n.total.AddTimes(&to, sign)
		n.free.AddTimes(&to, sign)
		if n.use != Off {
			p.total.AddTimes(&to, sign)
		}
		p.tree.version++
		p.nodes.reindex(n)
	})
}

// SetMaximum changes a queue's maximum. The root's maximum is the cluster: ErrQueueNotFound.
func (k *Sketch) SetMaximum(q *Queue, to amounts.Vec) error {
	if q.parent == nil {
		return noQueue(string(q.path))
	}
	q.sized()
	was, bounded := q.bounds.max, q.bounds.bounded
	q.bounds.max, q.bounds.bounded = to, true
	q.bounds.limit()
	k.undo = append(k.undo, func() {
		q.bounds.max, q.bounds.bounded = was, bounded
		q.bounds.limit()
	})
	return nil
}

// Fits reports whether and where the application could get one container of a size now; if not, which limit prevents
// it. It returns ErrInvalidResource if the application could never ask for one.
func (k *Sketch) Fits(a *App, r creel.Resource) (*Node, explain.Limit, error) {
	p := &k.of.main
	v, err := p.sizes.Normalize(r, &a.queue.settings.largest)
	if err != nil {
		return nil, explain.LimitNone, err
	}
	w := Ask{app: a, size: p.sizeOf(v)}
	if verdict := a.admit(w.size, nil); verdict.limit != explain.LimitNone {
		return nil, verdict.limit, nil
	}
	if n := p.nodes.find(&w); n != nil {
		return n, explain.LimitNone, nil
	}
	return nil, explain.LimitRoom, nil
}
