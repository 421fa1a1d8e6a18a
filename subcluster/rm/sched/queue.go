// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// counts returns the tally of a queue with its descendants.
func (q *Queue) counts() tally {
	t := q.tally
	for _, c := range q.children {
		below := c.counts()
		t.add(&below)
	}
	return t
}

// SetState starts, stops or drains the queue. A stopped queue with applications drains until they have ended.
func (q *Queue) SetState(to creel.QueueState) {
	q.lifetime.set(to, q.appsBelow())
}

// configure applies the configured state, 0 if the configuration has none.
func (l *lifetime) configure(state creel.QueueState) {
	if state != 0 || l.state == 0 {
		l.state = cmp.Or(state, creel.QueueRunning)
	}
}

// set changes the state of a queue with so many applications.
func (l *lifetime) set(to creel.QueueState, apps int) {
	l.state = to
	if to == creel.QueueStopped && apps > 0 {
		l.state = creel.QueueDraining
	}
}

// appsBelow is the number of applications in the queue and its descendants.
func (q *Queue) appsBelow() int {
	if q.leaf != nil {
		return q.leaf.apps
	}
	n := 0
	for _, c := range q.children {
		n += c.appsBelow()
	}
	return n
}

// StateNow is the queue's state including its ancestors': a stopped parent stops all below.
func (q *Queue) StateNow() creel.QueueState {
	for p := q; p != nil; p = p.parent {
		if p.lifetime.state != creel.QueueRunning {
			return p.lifetime.state
		}
	}
	return creel.QueueRunning
}

// Path is the queue's full name.
func (q *Queue) Path() creel.QueuePath { return q.path }

// Parent is the parent queue, nil for the root.
func (q *Queue) Parent() *Queue { return q.parent }

// Spec returns the queue's configuration, read-only.
func (q *Queue) Spec() *queues.Queue { return q.spec }

// IsLeaf reports whether it is a leaf, which applications may enter.
func (q *Queue) IsLeaf() bool { return q.leaf != nil }

// Largest is the largest container that applications may ask for here.
func (q *Queue) Largest() *amounts.Vec { return &q.settings.largest }

// Used returns the sum of the queue's containers.
func (q *Queue) Used() amounts.Vec { return q.used }

// isAbove reports whether x is q or below it.
func (q *Queue) isAbove(x *Queue) bool {
	for ; x != nil; x = x.parent {
		if x == q {
			return true
		}
	}
	return false
}

// losesLeast reports whether the nearest queue with a setting has LeastWork.
func (q *Queue) losesLeast() bool {
	for ; q != nil; q = q.parent {
		if v := q.spec.Victims; v != queues.VictimsDefault {
			return v == queues.LeastWork
		}
	}
	return false
}
