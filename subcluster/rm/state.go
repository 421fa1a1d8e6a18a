// SPDX-License-Identifier: Apache-2.0

package rm

import "fmt"

// AppendState appends, as text and in a fixed order, all state that determines the machine's future. Two machines
// with the same calls at the same times write the same bytes.
func (r Reader) AppendState(b []byte) []byte {
	m := r.m
	b = fmt.Appendf(b, "count=%+v\n", m.count)
	for _, id := range m.disowned.order {
		b = fmt.Appendf(b, "disowned %s claim=%d\n", id, m.disowned.claims[id])
	}
	b = m.sched.AppendState(b)
	if o := m.opportunistic; o != nil {
		b = o.nodes.AppendState(fmt.Appendf(b, "%+v draws=%d\n", o.counts, o.draws))
	}
	for _, n := range m.nodes.list {
		b = fmt.Appendf(b, "node %s state=%s count=%d response=%d untracked=%v forgotten=%v\n",
			n.ID(), n.state, n.count, n.responseID, n.untracked, n.forgotten)
		for _, c := range n.live {
			if c == nil {
				continue
			}
			b = fmt.Appendf(
				b,
				"  container %s owner=%s size=%v state=%s execution=%d version=%d created=%d queued=%d reason=%d notice=%v\n",
				c.id(),
				c.owner().id,
				m.sizeOf(c).V,
				c.state,
				c.execution,
				c.rare().version,
				c.created,
				c.rare().queued,
				c.reason,
				c.rare().victim != nil,
			)
		}
	}
	for _, a := range m.apps.list {
		b = fmt.Appendf(b, "app %s state=%s final=%s queue=%s\n", a.id, a.state, a.final, a.path)
		if a.hold.Claim > 0 || a.released > 0 {
			b = fmt.Appendf(b, "  held claim=%d released=%d\n", a.hold.Claim, a.released)
		}
		if a.logs != nil {
			b = fmt.Appendf(b, "  logs %s\n", a.logs.Status())
			for n := range a.logs.Nodes() {
				b = fmt.Appendf(b, "    %d %s %d %d\n", n.Node, n.Status, len(n.Messages), len(n.Failures))
			}
		}
		for _, t := range a.attempts {
			b = fmt.Appendf(
				b,
				"  attempt %d state=%s response=%d seq=%d low=%d fresh=%d done=%d live=%d growing=%d avoids=%v\n",
				t.id.Attempt,
				t.state,
				t.responseID,
				t.lastSeq,
				t.lowSeq,
				len(t.fresh),
				len(t.done),
				t.live.Len(),
				len(t.growing),
				t.avoids(),
			)
			if t.opportunistic != nil {
				b = t.opportunistic.AppendState(b)
			}
		}
		if m.apps.byID[a.id] == a {
			b = a.App.AppendState(b)
		}
	}
	return b
}
