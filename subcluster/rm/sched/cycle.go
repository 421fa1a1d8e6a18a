// SPDX-License-Identifier: Apache-2.0

package sched

// Schedule makes all due decisions and returns the grants, in order. The next Schedule overwrites the slice.
func (s *Scheduler) Schedule() []Grant {
	p := &s.main
	s.line.tries = amTries
	for p.decide(); len(s.labelled) > 0 && s.labelledDue(); p.decide() {
	}
	grants := p.grants
	p.grants = p.grants[:0]
	return grants
}

// decide makes all due decisions of a partition.
//
// Each step may cause work for the steps above it, so the cycle repeats until no work is left. It terminates, because
// each round grants or activates something, or removes work.
func (p *partition) decide() {
	for line := p.line(); ; {
		// 1. The cluster or the queues changed: recompute guarantees, and retry asks
		//    that limits stopped.
		if p.resizeDue {
			p.resizeDue = false
			p.resize()
			continue
		}
		// 2. Activate applications whose AM may run now; they ask for its container.
		if line != nil && line.start() {
			continue
		}
		// 3. Offer resources that became free on a node.
		if n, due := take(&p.nodes.dirty); due {
			n.dirty = false
			p.offer(n)
			continue
		}
		// 4. Where a limit loosened, retry the asks that it stopped, on any node.
		if q, due := p.retries.take(); due {
			for p.waiting > 0 && p.walk.next(q, nil) {
			}
			continue
		}
		// 5. Containers with tags started or ended: check constraints again.
		if p.tags.changed {
			p.tags.changed = false
			p.tags.retry()
			continue
		}
		return
	}
}

// offer offers a node's free resources to waiting asks.
func (p *partition) offer(n *Node) {
	if n.use != Open {
		return
	}
	if n.Lends() {
		p.cluster.lending.nodes = append(p.cluster.lending.nodes, n)
	}
	// 1. Increases of containers here come before new containers.
	if p.increases.waiting > 0 {
		p.increases.growOn(n)
	}
	// 2. A reserved node collects free resources only for its reservation.
	if n.held && !p.reservations.fulfil(n) {
		return
	}
	// 3. Asks that wait for a preferred node have skipped one more.
	if p.waiting == 0 {
		return
	}
	p.delays.opportunity()
	// 4. If the first ask in order needs more than is free, reserve the node for it.
	if p.reservations.forHead(n) {
		return
	}
	// 5. Then all others, in the order of the tree, while resources last.
	for !n.held && p.waiting > 0 && p.sizes.Fits(&p.tree.root.least, &n.free) && p.walk.next(p.tree.root, n) {
	}
}

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
	sure := w.size != nil && w.count > 1 && w.app.admitQueues(w.size, int64(w.count), w.own()).limit == LimitNone
	for w.count > 0 {
		if sure && w.app.userRefusal().limit == LimitNone {
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
	if user := w.app.userRefusal(); user.limit != LimitNone {
		// The maximum of a queue is reported before the limit of a user.
		if v := w.app.admitQueues(w.size, 1, w.own()); v.limit != LimitNone {
			user = v
		}
		p.retries.stop(w, user)
		return false
	}
	return p.give(w, n)
}

// give is try for an ask within its user's limit.
func (p *partition) give(w *Ask, n *Node) bool {
	if v := w.app.admitQueues(w.size, 1, w.own()); v.limit != LimitNone {
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
