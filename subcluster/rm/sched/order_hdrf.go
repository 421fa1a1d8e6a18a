// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// hdrfOrder is hierarchical DRF (Bhattacharya et al., SoCC 2013). It is the only order that ranks all waiting
// children of a parent again at each decision. A heap is unsuitable for two reasons. First, a parent's share depends
// on its least child, so one child's change rescales all its siblings. A running sum would handle that, but sums of
// floating-point numbers drift from recomputed ones. Equal shares, which are served in configured order, would no
// longer be equal. Second, whether a child is blocked depends on the free resources of the whole cluster. In a full
// cluster, the end of one container unblocks every queue that wants one of that size, and the next grant blocks them
// all again. Any incremental structure would change as many entries as are visited here.
var hdrfOrder = &ordering{
	apps:     fairApps,
	use:      useDominant,
	children: hdrfQueues,
	rank:     hdrfRank,
	relative: true,
	byType:   true,
}

// hdrfRank is hierarchical DRF. A parent's share is that of the sum of its children, each first rescaled to the
// smallest dominant share among the children that can still be served. A child is left out if it has no demand, is at
// a limit, or needs more than the cluster has left. So it does not delay its siblings (Bhattacharya et al., SoCC
// 2013, section 5).
func hdrfRank(q *Queue) rank {
	v := q.rescaled()
	share := 0.0
	for i := 0; i < q.part.sizes.Check; i++ {
		if q.part.total.At(i) > 0 {
			share = max(share, v[i]/float64(q.part.total.At(i)))
		}
	}
	return rank{ratio: share / q.weightNow()}
}

func (q *Queue) rescaled() (out [amounts.MaxTypes]float64) {
	if q.leaf != nil {
		for i := 0; i < q.part.sizes.N; i++ {
			out[i] = float64(q.used.At(i))
		}
		return out
	}
	p := q.part
	least := math.Inf(1)
	var parts [][amounts.MaxTypes]float64
	var shares []float64
	for _, c := range q.ready.Items {
		if c.blocked() {
			continue
		}
		v := c.rescaled()
		share := 0.0
		for i := 0; i < p.sizes.Check; i++ {
			if p.total.At(i) > 0 {
				share = max(share, v[i]/float64(p.total.At(i)))
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

// blocked reports whether nothing below the queue can be served: the cluster has less of some type left than the
// queue's smallest need.
func (q *Queue) blocked() bool {
	left := q.part.total
	left.Sub(&q.part.tree.root.used)
	for i := 0; i < q.part.sizes.Check; i++ {
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
