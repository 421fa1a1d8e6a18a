// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/shares"
)

// These are fair shares as in FairScheduler. They are the share of each queue if the cluster were divided among
// queues by weight, within their minimum and maximum. The instantaneous share counts queues with use or demand; the
// steady share counts all. They serve reports and limits for AMs, not the order of service.

// shareRefresh is the maximum age of the shares used in decisions: the default of
// yarn.scheduler.fair.update-interval-ms.
const shareRefresh = int64(500 * time.Millisecond)

// refreshShares computes shares if they are out of date.
func (t *Tree) refreshShares(set shareSet) {
	now := t.part.now
	switch basis := [2]uint64{uint64(t.version), t.actives}; {
	case set == inDecisions && (t.sharesAt == 0 || now-t.sharesAt >= shareRefresh):
		t.sharesAt = max(now, 1)
		t.shareOut(set)
	case set == inViews && t.toldAt != basis: // a tree's version is never 0
		t.toldAt = basis
		t.shareOut(set)
	}
}

func (t *Tree) shareOut(set shareSet) {
	t.root.shares[set] = fairShares{t.part.total, t.part.total}
	t.root.divide(set)
}

// divide divides q's share among its children.
func (q *Queue) divide(set shareSet) {
	if len(q.children) == 0 {
		return
	}
	for _, c := range q.children {
		c.sized()
	}
	active := (*Queue).active
	always := func(*Queue) bool { return true }
	for i := 0; i < q.part.sizes.N; i++ {
		of := &q.shares[set]
		q.fill(i, active, of.share.At(i), func(c *Queue, v int64) { c.shares[set].share.Set(i, v) })
		q.fill(i, always, of.steady.At(i), func(c *Queue, v int64) { c.shares[set].steady.Set(i, v) })
	}
	for _, c := range q.children {
		c.divide(set)
	}
}

// active reports whether the queue has containers or asks, or an application that no limit on concurrent applications
// stops.
func (q *Queue) active() bool {
	if q.pendingCount > 0 || q.containers > 0 || q.apps.running > 0 {
		return true
	}
	if l := q.leaf; l != nil {
		return slices.ContainsFunc(l.pending.Items, func(u *user) bool {
			limit, _ := q.part.cluster.line.atOnce(u.pending.Top())
			return limit == explain.LimitNone
		})
	}
	return slices.ContainsFunc(q.children, (*Queue).active)
}

// fill divides total of one resource type among the children that count, and sets that of the others to 0.
func (q *Queue) fill(i int, counts func(*Queue) bool, total int64, set func(*Queue, int64)) {
	var list []shares.Claim
	for _, c := range q.children {
		if counts(c) {
			list = append(list, shares.Claim{
				Weight: c.settings.weight, Least: c.capacity.minimum.At(i), Most: c.bounds.max.At(i),
			})
		}
	}
	level := shares.Level(total, list)
	for _, c := range q.children {
		if counts(c) {
			set(c, list[0].At(level))
			list = list[1:]
		} else {
			set(c, 0)
		}
	}
}
