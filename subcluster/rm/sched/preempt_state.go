// SPDX-License-Identifier: Apache-2.0

package sched

import "fmt"

// appendState writes the claims and the start of each shortage, for AppendState.
func (p *Preemption) appendState(b []byte) []byte {
	for _, c := range p.claims {
		b = fmt.Appendf(b, "claim %s for %s: %d of %v on %s by %s until %d freed=%v", c.queue.path, c.app.id,
			c.count, c.size.V, c.node.id, c.rule, c.until, c.freed)
		for _, v := range c.victims {
			b = fmt.Appendf(b, " %s@%d", v.App.id, v.Created)
		}
		b = append(b, '\n')
	}
	for _, q := range p.part.tree.all {
		if h := p.short[q]; h != nil {
			b = fmt.Appendf(b, "short %s minimum=%d fair=%d\n", q.path, h.Minimum, h.Fair)
		}
	}
	return b
}

// Victims returns the number of containers under notice.
func (p *Preemption) Victims() int {
	n := 0
	for _, c := range p.claims {
		n += len(c.victims)
	}
	for _, part := range p.part.others() {
		n += part.preempt.Victims()
	}
	return n
}

// preemption checks that each victim belongs to its claim, its node and a live container. It also checks that each node
// is held for exactly its freed claims.
func (c *Audit) preemption() {
	p := &c.part.preempt
	if !p.on {
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
	for _, n := range c.part.nodes.All() {
		if n != nil && kept[n] != len(n.kept) {
			c.fail("node %s: kept for %d claims, should be %d", n.id, len(n.kept), kept[n])
		}
	}
}
