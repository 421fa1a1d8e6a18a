// SPDX-License-Identifier: Apache-2.0

package sched

import "maps"

// Plan is what preemption would do for a queue in the next round.
type Plan struct {
	On      bool      // preemption is on; if not, this is what its settings would do
	Victims []*Victim // under notice already, then those that would be
	Under   int       // of Victims: under notice already
}

// PlanPreemption tells what the next round would take back for a queue and those
// below it, timeouts of FairScheduler counting as over. It changes nothing: a round
// only looks, until its claims are booked.
func (s *Scheduler) PlanPreemption(q *Queue) Plan {
	var out Plan
	p := &preemption{cfg: s.tree.spec.Preemption, from: s.containers, short: map[*Queue]*shortage{}}
	if s.preempt != nil {
		out.On = true
		p.claims, p.short = s.preempt.claims, maps.Clone(s.preempt.short)
		for k, h := range p.short {
			p.short[k] = new(*h)
		}
	}
	if p.from == nil {
		return out
	}
	r := s.newRound()
	r.p, r.dry = p, true
	s.policy.shortfall(r)
	for _, c := range p.claims {
		if len(c.victims) > 0 && r.takeAll(c.victims) {
			if n := r.needOf(c.queue); n != nil {
				n.rest.AddTimes(&c.size.V, -int64(c.count))
			}
		}
		r.count(c)
		if c.queue.under(q) {
			out.Victims = append(out.Victims, c.victims...)
		}
	}
	out.Under = len(out.Victims)
	if len(r.over) > 0 {
		ch := r.chooser(r.candidates())
		for i := range r.needs {
			r.claimFor(&r.needs[i], ch) // those before it in the order of service come first
		}
	}
	for _, c := range r.made {
		if !c.queue.under(q) {
			continue
		}
		for _, v := range c.victims {
			v.By += p.interval()
			out.Victims = append(out.Victims, v)
		}
	}
	return out
}

// under reports whether a queue is another or below it.
func (q *Queue) under(of *Queue) bool {
	for ; q != nil; q = q.parent {
		if q == of {
			return true
		}
	}
	return false
}

// TakenFor gives the victims under notice for an application's asks.
func (s *Scheduler) TakenFor(a *App) []*Victim {
	if s.preempt == nil {
		return nil
	}
	var out []*Victim
	for _, c := range s.preempt.claims {
		if c.app == a {
			out = append(out, c.victims...)
		}
	}
	return out
}
