// SPDX-License-Identifier: Apache-2.0

package rm

import "time"

// Fair shares, FairScheduler's way: what each queue would have if the cluster
// were divided among queues by weight, none below its minimum nor above its
// maximum. The instantaneous share counts queues that have or want something;
// the steady share counts all. They are reports and limits for masters, not the
// order of service.

// shareSet is one computation of the shares of all queues.
type shareSet uint8

const (
	// inDecisions bounds the masters of a queue. It may be half a second old, since
	// applications come and go faster than a large tree can be shared out.
	inDecisions shareSet = iota
	// inViews is what views report: of this moment, and apart, so that who looks,
	// and when, changes no decision.
	inViews
	shareSets
)

// fairShares are a queue's, of one computation.
type fairShares struct{ share, steady vec }

// shareRefresh is how old shares that decide may be before they are computed
// anew: the default of yarn.scheduler.fair.update-interval-ms.
const shareRefresh = int64(500 * time.Millisecond)

// refreshShares computes shares if they are out of date.
func (m *Machine) refreshShares(s shareSet) {
	t := &m.tree
	switch now := [2]uint64{uint64(t.version), t.actives}; {
	case s == inDecisions && (t.sharesAt == 0 || m.now-t.sharesAt >= shareRefresh):
		t.sharesAt = max(m.now, 1)
		m.shareOut(s)
	case s == inViews && t.toldAt != now: // a tree's version is never 0
		t.toldAt = now
		m.shareOut(s)
	}
}

func (m *Machine) shareOut(s shareSet) {
	root := m.tree.root
	root.shares[s] = fairShares{m.total, m.total}
	m.divide(root, s)
}

// divide shares out what q has among its children.
func (m *Machine) divide(q *queue, s shareSet) {
	if len(q.children) == 0 {
		return
	}
	for _, c := range q.children {
		c.sized()
	}
	active := func(c *queue) bool { return c.pendingCount > 0 || c.containers > 0 || c.appsBelow() > 0 }
	for i := 0; i < m.t.n; i++ {
		m.fill(q, i, active, q.shares[s].share.at(i), func(c *queue, v int64) { c.shares[s].share.set(i, v) })
		m.fill(
			q,
			i,
			func(*queue) bool { return true },
			q.shares[s].steady.at(i),
			func(c *queue, v int64) { c.shares[s].steady.set(i, v) },
		)
	}
	for _, c := range q.children {
		m.divide(c, s)
	}
}

func (q *queue) appsBelow() int {
	if q.leaf != nil {
		return q.leaf.apps
	}
	n := 0
	for _, c := range q.children {
		n += c.appsBelow()
	}
	return n
}

// fill finds the least level R at which weight*R, cut to minimum and maximum and
// to whole units, adds up to total, by as many halvings as Hadoop's
// ComputeFairShares makes: the same shares come out, to the last unit.
func (m *Machine) fill(q *queue, i int, counts func(*queue) bool, total int64, set func(*queue, int64)) {
	at := func(c *queue, r float64) int64 {
		return int64(min(max(c.weight*r, float64(c.minimum.at(i))), float64(c.max.at(i))))
	}
	sum := func(r float64) int64 {
		s := int64(0)
		for _, c := range q.children {
			if counts(c) {
				s += at(c, r)
			}
		}
		return s
	}
	lo, hi := 0.0, 1.0
	for k := 0; sum(hi) < total && k < 64; k++ {
		hi *= 2
	}
	for range 25 {
		if mid := (lo + hi) / 2; sum(mid) < total {
			lo = mid
		} else {
			hi = mid
		}
	}
	for _, c := range q.children {
		if counts(c) {
			set(c, at(c, hi))
		} else {
			set(c, 0)
		}
	}
}
