// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// A shared partition lends idle resources to asks without a label. As in Hadoop, the default partition is tried
// first, asks with the label come before those without, and AMs are not placed on lent resources. Borrowers are
// limited only by the free resources, and by a federation-wide maximum (QueueCap), which covers all of a queue's use
// there. Lent containers are charged to the queue and the user in the node's partition. In Hadoop an ask must skip as
// many heartbeats as there are nodes before it may borrow. Here it may borrow once no node of the default partition
// has enough free resources for it, or its limits there are reached.
//
// The queue that uses least of the partition borrows first; within it, the first application in its order that can.
// If asks with the label wait for their queue's guarantee, borrowers are preempted first (preempt_choose.go).

// lend offers idle resources of shared partitions to waiting asks without a label: newly freed ones to all asks,
// older ones to new asks.
func (l *lending) lend() {
	s := l.s
	for _, n := range l.nodes {
		for s.waiting > 0 && n.roomy() && n.of != s && !n.of.exclusive && l.lendOn(n) {
		}
	}
	for _, a := range l.borrowers {
		l.lendTo(a)
	}
	clear(l.nodes)
	clear(l.borrowers)
	l.nodes, l.borrowers = l.nodes[:0], l.borrowers[:0]
}

// lendOn grants one container on n to the first application that can have one there.
func (l *lending) lendOn(n *Node) bool {
	s := l.s
	var tried []*Queue
	for {
		var next *Queue
		least := 0.0
		for _, q := range s.tree.all {
			if q.leaf == nil || q.users.Len() == 0 || !s.sizes.Fits(&q.least, &n.free) || has(tried, q) {
				continue
			}
			used := s.sizes.Dominant(&n.of.counterpart(q).used, &n.of.total)
			if next == nil || used < least {
				next, least = q, used
			}
		}
		if next == nil {
			return false
		}
		for _, u := range next.users.Items {
			for _, a := range u.apps.Items {
				for _, w := range a.asks {
					if at, reason := l.reach(w, n); reason != ReasonNone {
						l.grant(w, n, at, reason)
						return true
					}
				}
			}
		}
		tried = append(tried, next)
	}
}

func has(list []*Queue, q *Queue) bool {
	for _, x := range list {
		if x == q {
			return true
		}
	}
	return false
}

// lendTo grants an application's asks idle resources of shared partitions.
func (l *lending) lendTo(a *App) {
	s := l.s
	for i := 0; i < len(a.asks) && a.waits; i++ {
		w := a.asks[i]
		for w.count > 0 && a.waits {
			// A new ask may not have been tried yet: try its own partition first.
			if s.retries.blockedAbove(a) == nil && s.try(w, nil) {
				s.enroll(a)
				continue
			}
			n, at, reason := l.seek(w)
			if n == nil {
				break
			}
			l.grant(w, n, at, reason)
		}
		if i < len(a.asks) && a.asks[i] != w {
			i-- // w is satisfied and removed
		}
	}
}

// admits reports whether the federation's limits on the nodes of partition s permit w a container there; borrowers
// are subject to them.
func (l *lending) admits(w *Ask) bool {
	s := l.s
	if s.leases.NoCaps() {
		return true
	}
	q := s.counterpart(w.app.queue)
	may := q.underCaps(&w.size.V)
	name := w.app.user.name
	if cap, has := q.leaf.caps.Of(name); has && may {
		var used amounts.Vec
		if u := q.leaf.byName[name]; u != nil {
			used = u.used
		}
		may = cap.Admits(&s.sizes, s.now, &used, &w.size.V)
	}
	l.later = l.later || !may
	return may
}

// borrows reports whether an ask may use lent resources.
func (w *Ask) borrows() bool {
	return w.count > 0 && w.size != nil && !w.am && w.app.waits && w.app.main == nil
}

// reach returns the distance of a node of a shared partition from w's places, or ReasonNone if w may not go there
// now. Places are compared by name: w knows hosts and racks of the default partition.
func (l *lending) reach(w *Ask, n *Node) (places.Distance, Reason) {
	s := l.s
	if !w.borrows() || !s.sizes.Fits(&w.size.V, &n.free) || w.app.black.bars(n) || !s.tags.allows(w, n) {
		return 0, ReasonNone
	}
	if !n.of.lending.admits(w) {
		return 0, ReasonNone
	}
	if !w.named.Any() {
		if w.strict {
			return 0, ReasonNone
		}
		return places.AtAny, OffSwitch
	}
	onRack := w.named.Place(n.rack.Name())
	if w.named.Place(n.host.Name()) != nil && (len(w.named.Racks) == 0 || onRack != nil) {
		return places.AtNode, NodeLocal
	}
	if onRack != nil && !onRack.Strict && (w.level >= places.AtRack || len(w.named.Hosts) == 0) {
		return places.AtRack, w.rackReason()
	}
	if w.strict || w.level < places.AtAny {
		return 0, ReasonNone
	}
	return places.AtAny, Relaxed
}

// seek searches the shared partitions, by label, for a node for w.
func (l *lending) seek(w *Ask) (*Node, places.Distance, Reason) {
	s := l.s
	if !w.borrows() {
		return nil, 0, ReasonNone
	}
	for _, p := range s.parts {
		if p.exclusive || p.active == 0 || !p.lending.admits(w) {
			continue
		}
		for _, x := range w.named.Hosts {
			if h := p.nodes.Host(x.Name); h != nil {
				for _, n := range h.Nodes() {
					if at, reason := l.reach(w, n); n.roomy() && reason != ReasonNone {
						return n, at, reason
					}
				}
			}
		}
		for _, x := range w.named.Racks {
			r := p.nodes.Rack(x.Name)
			if r != nil && !x.Strict && (w.level >= places.AtRack || len(w.named.Hosts) == 0) {
				if n := p.nodes.findOn(r, w); n != nil {
					return n, places.AtRack, w.rackReason()
				}
			}
		}
		if w.strict || w.named.Any() && w.level < places.AtAny {
			continue
		}
		if n := p.nodes.find(w); n != nil {
			if w.named.Any() {
				return n, places.AtAny, Relaxed
			}
			return n, places.AtAny, OffSwitch
		}
	}
	return nil, 0, ReasonNone
}

// grant books the container that w gets on n, in a shared partition.
func (l *lending) grant(w *Ask, n *Node, at places.Distance, reason Reason) {
	s := l.s
	a, size, p := w.app, w.size, n.of
	if h := w.hold; h != nil && w.count == 1 {
		s.reservations.drop(h)
	}
	s.grants = append(s.grants, Grant{
		App: a, Node: n, Size: size, AllocationRequestID: w.alloc, Priority: w.priority,
		ExecutionType: w.execution, Reason: reason, Waited: time.Duration(s.now - w.asked),
		Rare: w.rare(n, at),
	})
	n.free.Sub(&size.V)
	p.nodes.reindex(n)
	if w.want != nil {
		s.tags.Count(a, n, w.want.Tags, 1)
	}
	x := s.appIn(a, p)
	p.charge(x, size, 1)
	x.queue.granted++
	x.queue.near[at]++
	if at == places.AtNode {
		w.named.Lower(&s.places, w.named.Place(n.host.Name()))
	}
	if at <= places.AtRack {
		w.named.Lower(&s.places, w.named.Place(n.rack.Name()))
	}
	s.countDown(w)
	if at != places.AtAny {
		s.delays.end(w)
	}
	if w.count == 0 {
		s.forgetIfEmpty(w)
	}
	s.enroll(a)
}
