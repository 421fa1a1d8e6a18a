// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// HDRF is hierarchical DRF (Bhattacharya et al., SoCC 2013). It ranks all waiting children of a parent again at each
// decision; no other order does. There are two reasons against a heap. First, a parent's share is that of its least
// child, so one child's change rescales all its siblings. A running sum would handle that, but floating point sums
// drift from recomputed ones, and equal shares, which decide by configured order, would no longer be equal. Second, a
// child is blocked depending on the free resources of the whole cluster. At a full cluster the end of one container
// unblocks every queue that wants one of that size, and the next grant blocks them all again. Any incremental
// structure would change in as many places as are visited here.
func init() {
	orderings[queues.HDRF] = &ordering{
		apps:     fairApps,
		use:      useDominant,
		children: hdrfQueues,
		rank:     hdrfRank,
		relative: true,
		byType:   true,
	}
}

// hdrfRank is hierarchical DRF: the share of a parent is that of the sum of its children, each first rescaled to the
// least dominant share among those that can still be served. A child without demand, at a limit, or whose need no
// longer fits the cluster is left out, so that it does not hold its siblings back (Bhattacharya et al., SoCC 2013,
// section 5).
func hdrfRank(q *Queue) rank {
	v := q.rescaled()
	share := 0.0
	for i := 0; i < q.s.sizes.Check; i++ {
		if q.s.total.At(i) > 0 {
			share = max(share, v[i]/float64(q.s.total.At(i)))
		}
	}
	return rank{ratio: share / q.weightNow()}
}

func (q *Queue) rescaled() (out [amounts.MaxTypes]float64) {
	if q.leaf != nil {
		for i := 0; i < q.s.sizes.N; i++ {
			out[i] = float64(q.used.At(i))
		}
		return out
	}
	s := q.s
	least := math.Inf(1)
	var parts [][amounts.MaxTypes]float64
	var shares []float64
	for _, c := range q.ready.Items {
		if c.blocked() {
			continue
		}
		v := c.rescaled()
		share := 0.0
		for i := 0; i < s.sizes.Check; i++ {
			if s.total.At(i) > 0 {
				share = max(share, v[i]/float64(s.total.At(i)))
			}
		}
		share /= c.weightNow()
		parts, shares = append(parts, v), append(shares, share)
		least = min(least, share)
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

// blocked reports whether nothing below the queue can be served: of some type less is free in the cluster than its
// least need.
func (q *Queue) blocked() bool {
	left := q.s.total
	left.Sub(&q.s.tree.root.used)
	for i := 0; i < q.s.sizes.Check; i++ {
		if q.least.At(i) < amounts.Unbounded && q.least.At(i) > left.At(i) {
			return true
		}
	}
	return false
}

func hdrfQueues(a, b *Queue) bool {
	if a.rank.ratio != b.rank.ratio {
		return a.rank.ratio < b.rank.ratio
	}
	return a.serial < b.serial
}
