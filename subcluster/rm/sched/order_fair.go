// SPDX-License-Identifier: Apache-2.0

package sched

// fairShareOrder serves by memory used over weight, like FairScheduler's "fair" policy.
var fairShareOrder = &ordering{
	apps:     fairApps,
	use:      func(a *App) float64 { return float64(a.used.Memory) },
	children: fairQueues,
	rank:     fairRank,

	sharesUsers: true,
}

// fairApps orders applications by smallest share over weight, then by submission.
func fairApps(a, b *App) bool {
	if a.ratio != b.ratio {
		return a.ratio < b.ratio
	}
	return a.seq < b.seq
}

// fairRank compares memory with the minimum share and the weight.
func fairRank(q *Queue) rank {
	q.sized()
	r := rank{ratio: float64(q.used.Memory) / q.weightNow()}
	floor := min(q.capacity.minimum.Memory, q.used.Memory+q.pending.Memory)
	r.needy = q.used.Memory < floor
	r.needed = float64(q.used.Memory) / float64(max(floor, 1))
	return r
}

// fairQueues serves queues below their minimum share first, those furthest below it first; then by use over weight.
func fairQueues(a, b *Queue) bool {
	if a.rank.needy != b.rank.needy {
		return a.rank.needy
	}
	if a.rank.needy && a.rank.needed != b.rank.needed {
		return a.rank.needed < b.rank.needed
	}
	if !a.rank.needy && a.rank.ratio != b.rank.ratio {
		return a.rank.ratio < b.rank.ratio
	}
	return a.serial < b.serial
}
