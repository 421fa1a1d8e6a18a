// SPDX-License-Identifier: Apache-2.0

package sched

import "fmt"

// appendPreemption writes the claims and the start of each shortage, for AppendState.
func (s *Scheduler) appendPreemption(b []byte) []byte {
	if s.preempt == nil {
		return b
	}
	for _, c := range s.preempt.claims {
		b = fmt.Appendf(b, "claim %s for %s: %d of %v on %s by %s until %d freed=%v", c.queue.path, c.app.id,
			c.count, c.size.V, c.node.id, c.rule, c.until, c.freed)
		for _, v := range c.victims {
			b = fmt.Appendf(b, " %s@%d", v.App.id, v.Created)
		}
		b = append(b, '\n')
	}
	for _, q := range s.tree.all {
		if h := s.preempt.short[q]; h != nil {
			b = fmt.Appendf(b, "short %s minimum=%d fair=%d\n", q.path, h.minimum, h.fair)
		}
	}
	return b
}

// Victims returns the number of containers under notice.
func (s *Scheduler) Victims() int {
	n := 0
	if s.preempt != nil {
		for _, c := range s.preempt.claims {
			n += len(c.victims)
		}
	}
	for _, p := range s.parts {
		n += p.Victims()
	}
	return n
}

// preemption checks that each victim belongs to its claim, its node and a live container. It also checks that each node
// is held for exactly its freed claims.
func (c *Audit) preemption() {
	p := c.s.preempt
	if p == nil {
		return
	}
	kept := map[*Node]int{}
	for _, k := range p.claims {
		if k.freed {
			kept[k.node]++
		}
		for _, v := range k.victims {
			if v.claim != k || v.Node != k.node || v.Owner == nil {
				c.fail("claim of %s on %s: broken victim of %s", k.app.id, k.node.id, v.App.id)
			}
		}
	}
	for _, n := range c.s.nodes {
		if n != nil && kept[n] != len(n.kept) {
			c.fail("node %s: kept for %d claims, should be %d", n.id, len(n.kept), kept[n])
		}
	}
}
