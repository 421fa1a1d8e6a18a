// SPDX-License-Identifier: Apache-2.0

package rm

// fairApps orders applications by least share over weight, then by submission.
func fairApps(a, b *app) bool {
	if a.ratio != b.ratio {
		return a.ratio < b.ratio
	}
	return a.seq < b.seq
}

// fairRank is FairScheduler's "fair" policy: memory against minimum share and
// weight.
func fairRank(q *queue) rank {
	q.sized()
	r := rank{ratio: float64(q.used.mem) / q.weightNow()}
	floor := min(q.minimum.mem, q.used.mem+q.pending.mem)
	r.needy = q.used.mem < floor
	r.needed = float64(q.used.mem) / float64(max(floor, 1))
	return r
}

// fairQueues serves queues below their minimum share first, by how far they
// are below; then by use over weight.
func fairQueues(a, b *queue) bool {
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

// weightNow avoids division by a weight of zero: such a queue is served last.
func (q *queue) weightNow() float64 {
	if q.weight <= 0 {
		return 1e-9
	}
	return q.weight
}
