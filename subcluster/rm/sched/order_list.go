// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/queues"

// orderings has all of them by name. Each has a file.
var orderings = map[queues.Policy]*ordering{
	queues.Fifo:                fifoOrder,
	queues.PriorityFirst:       priorityFirstOrder,
	queues.Utilization:         utilizationOrder,
	queues.PriorityUtilization: priorityUtilizationOrder,
	queues.FairShare:           fairShareOrder,
	queues.DRF:                 drfOrder,
	queues.HDRF:                hdrfOrder,
}
