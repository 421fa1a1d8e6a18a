// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// snapshot copies what a round of preemption reads, when it is first mentioned: queues with a need or an excess, their
// waiting asks, applications that may lose containers, and the nodes of these. So a round costs nothing for the others.
type snapshot struct {
	p      *Preemption
	queues map[*Queue]*preempt.Queue
	users  map[*user]*preempt.User
	apps   map[*App]*preempt.App
	asks   map[*Ask]*preempt.Ask
	holds  map[*reservation]*preempt.Hold
	waits  map[*Queue][]*preempt.Ask
	nodes  []*preempt.Node // by serial number
}

func (p *Preemption) snapshot() snapshot {
	return snapshot{
		p: p, queues: map[*Queue]*preempt.Queue{}, users: map[*user]*preempt.User{}, apps: map[*App]*preempt.App{},
		asks: map[*Ask]*preempt.Ask{}, holds: map[*reservation]*preempt.Hold{}, waits: map[*Queue][]*preempt.Ask{},
	}
}

// queue returns the copy of a leaf.
func (s *snapshot) queue(q *Queue) *preempt.Queue {
	x := s.queues[q]
	if x != nil {
		return x
	}
	x = &preempt.Queue{
		Owner: q, Serial: q.serial, Priority: q.spec.Priority, Use: useRank(q).ratio,
		Kept: q.spec.PreemptionDisabled, LeastWork: q.losesLeast(),
	}
	if q.leaf != nil {
		x.Runtimes = q.leaf.runtimes
	}
	s.p.budgetsOf(q, func(b *leases.Budget) bool {
		x.Budgets = append(x.Budgets, b)
		return true
	})
	s.queues[q] = x
	return x
}

// user returns the copy of a user. Its limit is set by waiting.
func (s *snapshot) user(u *user) *preempt.User {
	x := s.users[u]
	if x == nil {
		x = &preempt.User{}
		s.users[u] = x
	}
	return x
}

// app returns the copy of an application.
func (s *snapshot) app(a *App) *preempt.App {
	x := s.apps[a]
	if x == nil {
		x = &preempt.App{Owner: a, User: s.user(a.user)}
		if a.inQueue {
			x.Queue = s.queue(a.queue)
		}
		s.apps[a] = x
	}
	return x
}

// node returns the copy of a node.
func (s *snapshot) node(n *Node) *preempt.Node {
	if s.nodes == nil {
		s.nodes = make([]*preempt.Node, len(s.p.part.nodes.All()))
	}
	x := s.nodes[n.serial]
	if x == nil {
		x = &preempt.Node{Owner: n, Free: n.free}
		s.nodes[n.serial] = x
		x.Hold = s.hold(n.hold)
	}
	return x
}

// hold returns the copy of a reservation, nil for none.
func (s *snapshot) hold(h *reservation) *preempt.Hold {
	if h == nil {
		return nil
	}
	x := s.holds[h]
	if x == nil {
		x = &preempt.Hold{Queue: s.queue(h.ask.app.queue), Size: h.size}
		s.holds[h] = x
		x.Node = s.node(h.node)
	}
	return x
}

// ask returns the copy of an ask.
func (s *snapshot) ask(w *Ask) *preempt.Ask {
	x := s.asks[w]
	if x == nil {
		x = &preempt.Ask{
			Owner: w, App: s.app(w.app), Size: w.size, Count: w.count, Single: w.want != nil, Picky: w.picky(),
			Hold: s.hold(w.hold),
		}
		s.asks[w] = x
	}
	return x
}

// dropped applies the end of a reservation.
func (s *snapshot) dropped(h *reservation) {
	if x := s.asks[h.ask]; x != nil {
		x.Hold, x.Picky = nil, h.ask.picky()
	}
	if s.nodes != nil && s.nodes[h.node.serial] != nil {
		s.nodes[h.node.serial].Hold = nil
	}
}

// waiting returns the copies of a leaf's waiting asks, in the order of service, and sets the limits of their users.
func (s *snapshot) waiting(q *Queue) []*preempt.Ask {
	if list, is := s.waits[q]; is {
		return list
	}
	var list []*preempt.Ask
	for _, a := range q.leaf.waitingApps() {
		for _, w := range a.asks {
			if w.size != nil && w.count > 0 {
				list = append(list, s.ask(w))
			}
		}
	}
	for _, u := range q.leaf.userList {
		if u.apps.Len() > 0 {
			x := s.user(u)
			x.Used = u.used
			x.Limit, x.Limited = u.potential()
		}
	}
	s.waits[q] = list
	return list
}

// claim returns the copy of a claim of an earlier round.
func (s *snapshot) claim(c *claim) *preempt.Claim {
	x := &preempt.Claim{
		Rule: c.rule, Queue: s.queue(c.queue), Ask: s.ask(c.ask), Size: c.size, Node: s.node(c.node), Count: c.count,
	}
	for _, v := range c.victims {
		x.Victims = append(x.Victims, preempt.Victim{Container: preempt.Container{
			Owner: v.Owner, App: s.app(v.App), Node: x.Node, Size: v.Size, Created: v.Created, AM: v.AM,
		}})
	}
	return x
}

// suits reports whether an ask could ever be placed on a node.
func suits(w *preempt.Ask, n *preempt.Node) bool { return w.Owner.(*Ask).mayGo(n.Owner.(*Node)) }

// claimOf returns the claim to carry out. Its victims are notified now.
func (r *round) claimOf(x *preempt.Claim) *claim {
	w, now := x.Ask.Owner.(*Ask), r.part.now
	c := &claim{
		queue: x.Queue.Owner.(*Queue), app: w.app, ask: w, size: x.Size, node: x.Node.Owner.(*Node), count: x.Count,
		rule: x.Rule, until: now + int64(r.p.wait(x.Rule)), spent: x.Spent,
	}
	for i := range x.Victims {
		v := &x.Victims[i]
		c.victims = append(c.victims, &Victim{
			App: v.App.Owner.(*App), Node: c.node, Size: v.Size, Owner: v.Owner, Created: v.Created, AM: v.AM,
			For: w.app, Rule: x.Rule, Since: now, By: c.until, claim: c, choice: v.Choice,
		})
	}
	return c
}
