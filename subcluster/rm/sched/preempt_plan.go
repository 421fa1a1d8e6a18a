// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"maps"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// Plan is the preemption for a queue in the next round.
type Plan struct {
	On      bool      // if not, the plan shows the effect of its settings
	Victims []*Victim // those already under notice first, then the planned ones
	Under   int       // number of Victims already under notice
}

// Plan returns the next round's preemption for a queue and its descendants, in all partitions, with
// FairScheduler's timeouts counted as expired. It changes nothing: a round only reads, until its claims are booked.
func (p *Preemption) Plan(q *Queue) Plan {
	out := p.plan(q)
	for _, part := range p.part.others() {
		if c := part.tree.at(q.path); c != nil {
			of := part.preempt.plan(c)
			out.Victims = slices.Insert(out.Victims, out.Under, of.Victims[:of.Under]...)
			out.Under += of.Under
			out.Victims = append(out.Victims, of.Victims[of.Under:]...)
		}
	}
	return out
}

// plan is Plan for one partition.
func (p *Preemption) plan(q *Queue) Plan {
	var out Plan
	part, now := p.part, p
	p = &Preemption{
		part: part, cfg: part.tree.spec.Preemption, from: now.from, short: map[*Queue]*preempt.Shortage{},
	}
	if now.on {
		out.On = true
		p.claims, p.short = now.claims, maps.Clone(now.short)
		for k, h := range p.short {
			p.short[k] = new(*h)
		}
	}
	if p.from == nil {
		return out
	}
	r := p.newRound()
	r.dry = true
	part.policy.shortfall(r)
	for _, c := range p.claims {
		r.Assume(r.claim(c))
		if q.isAbove(c.queue) {
			out.Victims = append(out.Victims, c.victims...)
		}
	}
	out.Under = len(out.Victims)
	r.claimAll() // for all queues: those earlier in the order of service come first
	for _, x := range r.Made() {
		if !q.isAbove(x.Queue.Owner.(*Queue)) {
			continue
		}
		for _, v := range r.claimOf(x).victims {
			v.By += p.interval()
			out.Victims = append(out.Victims, v)
		}
	}
	return out
}

// NextRound returns the time of the next round of preemption for a queue that waits below its guarantee, and the amount
// it lacks. It returns false if the round will do nothing for it. It also returns false with FairScheduler, where
// timeouts decide.
func (p *Preemption) NextRound(q *Queue) (at int64, lacks creel.Resource, has bool) {
	part := p.part
	if !p.on || p.cfg.ObserveOnly || !part.policy.within {
		return 0, lacks, false
	}
	v := part.sizes.Above(&q.sized().capacity.entitled, &q.used)
	v.Min(&q.pending)
	for i := part.sizes.Check; i < part.sizes.N; i++ {
		v.Set(i, 0)
	}
	return max(p.timer.at, part.now), part.sizes.Resource(&v), !v.IsZero()
}

// Over returns the excess of the losing queue: over its guarantee, or with FairScheduler over its fair share at the
// last round.
func (v *Victim) Over() creel.Resource {
	q := v.App.queue
	own := &q.capacity.entitled
	if !q.part.policy.within {
		own = &q.shares[inDecisions].share
	}
	over := q.part.sizes.Above(&q.used, own)
	return q.part.sizes.Resource(&over)
}

// Within reports whether the victim is taken between users and applications of one queue.
func (v *Victim) Within() bool { return v.Rule.Within() }

// TakenFor returns the victims under notice for an application's asks.
func (p *Preemption) TakenFor(a *App) []*Victim {
	var out []*Victim
	for _, x := range append([]*App{a}, a.parts...) {
		if x.queue == nil {
			continue
		}
		for _, c := range x.queue.part.preempt.claims {
			if c.app == x {
				out = append(out, c.victims...)
			}
		}
	}
	return out
}
