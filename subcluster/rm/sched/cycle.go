// SPDX-License-Identifier: Apache-2.0

package sched

// Schedule makes all due decisions and returns the grants, in order. The slice is overwritten by the next Schedule.
//
// Each step may cause work for the steps above it, so it repeats until nothing is left. It ends, because each round
// grants or activates something, or removes work.
func (s *Scheduler) Schedule() []Grant {
	for tries := amTries; ; {
		// 1. The cluster or the queues changed: guarantees are recomputed, and asks that limits
		//    stopped are tried again.
		if s.tree.stale {
			s.tree.stale = false
			s.resize()
			continue
		}
		// 2. Applications whose AM may run now are activated, and ask for it.
		if q, due := take(&s.activate); due {
			q.leaf.queuedActivate = false
			s.activateApps(q)
			continue
		}
		if tries > 0 && s.tryHeldAMs() {
			tries--
			continue
		}
		// 3. Room that appeared on a node is offered.
		if n, due := take(&s.dirtyNodes); due {
			n.dirty = false
			s.offer(n)
			continue
		}
		// 4. Where a limit loosened, those it had stopped are tried on any node.
		if q, due := take(&s.retries); due {
			q.queuedRetry = false
			for s.waiting > 0 && s.next(q, nil) {
			}
			continue
		}
		// 5. Containers with tags started or ended: constraints are checked again.
		// 6. The nodes of labels: each partition decides for itself.
		if s.further && s.furtherDue() {
			continue
		}
		grants := s.grants
		s.grants = s.grants[:0]
		return grants
	}
}

// furtherDue handles features that few clusters use, and reports whether there is more to decide.
func (s *Scheduler) furtherDue() bool {
	if s.tagsChanged {
		s.tagsChanged = false
		s.retryConstrained()
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
		s.main.lendable = append(s.main.lendable, n)
	}
	// 1. Containers here that are to become larger come before new ones.
	if s.growing > 0 {
		s.growOn(n)
	}
	// 2. A reserved node fills up for its reservation alone.
	if n.held && !s.fulfil(n) {
		return
	}
	// 3. Asks that wait for a node of theirs have passed up one more.
	if s.waiting == 0 {
		return
	}
	s.opportunity()
	// 4. The first in order gets it reserved if it needs more than there is.
	if s.reserveHead(n) {
		return
	}
	// 5. Everybody else, in the order of the tree, as long as it lasts.
	for !n.held && s.waiting > 0 && s.sizes.Fits(&s.tree.root.least, &n.free) && s.next(s.tree.root, n) {
	}
}

// next grants one container to the first in order below q that can have one: on n, or anywhere when n is nil.
func (s *Scheduler) next(q *Queue, n *Node) bool {
	s.order()
	return s.pick(q, n) // which calls give
}

// Serve tries all asks of an application, on any node, until limits or free resources stop it; outstanding asks then
// wait in the tree. Schedule is due before, so that asks that this call helps are not passed, and after it, to get
// the grants.
func (s *Scheduler) Serve(a *App) {
	if len(s.parts) > 0 {
		for _, x := range a.parts {
			x.queue.s.Serve(x)
		}
		s.mayBorrow(a)
	}
	s.enroll(a) // its user counts as active while limits are checked
	if q := s.blockedAbove(a); q != nil {
		s.retry(q) // in order, as some may not pass others
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
				i-- // w is satisfied and gone
			}
		}
	}
	s.enroll(a)
}

// serve grants w containers, on any node, until limits or free resources stop it. Queues that have free capacity for
// all of it are not checked again for each container.
func (s *Scheduler) serve(w *Ask) {
	sure := w.size != nil && w.count > 1 && s.admitQueues(w.app, w.size, int64(w.count), w.own()).limit == LimitNone
	for w.count > 0 {
		if sure && s.userRefusal(w.app).limit == LimitNone {
			if !s.put(w, nil) {
				return
			}
		} else if !s.try(w, nil) {
			return
		}
	}
}

// try grants one container for w: on n, or anywhere when n is nil. If it fails, the obstacle records w for a retry
// when it loosens.
func (s *Scheduler) try(w *Ask, n *Node) bool {
	if w.size == nil || w.count <= 0 {
		return false
	}
	if user := s.userRefusal(w.app); user.limit != LimitNone {
		// The maximum of a queue is named before the limit of a user.
		if v := s.admitQueues(w.app, w.size, 1, w.own()); v.limit != LimitNone {
			user = v
		}
		s.stopped(w, user)
		return false
	}
	return s.give(w, n)
}

// give is try for an ask whose user is within their limit.
func (s *Scheduler) give(w *Ask, n *Node) bool {
	if v := s.admitQueues(w.app, w.size, 1, w.own()); v.limit != LimitNone {
		s.stopped(w, v)
		return false
	}
	return s.put(w, n)
}

// put is give for an ask that the maxima of its queues admit.
func (s *Scheduler) put(w *Ask, n *Node) bool {
	// 1. Does the user's part in the federation?
	if !s.underUserCap(w.app.user, &w.size.V) {
		s.stopped(w, s.capRefusal(w.app, w.size))
		return false
	}
	s.unlimit(w.app.user)
	// 2. Which node, and how near to the places it names?
	n, at, reason := s.nodeFor(w, n)
	if n == nil {
		return false
	}
	// 3. Book it.
	s.grant(w, n, at, reason)
	return true
}

// take takes the last of a list.
func take[T any](list *[]T) (last T, any bool) {
	k := len(*list) - 1
	if k < 0 {
		return last, false
	}
	last, *list = (*list)[k], (*list)[:k]
	return last, true
}
