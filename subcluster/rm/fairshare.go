// SPDX-License-Identifier: Apache-2.0

package rm

// Fair shares, FairScheduler's way: what each queue would have if the cluster
// were divided among queues by weight, none below its minimum nor above its
// maximum. The instantaneous share counts queues that have or want something;
// the steady share counts all. They are reports and limits for masters, not
// the order of service, so they may be half a second old.

// refreshShares computes the shares if they are out of date.
func (m *Machine) refreshShares() {
	if m.tree.sharesAt != 0 && m.now-m.tree.sharesAt < shareRefresh {
		return
	}
	m.tree.sharesAt = max(m.now, 1)
	root := m.tree.root
	root.share, root.steady = m.total, m.total
	m.divide(root)
}

// divide shares out what q has among its children.
func (m *Machine) divide(q *queue) {
	if len(q.children) == 0 {
		return
	}
	for _, c := range q.children {
		c.sized()
	}
	for i := 0; i < m.t.n; i++ {
		m.fill(q, i, func(c *queue) bool { return c.pendingCount > 0 || c.containers > 0 || c.appsBelow() > 0 }, q.share[i], func(c *queue, v int64) { c.share[i] = v })
		m.fill(q, i, func(*queue) bool { return true }, q.steady[i], func(c *queue, v int64) { c.steady[i] = v })
	}
	for _, c := range q.children {
		m.divide(c)
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

// fill finds the level R at which weight*R, cut to minimum and maximum, adds
// up to total, by halving.
func (m *Machine) fill(q *queue, i int, counts func(*queue) bool, total int64, set func(*queue, int64)) {
	at := func(c *queue, r float64) float64 {
		v := c.weight * r
		v = max(v, float64(c.minimum[i]))
		return min(v, float64(c.max[i]))
	}
	sum := func(r float64) float64 {
		s := 0.0
		for _, c := range q.children {
			if counts(c) {
				s += at(c, r)
			}
		}
		return s
	}
	lo, hi := 0.0, 1.0
	for k := 0; sum(hi) < float64(total) && k < 64; k++ {
		hi *= 2
	}
	for range 60 {
		if mid := (lo + hi) / 2; sum(mid) < float64(total) {
			lo = mid
		} else {
			hi = mid
		}
	}
	for _, c := range q.children {
		if counts(c) {
			set(c, int64(at(c, hi)+0.5))
		} else {
			set(c, 0)
		}
	}
}
