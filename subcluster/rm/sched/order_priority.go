// SPDX-License-Identifier: Apache-2.0

package sched

// priorityFirstOrder serves strictly by priority.
var priorityFirstOrder = &ordering{apps: priorityApps, use: useDominant, children: priorityQueues}

// priorityApps orders strictly by priority, then by smallest share.
func priorityApps(a, b *App) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return fairApps(a, b)
}

// priorityQueues orders queues strictly by their priority, in configured order
// among equals.
func priorityQueues(a, b *Queue) bool {
	if a.spec.Priority != b.spec.Priority {
		return a.spec.Priority > b.spec.Priority
	}
	return fifoQueues(a, b)
}
