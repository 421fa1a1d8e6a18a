// SPDX-License-Identifier: Apache-2.0

package rm

import "math"

// drfRank is Dominant Resource Fairness between queues: the largest share of
// any resource over the weight, with FairScheduler's minimum shares taken into
// account type by type.
func drfRank(q *queue) rank {
	m := q.sized().m
	r := rank{ratio: m.t.dominant(&q.used, &m.total) / q.weightNow()}
	if q.minimum.isZero() {
		return r
	}
	floor := q.minimum
	demand := q.used
	demand.add(&q.pending)
	floor.min(&demand)
	r.needed = math.Inf(1)
	// The dominant resource of what is used decides whether the minimum is met.
	top, best := 0, -1.0
	for i := 0; i < m.t.check; i++ {
		if m.total.at(i) > 0 {
			if s := float64(q.used.at(i)) / float64(m.total.at(i)); s > best {
				top, best = i, s
			}
		}
	}
	if floor.at(top) > 0 {
		r.needed = float64(q.used.at(top)) / float64(floor.at(top))
		r.needy = q.used.at(top) < floor.at(top)
	}
	return r
}

// hdrfRank is hierarchical DRF: the share of a parent is that of what its
// children have, each first rescaled to the least dominant share among those
// that can still be served. A child that wants nothing, that a limit stops or
// whose need no longer fits the cluster is left out, so that it does not hold
// its siblings back (Bhattacharya et al., SoCC 2013, section 5).
func hdrfRank(q *queue) rank {
	v := q.rescaled()
	share := 0.0
	for i := 0; i < q.m.t.check; i++ {
		if q.m.total.at(i) > 0 {
			share = max(share, v[i]/float64(q.m.total.at(i)))
		}
	}
	return rank{ratio: share / q.weightNow()}
}

func (q *queue) rescaled() (out [MaxTypes]float64) {
	if q.leaf != nil {
		for i := 0; i < q.m.t.n; i++ {
			out[i] = float64(q.used.at(i))
		}
		return out
	}
	m := q.m
	least := math.Inf(1)
	var parts [][MaxTypes]float64
	var shares []float64
	for _, c := range q.ready.items {
		if c.blocked() {
			continue
		}
		v := c.rescaled()
		s := 0.0
		for i := 0; i < m.t.check; i++ {
			if m.total.at(i) > 0 {
				s = max(s, v[i]/float64(m.total.at(i)))
			}
		}
		s /= c.weightNow()
		parts, shares = append(parts, v), append(shares, s)
		least = min(least, s)
	}
	for k, v := range parts {
		if shares[k] == 0 {
			continue
		}
		for i := range v {
			out[i] += v[i] * least / shares[k]
		}
	}
	return out
}

// blocked reports whether nothing below the queue can be served: what it needs
// least of some type is not left in the cluster.
func (q *queue) blocked() bool {
	left := q.m.total
	left.sub(&q.m.tree.root.used)
	for i := 0; i < q.m.t.check; i++ {
		if q.least.at(i) < unbounded && q.least.at(i) > left.at(i) {
			return true
		}
	}
	return false
}

// rankChildren ranks those that wait below a parent anew, which costs each
// decision as many steps as queues wait there: the only order that does. Two
// things stand against a heap. A parent's share is that of its least child, so
// one child's change rescales all its siblings; a sum kept from change to change
// would do for that, but floating point sums drift from those made anew, and
// equal shares, which decide by configured order, would no longer be equal. And
// who is blocked depends on what is left in the whole cluster: at a full
// cluster the end of one container unblocks every queue that wants one of that
// size, and the next grant blocks them all again, so that any structure kept
// would change in as many places as are looked at here.
func (q *queue) rankChildren() {
	for _, c := range q.ready.items {
		c.rank = hdrfRank(c)
	}
	q.ready.rebuild()
}

func hdrfQueues(a, b *queue) bool {
	if a.rank.ratio != b.rank.ratio {
		return a.rank.ratio < b.rank.ratio
	}
	return a.serial < b.serial
}
