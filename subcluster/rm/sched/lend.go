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
	p := &l.s.main
	for _, n := range l.nodes {
		for p.waiting > 0 && n.roomy() && n.Lends() && l.lendOn(n) {
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
	p := &l.s.main
	var tried []*Queue
	for {
		var next *Queue
		least := 0.0
		for _, q := range p.tree.all {
			if q.leaf == nil || q.users.Len() == 0 || !p.sizes.Fits(&q.least, &n.free) || has(tried, q) {
				continue
			}
			used := p.sizes.Dominant(&n.of.counterpart(q).used, &n.of.total)
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
	p := &l.s.main
	for i := 0; i < len(a.asks) && a.waits; i++ {
		w := a.asks[i]
		for w.count > 0 && a.waits {
			// A new ask may not have been tried yet: try its own partition first.
			if p.retries.blockedAbove(a) == nil && p.try(w, nil) {
				p.enroll(a)
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

// lendsTo reports whether the federation's limits on the nodes of the partition permit w a container there; borrowers
// are subject to them.
func (p *partition) lendsTo(w *Ask) bool {
	if p.leases.NoCaps() {
		return true
	}
	q := p.counterpart(w.app.queue)
	may := q.underCaps(&w.size.V)
	name := w.app.user.name
	if cap, has := q.leaf.caps.Of(name); has && may {
		var used amounts.Vec
		if u := q.leaf.byName[name]; u != nil {
			used = u.used
		}
		may = cap.Admits(&p.sizes, p.now, &used, &w.size.V)
	}
	p.stinted = p.stinted || !may
	return may
}

// borrows reports whether an ask may use lent resources.
func (w *Ask) borrows() bool {
	return w.count > 0 && w.size != nil && !w.am && w.app.waits && w.app.main == nil
}

// reach returns the distance of a node of a shared partition from w's places, or ReasonNone if w may not go there
// now. Places are compared by name: w knows hosts and racks of the default partition.
func (l *lending) reach(w *Ask, n *Node) (places.Distance, Reason) {
	p := &l.s.main
	if !w.borrows() || !p.sizes.Fits(&w.size.V, &n.free) || w.app.black.bars(n) || !p.tags.allows(w, n) {
		return 0, ReasonNone
	}
	if !n.of.lendsTo(w) {
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
	if !w.borrows() {
		return nil, 0, ReasonNone
	}
	for _, p := range l.s.labelled {
		if p.exclusive || p.active == 0 || !p.lendsTo(w) {
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
	part := &l.s.main
	a, size, p := w.app, w.size, n.of
	if h := w.hold; h != nil && w.count == 1 {
		part.reservations.drop(h)
	}
	part.grants = append(part.grants, Grant{
		App: a, Node: n, Size: size, AllocationRequestID: w.alloc, Priority: w.priority,
		ExecutionType: w.execution, Reason: reason, Waited: time.Duration(part.now - w.asked),
		Rare: w.rare(n, at),
	})
	n.free.Sub(&size.V)
	p.nodes.reindex(n)
	if w.want != nil {
		part.tags.Count(a, n, w.want.Tags, 1)
	}
	x := l.s.appIn(a, p)
	p.charge(x, size, 1)
	x.queue.granted++
	x.queue.near[at]++
	if at == places.AtNode {
		w.named.Lower(&part.places, w.named.Place(n.host.Name()))
	}
	if at <= places.AtRack {
		w.named.Lower(&part.places, w.named.Place(n.rack.Name()))
	}
	part.countDown(w)
	if at != places.AtAny {
		part.delays.end(w)
	}
	if w.count == 0 {
		part.forgetIfEmpty(w)
	}
	part.enroll(a)
}
