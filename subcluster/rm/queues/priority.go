// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// PriorityLimit limits the priorities of some users' applications in a leaf queue.
type PriorityLimit struct {
	Who        ACL
	Max        int32
	Default    int32 // for applications without a priority
	HasDefault bool  // false: the queue's default applies
}

// MayHavePriority reports whether an application of a user may have a priority in the queue. If the queue has limits
// and none includes the user, the user may have no application there.
func (q *Queue) MayHavePriority(user string, groups []string, priority int32) bool {
	for _, l := range q.PriorityLimits {
		if priority <= l.Max && l.Who.Allows(user, groups) {
			return true
		}
	}
	return len(q.PriorityLimits) == 0
}

// DefaultPriorityOf returns the priority of a user's applications that request none. limits enables the priority
// limits. The highest of several defaults counts.
func (q *Queue) DefaultPriorityOf(user string, groups []string, limits bool) int32 {
	out := q.DefaultPriority
	for _, l := range q.PriorityLimits {
		if limits && l.HasDefault && l.Who.Allows(user, groups) {
			out = l.Default
		}
	}
	return out
}

// WorkflowPriority is the priority of a workflow's applications in a queue and its descendants.
type WorkflowPriority struct {
	Workflow string // lower case, like tags
	Queue    creel.QueuePath
	Priority int32
}

// WorkflowPriority is the priority that applications with these tags get in a queue: that of the nearest queue, from
// there up, with an entry for their workflow. If several tags name a workflow, the last one counts.
func (s *Spec) WorkflowPriority(tags []string, in creel.QueuePath) (priority int32, ok bool) {
	if len(s.Workflows) == 0 {
		return 0, false
	}
	workflow := ""
	for _, tag := range tags {
		if id, ok := strings.CutPrefix(strings.TrimSpace(tag), s.WorkflowTag); ok {
			workflow = id
		}
	}
	for path := in; workflow != "" && path != "" && !path.IsRoot(); path = path.Parent() {
		// If two entries match, the later one counts.
		for _, w := range slices.Backward(s.Workflows) {
			if w.Workflow == workflow && w.Queue == path {
				return w.Priority, true
			}
		}
	}
	return 0, false
}
