// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// claim is an amount on one node that is taken back for one ask. Once free it is kept: for the ask's application
// first, then for its queue, until the round after the next. The losing application cannot get it back in the
// meantime.
type claim struct {
	queue     *Queue
	app       *App
	ask       *Ask
	size      *amounts.Size
	node      *Node
	count     int32     // containers of the ask
	victims   []*Victim // victims still running
	rule      Rule
	until     int64       // when they are killed
	freed     bool        // the first has ended: the node is held
	keepUntil int64       // ns; of one without victims left
	spent     []*spending // budgets that its victims count against
}

// valid reports whether the claim still serves its purpose.
func (c *claim) valid(s *Scheduler) bool {
	a := c.app
	if c.node.use != Open || c.queue.removed || !a.inQueue || a.queue != c.queue {
		return false
	}
	if len(c.victims) == 0 {
		return true // the room is there: it is for the queue, if not for the ask
	}
	return a.stillAsks(c.ask) && c.ask.size == c.size &&
		(c.rule == RuleAppPriority || s.userMayHave(a.user, nil))
}

// Lost reports that the container of a victim has ended, killed or by itself; it is due right after Release. Its
// resources are kept for the claim's application.
func (s *Scheduler) Lost(v *Victim) {
	v.Owner = nil
	c := v.claim
	s = c.queue.s
	for i, x := range c.victims {
		if x == v {
			c.victims = append(c.victims[:i], c.victims[i+1:]...)
			break
		}
	}
	if s.preempt == nil || c.node.use != Open {
		return
	}
	s.keep(c)
}

// keep holds free resources on a claim's node for it, up to its size.
func (s *Scheduler) keep(c *claim) {
	c.keepUntil = s.now + s.preempt.interval()
	if !c.freed {
		c.freed = true
		c.node.kept = append(c.node.kept, c)
		c.node.held = true
		s.reindex(c.node)
	}
	s.roomOn(c.node)
}

// serveKept grants the resources kept on a node to their claims.
func (s *Scheduler) serveKept(n *Node) {
	for i := 0; i < len(n.kept); i++ {
		c := n.kept[i]
		a, w, relaxed := c.app, c.ask, false
		for c.count > 0 && a.stillAsks(w) && s.sizes.Fits(&w.size.V, &n.free) {
			if !w.strict && w.placed() {
				s.endDelay(w)
				w.level, relaxed = atAny, true // this room is for it, near or not
			}
			if !s.try(w, n) {
				break
			}
			c.count--
		}
		if relaxed && a.stillAsks(w) {
			s.endDelay(w) // elsewhere it waits for a place of its own, from now on
			s.retry(a.queue)
		}
		s.enroll(a)
		if c.count > 0 && len(c.victims) == 0 && !a.stillAsks(w) && !c.queue.removed {
			s.order()
			for c.count > 0 && c.queue.hasReady() && s.pick(c.queue, n) {
				c.count--
			}
			c.count = 0
		}
		if c.count > 0 || len(c.victims) > 0 {
			continue
		}
		s.unkeep(c)
		i--
	}
}

// unkeep releases a claim's kept resources to all.
func (s *Scheduler) unkeep(c *claim) {
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
	s.reindex(n)
	s.roomOn(n)
}

// dropClaims drops the claims for which gone returns true. It calls gone once for each, the oldest first.
func (s *Scheduler) dropClaims(gone func(*claim) bool) {
	p := s.preempt
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
				x.sum.Sub(&v.Size.V)
			}
		}
		s.unkeep(c)
	}
	clear(p.claims[len(stay):])
	p.claims = stay
}
