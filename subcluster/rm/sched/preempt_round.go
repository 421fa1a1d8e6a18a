// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// configure applies the queue specification's settings.
func (p *Preemption) configure(cfg queues.Preemption) {
	part := p.part
	for _, other := range part.others() {
		other.preempt.configure(cfg)
	}
	was := p.on
	p.on = cfg.On && p.from != nil
	part.cluster.timers.stop(&p.timer)
	if !p.on {
		p.dropClaims(func(*claim) bool { return true })
		p.short, p.last, p.memory = nil, RoundResult{}, roundMemory{}
		return
	}
	if !was {
		p.short = map[*Queue]*preempt.Shortage{}
	}
	p.cfg = cfg
	p.timer = part.cluster.timers.start(part.now+p.interval(), p.round)
}

// round runs at the deadline.
func (p *Preemption) round() {
	part := p.part
	p.timer = part.cluster.timers.start(part.now+p.interval(), p.round)
	if part.waiting == 0 && len(p.claims) == 0 {
		clear(p.short)
		p.last = RoundResult{At: part.now}
		return
	}
	r := p.newRound()
	part.policy.shortfall(r)
	r.review()
	if r.dry = p.cfg.ObserveOnly; !r.dry {
		r.yieldReservations()
	}
	r.claimAll()
	r.within()
	p.last.Chosen = 0
	for _, c := range r.Made() {
		p.last.Chosen += len(c.Victims)
	}
	if !r.dry {
		r.notify()
		r.kill()
	}
}

// review drops the claims that are no longer needed, and counts the others. In doubt it drops the youngest first.
func (r *round) review() {
	p := r.part
	r.p.dropClaims(func(c *claim) bool {
		if !c.valid() {
			return true
		}
		if len(c.victims) == 0 {
			return c.keepUntil <= p.now // freed resources stay reserved until then
		}
		if c.rule.Within() {
			return !r.stillWithin(c)
		}
		return !r.Renew(r.claim(c))
	})
}

// notify orders the notices for the victims of new claims.
func (r *round) notify() {
	for _, x := range r.Made() {
		c := r.claimOf(x)
		r.p.claims = append(r.p.claims, c)
		for _, v := range c.victims {
			r.p.order(Notice, v)
			for _, x := range c.spent {
				x.Sum.Add(&v.Size.V)
			}
		}
	}
}

// kill kills the victims of expired claims.
func (r *round) kill() {
	for _, c := range r.p.claims {
		if c.until > r.part.now {
			continue
		}
		for _, v := range c.victims {
			r.p.order(Kill, v)
		}
	}
}
