// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// AppendState appends, as text and in a fixed order, all state of nodes and queues that determines the scheduler's
// future. Two schedulers with the same calls at the same times write the same bytes.
func (s *Scheduler) AppendState(b []byte) []byte {
	b = s.main.appendState(b)
	for _, p := range s.labelled {
		b = fmt.Appendf(b, "partition %s exclusive=%v\n", p.label, p.exclusive)
		b = p.appendState(b)
	}
	return b
}

func (p *partition) appendState(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"cluster total=%v active=%d reserved=%d waiting=%d opps=%d growing=%d\n",
		p.total,
		p.active,
		p.reservations.count,
		p.waiting,
		p.delays.count,
		p.increases.waiting,
	)
	for _, n := range p.nodes.All() {
		if n == nil {
			continue
		}
		b = fmt.Appendf(b, "room %s rack=%s use=%d total=%v free=%v", n.id, n.rack.Name(), n.use, n.total, n.free)
		if mask, cell, in := p.nodes.Cell(n.serial); in {
			b = fmt.Appendf(b, " cell=%d/%d", mask, cell)
		}
		if n.hold != nil {
			b = fmt.Appendf(b, " held=%s:%d", n.hold.ask.app.id, n.hold.ask.priority)
		}
		for _, k := range p.tags.On(n) {
			b = fmt.Appendf(b, " %s=%d", k.Tag, k.Count)
		}
		for _, c := range n.kept {
			b = fmt.Appendf(b, " kept=%s:%d", c.app.id, c.count)
		}
		b = append(b, '\n')
	}
	b = p.preempt.appendState(b)
	for _, q := range p.tree.all {
		q.sized()
		b = fmt.Appendf(
			b,
			"queue %s state=%s guaranteed=%v max=%v used=%v held=%v pending=%v/%d containers=%d running=%d least=%v parked=%v limited=%v",
			q.path,
			q.lifetime.state,
			q.capacity.guaranteed,
			q.bounds.max,
			q.used,
			q.reserved.sum,
			q.pending,
			q.pendingCount,
			q.containers,
			q.apps.running,
			q.least,
			q.stopped.parked,
			q.stopped.limited,
		)
		b = append(b, " order="...)
		for _, c := range q.ready.Items {
			b = append(append(b, c.name...), ',')
		}
		if w := q.stopped.blocker; w != nil {
			b = fmt.Appendf(b, " blocked=%s:%d", w.app.id, w.priority)
		}
		b = append(b, '\n')
		if q.leaf == nil {
			continue
		}
		if t := q.leaf.runtimes; t != nil {
			b = fmt.Appendf(b, "  ran %v\n", t.Ended())
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
			for _, a := range u.apps.Items {
				b = fmt.Appendf(b, "%d,", a.id.ID)
			}
			b = append(b, '\n')
		}
	}
	return b
}

// AppendState appends the same for one application.
func (a *App) AppendState(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"  priority=%d open=%v activated=%v used=%v held=%v pending=%v/%d containers=%d seconds=%v\n",
		a.priority,
		a.open,
		a.activated,
		a.used,
		a.held,
		a.pending,
		a.pendingCount,
		a.containers,
		a.seconds,
	)
	for _, w := range a.asks {
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
			b = fmt.Appendf(b, " size=%v", w.size.V)
		}
		if w.want != nil {
			b = fmt.Appendf(b, " tags=%s constraint=%v", w.want.Key(), w.want.Constraint)
		}
		for _, list := range [][]*places.Place[Node]{w.named.Hosts, w.named.Racks} {
			for _, p := range list {
				b = fmt.Appendf(b, " %s=%d", p.Name, p.Count)
			}
		}
		b = append(b, '\n')
	}
	for _, x := range a.parts {
		b = fmt.Appendf(b, "  in partition %s\n", x.queue.part.label)
		b = x.AppendState(b)
	}
	return b
}
