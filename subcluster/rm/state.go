// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"maps"
	"slices"
)

// AppendState writes everything that decides what the machine will do, as
// text, in one order. Two machines given the same events at the same times
// write the same bytes.
func (m *Machine) AppendState(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"cluster total=%v active=%d reserved=%d waiting=%d opps=%d count=%+v\n",
		m.total,
		m.active,
		m.reserved,
		m.waiting,
		m.opps,
		m.count,
	)
	for _, id := range m.disowned.order {
		b = fmt.Appendf(b, "disowned %s claim=%d\n", id, m.disowned.claims[id])
	}
	for _, n := range m.nodeList {
		b = fmt.Appendf(
			b,
			"node %s rack=%s state=%s total=%v used=%v free=%v count=%d response=%d",
			n.id,
			n.rack.name,
			n.state,
			n.total,
			n.used(),
			n.free,
			n.count,
			n.responseID,
		)
		if mask, cell, in := m.inAll[n.serial].where(); in {
			b = fmt.Appendf(b, " cell=%d/%d", mask, cell)
		}
		if n.hold != nil {
			b = fmt.Appendf(b, " held=%s:%d", n.hold.want.attempt.id, n.hold.want.priority)
		}
		b = append(b, '\n')
		for _, c := range n.live {
			if c == nil {
				continue
			}
			b = fmt.Appendf(
				b,
				"  container %s owner=%s size=%v state=%s version=%d created=%d reason=%d\n",
				c.id(),
				c.owner().id,
				m.sizeOf(c).v,
				c.state,
				c.rare().version,
				c.created,
				c.reason,
			)
		}
	}
	for _, q := range m.tree.all {
		q.sized()
		b = fmt.Appendf(
			b,
			"queue %s state=%s guaranteed=%v max=%v used=%v held=%v pending=%v/%d containers=%d running=%d least=%v parked=%v limited=%v",
			q.path,
			q.state,
			q.guaranteed,
			q.max,
			q.used,
			q.held,
			q.pending,
			q.pendingCount,
			q.containers,
			q.running,
			q.least,
			q.parked,
			q.limited,
		)
		b = append(b, " order="...)
		for _, c := range q.ready.items {
			b = append(append(b, c.name...), ',')
		}
		if w := q.blocker; w != nil {
			b = fmt.Appendf(b, " blocked=%s:%d", w.attempt.id, w.priority)
		}
		b = append(b, '\n')
		if q.leaf == nil {
			continue
		}
		for _, u := range q.leaf.userList {
			b = fmt.Appendf(
				b,
				"  user %s used=%v am=%v waiting=%d running=%d total=%d limited=%v order=",
				u.name,
				u.used,
				u.amUsed,
				u.waitingApps,
				u.running,
				u.total,
				u.limited,
			)
			for _, a := range u.apps.items {
				b = fmt.Appendf(b, "%d,", a.id.ID)
			}
			b = append(b, '\n')
		}
	}
	for _, a := range m.appList {
		b = fmt.Appendf(
			b,
			"app %s state=%s final=%s queue=%s priority=%d used=%v held=%v pending=%v/%d containers=%d seconds=%v\n",
			a.id,
			a.state,
			a.final,
			a.path,
			a.priority,
			a.used,
			a.held,
			a.pending,
			a.pendingCount,
			a.containers,
			a.seconds,
		)
		for _, t := range a.attempts {
			b = fmt.Appendf(
				b,
				"  attempt %d state=%s response=%d seq=%d fresh=%d done=%d live=%d blacklist=%v\n",
				t.id.Attempt,
				t.state,
				t.responseID,
				t.lastSeq,
				len(t.fresh),
				len(t.done),
				t.live.n,
				keys(t),
			)
			for _, w := range t.wants {
				b = fmt.Appendf(
					b,
					"    ask priority=%d id=%d %s count=%d strict=%v level=%d since=%d",
					w.priority,
					w.alloc,
					w.execution,
					w.count,
					w.strict,
					w.level,
					w.since,
				)
				if w.size != nil {
					b = fmt.Appendf(b, " size=%v", w.size.v)
				}
				for _, list := range [][]*place{w.hosts, w.racks} {
					for _, p := range list {
						b = fmt.Appendf(b, " %s=%d", p.name, p.count)
					}
				}
				b = append(b, '\n')
			}
		}
	}
	return b
}

// keys gives the names on an attempt's blacklist, sorted.
func keys(t *attempt) []string { return slices.Sorted(maps.Keys(t.black.names)) }
