// SPDX-License-Identifier: Apache-2.0

package rm

// priorityApps orders strictly by priority, then by least share.
func priorityApps(a, b *app) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return fairApps(a, b)
}

// priorityQueues orders queues strictly by their priority, in configured order
// among equals.
func priorityQueues(a, b *queue) bool {
	if a.spec.Priority != b.spec.Priority {
		return a.spec.Priority > b.spec.Priority
	}
	return fifoQueues(a, b)
}
