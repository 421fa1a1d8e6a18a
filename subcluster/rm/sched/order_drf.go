// SPDX-License-Identifier: Apache-2.0

package sched

import "math"

// drfOrder is Dominant Resource Fairness (Ghodsi et al., NSDI 2011).
var drfOrder = &ordering{
	apps: fairApps, use: useDominant, children: fairQueues, rank: drfRank, byType: true, sharesUsers: true,
}

// drfRank is Dominant Resource Fairness between queues: the largest share of any resource over the weight, with
// FairScheduler's minimum shares compared type by type.
func drfRank(q *Queue) rank {
	p := q.sized().part
	r := rank{ratio: p.sizes.Dominant(&q.used, &p.total) / q.weightNow()}
	if q.capacity.minimum.IsZero() {
		return r
	}
	floor := q.capacity.minimum
	demand := q.used
	demand.Add(&q.pending)
	floor.Min(&demand)
	r.needed = math.Inf(1)
	// The dominant resource of the use determines whether the minimum is met.
	top, best := 0, -1.0
	for i := 0; i < p.sizes.Check; i++ {
		if p.total.At(i) > 0 {
			if s := float64(q.used.At(i)) / float64(p.total.At(i)); s > best {
				top, best = i, s
			}
		}
	}
	if floor.At(top) > 0 {
		r.needed = float64(q.used.At(top)) / float64(floor.At(top))
		r.needy = q.used.At(top) < floor.At(top)
	}
	return r
}
