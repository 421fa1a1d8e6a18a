// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// tally counts the containers of a queue itself since the start, and those of its former descendants.
type tally struct {
	granted, released int64
	near              [places.NumDistances]int64 // of the granted ones, by the distance from the named places
}

func (t *tally) add(o *tally) {
	t.granted += o.granted
	t.released += o.released
	for i, n := range o.near {
		t.near[i] += n
	}
}

// counts returns the tally of a queue with its descendants.
func (q *Queue) counts() tally {
	t := q.tally
	for _, c := range q.children {
		below := c.counts()
		t.add(&below)
	}
	return t
}

// LossCounts counts preempted containers.
type LossCounts struct {
	Containers int64
	Amount     amounts.Vec
	OverTime   amounts.Vec // times the milliseconds of their runs
}

// AppCounts counts applications by outcome.
type AppCounts struct{ Submitted, Completed, Failed, Killed int64 }

// shareSum is a sum of dominant shares, in units that add without rounding, so that the order of addition does not
// matter.
type shareSum int64

// shareSet is one computation of the shares of all queues.
type shareSet uint8

const (
	// inDecisions limits the AMs of a queue. It may be half a second old, because applications come and go faster
	// than a large tree can be divided.
	inDecisions shareSet = iota
	// inViews is the set for views: current, and separate, so that a view changes no decision.
	inViews
	shareSets
)

// fairShares are a queue's shares in one computation.
type fairShares struct{ share, steady amounts.Vec }

// SetState starts, stops or drains the queue. A stopped queue with applications drains until they have ended.
func (q *Queue) SetState(to creel.QueueState) {
	q.state = to
	if to == creel.QueueStopped && q.appsBelow() > 0 {
		q.state = creel.QueueDraining
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
		if p.state != creel.QueueRunning {
			return p.state
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
func (q *Queue) Largest() *amounts.Vec { return &q.largest }

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
