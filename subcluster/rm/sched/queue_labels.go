// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Labels returns the labels that asks in the queue may name: its own, or its nearest ancestor's that lists some. It
// returns every label if not even the root lists any.
func (q *Queue) Labels() []string {
	for p := q; p != nil; p = p.parent {
		if p.spec.Labels != nil {
			return p.spec.Labels
		}
	}
	return []string{queues.AnyLabel}
}

// DefaultLabel returns the label of asks in the queue that name none. It is the queue's own default, or its parent's
// if it may use all of the parent's labels; "" for none.
func (q *Queue) DefaultLabel() string {
	switch {
	case q.spec.DefaultLabel != "":
		return q.spec.DefaultLabel
	case q.parent == nil:
		return ""
	}
	mine := q.Labels()
	if slices.ContainsFunc(q.parent.Labels(), func(l string) bool { return !queues.Accesses(mine, l) }) {
		return ""
	}
	return q.parent.DefaultLabel()
}
