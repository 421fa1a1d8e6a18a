// SPDX-License-Identifier: Apache-2.0

package sched

// Schedule makes all due decisions and returns the grants, in order. The next Schedule overwrites the slice.
//
// Each step may cause work for the steps above it, so the cycle repeats until no work is left. It terminates, because
// each round grants or activates something, or removes work.
func (s *Scheduler) Schedule() []Grant {
	for tries := amTries; ; {
		// 1. The cluster or the queues changed: recompute guarantees, and retry asks
		//    that limits stopped.
		if s.resizeDue {
			s.resizeDue = false
			s.resize()
			continue
		}
		// 2. Activate applications whose AM may run now; they ask for its container.
		if q, due := take(&s.line.due); due {
			q.leaf.queuedActivate = false
			s.line.activate(q)
			continue
		}
		if tries > 0 && s.line.tryHeld() {
			tries--
			continue
		}
		// 3. Offer resources that became free on a node.
		if n, due := take(&s.nodes.dirty); due {
			n.dirty = false
			s.offer(n)
			continue
		}
		// 4. Where a limit loosened, retry the asks that it stopped, on any node.
		if q, due := s.retries.take(); due {
			for s.waiting > 0 && s.walk.next(q, nil) {
			}
			continue
		}
		// 5. Containers with tags started or ended: check constraints again.
		// 6. The nodes of labels: each partition decides separately.
		if s.further && s.furtherDue() {
			continue
		}
		grants := s.grants
		s.grants = s.grants[:0]
		return grants
	}
}

// furtherDue handles features that few clusters use, and reports whether more decisions are due.
func (s *Scheduler) furtherDue() bool {
	if s.tags.changed {
		s.tags.changed = false
		s.tags.retry()
		return true
	}
	s.further = len(s.parts) > 0
	return s.further && s.partitionsDue()
}

// offer offers a node's free resources to waiting asks.
func (s *Scheduler) offer(n *Node) {
	if n.use != Open {
		return
	}
	if s.main != nil && !s.exclusive {
		s.main.lending.nodes = append(s.main.lending.nodes, n)
	}
	// 1. Increases of containers here come before new containers.
	if s.increases.waiting > 0 {
		s.increases.growOn(n)
	}
	// 2. A reserved node collects free resources only for its reservation.
	if n.held && !s.reservations.fulfil(n) {
		return
	}
	// 3. Asks that wait for a preferred node have skipped one more.
	if s.waiting == 0 {
		return
	}
	s.delays.opportunity()
	// 4. If the first ask in order needs more than is free, reserve the node for it.
	if s.reservations.forHead(n) {
		return
	}
	// 5. Then all others, in the order of the tree, while resources last.
	for !n.held && s.waiting > 0 && s.sizes.Fits(&s.tree.root.least, &n.free) && s.walk.next(s.tree.root, n) {
	}
}

// Serve tries all asks of an application, on any node, until limits or free resources stop it; its outstanding asks
// then wait in the tree. Schedule is due before, so that this call does not pass earlier asks that can be served now,
// and after it, to get the grants.
func (s *Scheduler) Serve(a *App) {
	if len(s.parts) > 0 {
		for _, x := range a.parts {
			x.queue.s.Serve(x)
		}
		s.lending.mayBorrow(a)
	}
	s.enroll(a) // its user counts as active while limits are checked
	if q := s.retries.blockedAbove(a); q != nil {
		s.retries.add(q) // in order, because some asks may not pass others
		return
	}
	if a.runnable() {
		for i := 0; i < len(a.asks); i++ {
			w := a.asks[i]
			s.prefetchNodes(w)
			s.serve(w)
			if w.count > 0 && w.stops != nil {
				break
			}
			if i < len(a.asks) && a.asks[i] != w {
				i-- // w is satisfied and removed
			}
		}
	}
	s.enroll(a)
}

// serve grants w containers, on any node, until limits or free resources stop it. If the queues have free capacity
// for all of it, they are not checked again for each container.
func (s *Scheduler) serve(w *Ask) {
	sure := w.size != nil && w.count > 1 && w.app.admitQueues(w.size, int64(w.count), w.own()).limit == LimitNone
	for w.count > 0 {
		if sure && w.app.userRefusal().limit == LimitNone {
			if !s.put(w, nil) {
				return
			}
		} else if !s.try(w, nil) {
			return
		}
	}
}

// try grants one container for w: on n, or anywhere if n is nil. If it fails, the limit that stopped w records it for
// a retry.
func (s *Scheduler) try(w *Ask, n *Node) bool {
	if w.size == nil || w.count <= 0 {
		return false
	}
	if user := w.app.userRefusal(); user.limit != LimitNone {
		// The maximum of a queue is reported before the limit of a user.
		if v := w.app.admitQueues(w.size, 1, w.own()); v.limit != LimitNone {
			user = v
		}
		s.retries.stop(w, user)
		return false
	}
	return s.give(w, n)
}

// give is try for an ask within its user's limit.
func (s *Scheduler) give(w *Ask, n *Node) bool {
	if v := w.app.admitQueues(w.size, 1, w.own()); v.limit != LimitNone {
		s.retries.stop(w, v)
		return false
	}
	return s.put(w, n)
}

// put is give for an ask that its queues' maxima admit.
func (s *Scheduler) put(w *Ask, n *Node) bool {
	// 1. Does the user's cap in the federation admit it?
	if !w.app.user.underCap(&w.size.V) {
		s.retries.stop(w, w.app.capRefusal(w.size))
		return false
	}
	w.app.user.unlimit()
	// 2. Which node, and how near to its places?
	n, at, reason := s.nodes.nodeFor(w, n)
	if n == nil {
		return false
	}
	// 3. Book the container.
	s.grant(w, n, at, reason)
	return true
}
