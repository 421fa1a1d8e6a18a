// SPDX-License-Identifier: Apache-2.0

package rm

// fifoApps is CapacityScheduler's "fifo" ordering policy and FairScheduler's
// fifo: by application priority (larger first), then by submission.
func fifoApps(a, b *app) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.seq < b.seq
}

// fifoQueues serves children in configured order.
func fifoQueues(a, b *queue) bool { return a.serial < b.serial }
