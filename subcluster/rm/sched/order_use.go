// SPDX-License-Identifier: Apache-2.0

package sched

import "math"

// utilizationOrder serves queues by used over guaranteed, like CapacityScheduler, and applications in order of
// submission.
var utilizationOrder = &ordering{apps: fifoApps, children: useQueues, rank: useRank}

// priorityUtilizationOrder is the same within groups of queues; see priorityUseQueues.
var priorityUtilizationOrder = &ordering{
	apps: fifoApps, children: priorityUseQueues, rank: useRank, priorities: true,
}

// useRank is CapacityScheduler's used capacity: used over guaranteed, by the
// calculator's measure (memory, or the dominant share of each).
func useRank(q *Queue) rank {
	p := q.sized().part
	used, have := p.sizes.Dominant(&q.used, &p.total), q.capacity.promised
	r := rank{}
	switch {
	case have > 0 && !math.IsInf(have, 1):
		r.ratio = used / have
	case used > 0:
		r.ratio = math.Inf(1)
	}
	r.under = r.ratio <= 1
	return r
}

// useQueues is the "utilization" policy: least used over guaranteed first.
func useQueues(a, b *Queue) bool {
	if a.rank.ratio != b.rank.ratio {
		return a.rank.ratio < b.rank.ratio
	}
	// Equal use: the larger guarantee first, as in Hadoop, then configured order.
	if a.capacity.absolute != b.capacity.absolute {
		return a.capacity.absolute > b.capacity.absolute
	}
	return a.serial < b.serial
}

// priorityUseQueues is "priority-utilization": queues within their guarantee come before those above it; in both
// groups by priority, then by use.
func priorityUseQueues(a, b *Queue) bool {
	if a.rank.under != b.rank.under {
		return a.rank.under
	}
	if a.spec.Priority != b.spec.Priority {
		return a.spec.Priority > b.spec.Priority
	}
	return useQueues(a, b)
}
