// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/explain"

// Serve tries all asks of an application, on any node, until limits or free resources stop it; its outstanding asks
// then wait in the tree. Schedule is due before, so that this call does not pass earlier asks that can be served now,
// and after it, to get the grants.
func (s *Scheduler) Serve(a *App) {
	if len(s.labelled) > 0 {
		for _, x := range a.parts {
			x.queue.part.serveApp(x)
		}
		s.lending.mayBorrow(a)
	}
	s.main.serveApp(a)
}

// serveApp is Serve in one partition.
func (p *partition) serveApp(a *App) {
	p.enroll(a) // its user counts as active while limits are checked
	if q := p.retries.blockedAbove(a); q != nil {
		p.retries.add(q) // in order, because some asks may not pass others
		return
	}
	if a.runnable() {
		for i := 0; i < len(a.asks); i++ {
			w := a.asks[i]
			p.prefetchNodes(w)
			p.serve(w)
			if w.count > 0 && w.stops != nil {
				break
			}
			if i < len(a.asks) && a.asks[i] != w {
				i-- // w is satisfied and removed
			}
		}
	}
	p.enroll(a)
}

// serve grants w containers, on any node, until limits or free resources stop it. If the queues have free capacity
// for all of it, they are not checked again for each container.
func (p *partition) serve(w *Ask) {
	sure := w.size != nil && w.count > 1 &&
		w.app.admitQueues(w.size, int64(w.count), w.own()).limit == explain.LimitNone
	for w.count > 0 {
		if sure && w.app.userRefusal().limit == explain.LimitNone {
			if !p.put(w, nil) {
				return
			}
		} else if !p.try(w, nil) {
			return
		}
	}
}

// try grants one container for w: on n, or anywhere if n is nil. If it fails, the limit that stopped w records it for
// a retry.
func (p *partition) try(w *Ask, n *Node) bool {
	if w.size == nil || w.count <= 0 {
		return false
	}
	if user := w.app.userRefusal(); user.limit != explain.LimitNone {
		// The maximum of a queue is reported before the limit of a user.
		if v := w.app.admitQueues(w.size, 1, w.own()); v.limit != explain.LimitNone {
			user = v
		}
		p.retries.stop(w, user)
		return false
	}
	return p.give(w, n)
}

// give is try for an ask within its user's limit.
func (p *partition) give(w *Ask, n *Node) bool {
	if v := w.app.admitQueues(w.size, 1, w.own()); v.limit != explain.LimitNone {
		p.retries.stop(w, v)
		return false
	}
	return p.put(w, n)
}

// put is give for an ask that its queues' maxima admit.
func (p *partition) put(w *Ask, n *Node) bool {
	// 1. Does the user's cap in the federation admit it?
	if !w.app.user.underCap(&w.size.V) {
		p.retries.stop(w, w.app.capRefusal(w.size))
		return false
	}
	w.app.user.unlimit()
	// 2. Which node, and how near to its places?
	n, at, reason := p.nodes.nodeFor(w, n)
	if n == nil {
		return false
	}
	// 3. Book the container.
	p.grant(w, n, at, reason)
	return true
}
