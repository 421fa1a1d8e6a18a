// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/places"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// valid reports whether the claim still serves its purpose.
func (c *claim) valid() bool {
	a := c.app
	if c.node.use != Open || c.queue.lifetime.removed || !a.inQueue || a.queue != c.queue {
		return false
	}
	if len(c.victims) == 0 {
		return true // the room is free: the queue may use it even without the ask
	}
	return a.stillAsks(c.ask) && c.ask.size == c.size &&
		(c.rule == preempt.AppPriority || a.user.mayHave())
}

// Lost reports that a victim's container has ended, by a kill or by itself. The owner calls it right after Release. Its
// resources are reserved for the claim's application.
func (p *Preemption) Lost(v *Victim) {
	v.Owner = nil
	c := v.claim
	p = &c.queue.part.preempt
	for i, x := range c.victims {
		if x == v {
			c.victims = append(c.victims[:i], c.victims[i+1:]...)
			break
		}
	}
	if p.on && c.node.use == Open {
		p.keep(c)
	}
}

// keep reserves free resources on a claim's node for the claim, up to its size.
func (p *Preemption) keep(c *claim) {
	part := p.part
	c.keepUntil = part.now + p.interval()
	if !c.freed {
		c.freed = true
		c.node.kept = append(c.node.kept, c)
		c.node.held = true
		part.nodes.reindex(c.node)
	}
	part.nodes.roomOn(c.node)
}

// serveKept grants the reserved resources of a node to their claims.
func (p *Preemption) serveKept(n *Node) {
	part := p.part
	for i := 0; i < len(n.kept); i++ {
		c := n.kept[i]
		a, w, relaxed := c.app, c.ask, false
		for c.count > 0 && a.stillAsks(w) && part.sizes.Fits(&w.size.V, &n.free) {
			if !w.strict && w.named.Any() {
				part.delays.end(w)
				w.level, relaxed = places.AtAny, true // this room is reserved for the ask, near or not
			}
			if !part.try(w, n) {
				break
			}
			c.count--
		}
		if relaxed && a.stillAsks(w) {
			part.delays.end(w) // on other nodes its locality delay starts again
			part.retries.add(a.queue)
		}
		part.enroll(a)
		if c.count > 0 && len(c.victims) == 0 && !a.stillAsks(w) && !c.queue.lifetime.removed {
			part.walk.order()
			for c.count > 0 && c.queue.hasReady() && part.walk.pick(c.queue, n) {
				c.count--
			}
			c.count = 0
		}
		if c.count > 0 || len(c.victims) > 0 {
			continue
		}
		p.unkeep(c)
		i--
	}
}

// unkeep releases a claim's reserved resources to all.
func (p *Preemption) unkeep(c *claim) {
	if !c.freed {
		return
	}
	c.freed = false
	n := c.node
	for i, x := range n.kept {
		if x == c {
			n.kept = append(n.kept[:i], n.kept[i+1:]...)
			break
		}
	}
	n.held = n.hold != nil || len(n.kept) > 0
	p.part.nodes.reindex(n)
	p.part.nodes.roomOn(n)
}

// dropClaims drops the claims for which gone returns true. It calls gone once for each claim, oldest first.
func (p *Preemption) dropClaims(gone func(*claim) bool) {
	stay := p.claims[:0]
	for _, c := range p.claims {
		served := len(c.victims) == 0 && !c.freed
		if !served && !gone(c) {
			stay = append(stay, c)
			continue
		}
		for _, v := range c.victims {
			p.order(Pardon, v)
			for _, x := range c.spent {
				x.Sum.Sub(&v.Size.V)
			}
		}
		p.unkeep(c)
	}
	clear(p.claims[len(stay):])
	p.claims = stay
}
