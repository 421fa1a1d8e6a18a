// SPDX-License-Identifier: Apache-2.0

package sched

// fifoOrder serves applications in order of priority and submission, queues in configured order.
var fifoOrder = &ordering{apps: fifoApps, children: fifoQueues}

// fifoApps is CapacityScheduler's "fifo" ordering policy and FairScheduler's
// fifo: by application priority (larger first), then by submission.
func fifoApps(a, b *App) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.seq < b.seq
}

// fifoQueues serves children in configured order.
func fifoQueues(a, b *Queue) bool { return a.serial < b.serial }
