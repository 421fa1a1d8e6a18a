// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
)

// leaves finds a member's queues by the leaf of their path: clients may name queues so, and each split looks them up.
// It is built once per report.
type leaves struct {
	queues []QueueLoad // of the load that it was built for
	order  []int32     // of queues, by leaf, label and place
}

// fewQueues is the number of queues up to which a linear search replaces the index.
const fewQueues = 8

// leavesOf builds the index of a load's queues, nil for few.
func leavesOf(queues []QueueLoad) *leaves {
	if len(queues) <= fewQueues {
		return nil
	}
	x := &leaves{queues: queues, order: make([]int32, len(queues))}
	for i := range x.order {
		x.order[i] = int32(i)
	}
	slices.SortFunc(x.order, func(a, b int32) int {
		l, r := &queues[a], &queues[b]
		return cmp.Or(cmp.Compare(l.Queue.Leaf(), r.Queue.Leaf()), cmp.Compare(l.Label, r.Label), cmp.Compare(a, b))
	})
	return x
}

// isOf reports whether the index was built for these queues.
func (x *leaves) isOf(queues []QueueLoad) bool {
	return x != nil && len(queues) > 0 && len(x.queues) == len(queues) && &x.queues[0] == &queues[0]
}

// find returns the first queue with a leaf and label, nil for none.
func (x *leaves) find(leaf, label string) *QueueLoad {
	i, ok := slices.BinarySearchFunc(x.order, leaf, func(i int32, leaf string) int {
		q := &x.queues[i]
		return cmp.Or(cmp.Compare(q.Queue.Leaf(), leaf), cmp.Compare(q.Label, label))
	})
	if !ok {
		return nil
	}
	return &x.queues[x.order[i]]
}

// QueueOn finds a queue's figures on the nodes of a label, by its full path or by its leaf alone, which clients may
// send; nil if there are none. They must not be changed.
func (m *Status) QueueOn(q creel.QueuePath, label string) *QueueLoad {
	if l := m.Load.FindOn(q, label); l != nil || q.IsFull() {
		return l
	}
	if m.leaves.isOf(m.Load.Queues) {
		return m.leaves.find(string(q), label)
	}
	for i := range m.Load.Queues {
		if l := &m.Load.Queues[i]; l.Label == label && l.Queue.Leaf() == string(q) {
			return l
		}
	}
	return nil
}

// HasQueue reports whether a submission may name a queue at the member: the member reports it, or creates it.
func (m *Status) HasQueue(q creel.QueuePath) bool {
	return m.QueueOn(q, "") != nil || m.Load.MakesQueue(q)
}

// MakesQueue reports whether the member creates a queue that a submission names. For a leaf alone the parent queue
// would be unknown.
func (l *Load) MakesQueue(q creel.QueuePath) bool {
	if !q.IsFull() {
		return len(l.Makes) > 0
	}
	for at := q.Parent(); at != ""; at = at.Parent() {
		if slices.Contains(l.Makes, at) {
			return true
		}
	}
	return false
}
