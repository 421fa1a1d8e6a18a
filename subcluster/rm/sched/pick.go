// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// pick is next once all entries are in order: a container on n, or anywhere if n is nil. Entries that cannot have one
// are set aside for the walk and put back after it. A child stopped only by its own limit is parked until the limit
// loosens, so that it costs nothing meanwhile.
func (s *Scheduler) pick(q *Queue, n *Node) bool {
	if q.leaf != nil {
		return s.pickLeaf(q, n)
	}
	aside, found, ended := len(s.scratchQ), false, false
	if q.ordering.relative {
		q.rankChildren()
	}
	inOrder := n == nil || s.retries.blocked > 0 && q.anyBlocked() // check each child, because it may end the walk
	for q.ready.Len() > 0 {
		// 1. Which child is next? Skip children whose smallest need does not fit.
		c := q.ready.Top()
		if !inOrder && !s.sizes.Fits(&c.least, &n.free) {
			if c = s.firstFor(q, n); c == nil {
				break // the others need more than n has
			}
		}
		// 2. Does the child's maximum admit anything?
		if c.sized().bounded && !c.admits(&c.least, 1, nil) {
			q.ready.Remove(c)
			s.retries.park(c)
			continue
		}
		// 3. Can a descendant have a container?
		if n == nil || s.sizes.Fits(&c.least, &n.free) {
			if found = s.pick(c, n); found {
				break
			}
		}
		// 4. May later children be tried?
		if ended = s.retries.endsAt(q, c); ended {
			break
		}
		if c.slot != 0 { // else it left, or was parked by the recursion
			q.ready.Remove(c)
			s.scratchQ = append(s.scratchQ, c)
		}
	}
	if found && len(s.scratchQ) == aside && (q.slot != 0 || q.parent == nil) {
		return true // none was skipped, so the order is unchanged
	}
	s.putBack(q, aside, found, ended)
	return found
}

// putBack returns the children of q that a walk set aside, and updates q.least.
func (s *Scheduler) putBack(q *Queue, aside int, found, ended bool) {
	least := amounts.Unlimited
	if !found {
		for _, c := range q.ready.Items {
			least.Min(&c.least)
		}
	}
	for _, c := range s.scratchQ[aside:] {
		least.Min(&c.least)
		if c.slot == 0 && !c.parked && c.hasReady() {
			c.enter()
		}
	}
	clear(s.scratchQ[aside:])
	s.scratchQ = s.scratchQ[:aside]
	switch {
	case found || ended:
		q.least.Min(&least)
		q.back()
	case q.parkedBelow == 0:
		q.least = least // all were visited: the bound is exact again
	}
}

// firstFor returns the first waiting child in order whose smallest need fits on n, nil for none. Children before it
// stay in place.
func (s *Scheduler) firstFor(q *Queue, n *Node) *Queue {
	h := &q.ready
	var best *Queue
	var look func(i int)
	look = func(i int) {
		for ; i < len(h.Items); i = 2*i + 2 {
			c := h.Items[i]
			if best != nil && !h.Less(c, best) {
				return // neither does any entry below it
			}
			if s.sizes.Fits(&c.least, &n.free) {
				best = c
				return
			}
			look(2*i + 1)
		}
	}
	look(0)
	return best
}

// anyBlocked reports whether an ask may wait for the maximum of q or of a queue above it.
func (q *Queue) anyBlocked() bool {
	for ; q != nil; q = q.parent {
		if q.blocker != nil {
			return true
		}
	}
	return false
}

// back returns a queue, and its ancestors, to the waiting ones if they left while entries below were set aside.
func (q *Queue) back() {
	for ; q.parent != nil && q.hasReady(); q = q.parent {
		if q.slot == 0 && !q.parked {
			q.enter()
		}
		q.parent.least.Min(&q.least)
	}
}

// pickLeaf is pick for a leaf: by user, then by application, then by ask.
func (s *Scheduler) pickLeaf(q *Queue, n *Node) bool {
	asideU, asideA, found, ended := len(s.scratchU), len(s.scratchA), false, false
	least := amounts.Unlimited
	byLimit := true // only limits of users stopped applications
	for !found && !ended && q.users.Len() > 0 {
		// 1. Which user is next? An application above the user limit stops all applications of its user.
		u := q.users.Top()
		for !found && !ended && u.apps.Len() > 0 {
			a := u.apps.Top()
			if !s.policy.userAdmits(s, u) || !u.underCap(&s.sizes.Least) {
				s.retries.stopUser(a)
				break
			}
			byLimit = false
			// 2. Can one of its asks have a container, by priority?
			if found, ended = s.pickAsk(a, n); !found && !ended {
				least.Min(&a.least)
				u.apps.Remove(a)
				s.scratchA = append(s.scratchA, a)
			}
		}
		// 3. The user's other applications wait; so does the user.
		if !found && !ended {
			for _, a := range u.apps.Items {
				least.Min(&a.least)
			}
			q.users.Remove(u)
			s.scratchU = append(s.scratchU, u)
		}
	}
	if found && len(s.scratchA) == asideA && len(s.scratchU) == asideU && (q.slot != 0 || q.parent == nil) {
		return true
	}
	s.putBackLeaf(q, asideU, asideA)
	if found || ended {
		q.least.Min(&least)
		q.back()
		return found
	}
	q.least = least
	if byLimit && q.parent != nil && q.slot != 0 && q.users.Len() > 0 {
		q.parent.ready.Remove(q)
		s.retries.park(q)
	}
	return false
}

// pickAsk grants one container for the first ask of an application that can have one. ended reports that an ask waits
// for the maximum of a queue. Then no later ask may be tried.
func (s *Scheduler) pickAsk(a *App, n *Node) (found, ended bool) {
	for _, w := range a.asks {
		if w.stops != nil && s.retries.recheck(w.stops) {
			return false, true
		}
		if w.count <= 0 || w.size == nil || n != nil && !s.sizes.Fits(&w.size.V, &n.free) {
			continue
		}
		if s.give(w, n) {
			if w.count == 0 || a.slot == 0 { // else it waits as before
				s.enroll(a)
			}
			return true, false
		}
		if w.stops != nil {
			return false, true
		}
	}
	return false, false
}

// putBackLeaf returns the applications and users of a leaf that a walk set aside.
func (s *Scheduler) putBackLeaf(q *Queue, asideU, asideA int) {
	for _, a := range s.scratchA[asideA:] {
		if a.waits && a.slot == 0 {
			a.ratio = q.share(a)
			a.user.apps.Push(a)
			if a.user.slot != 0 {
				q.users.Fix(a.user)
			} else {
				q.users.Push(a.user)
			}
		}
	}
	for _, u := range s.scratchU[asideU:] {
		if u.slot == 0 && u.apps.Len() > 0 {
			q.users.Push(u)
		}
	}
	clear(s.scratchA[asideA:])
	clear(s.scratchU[asideU:])
	s.scratchA, s.scratchU = s.scratchA[:asideA], s.scratchU[:asideU]
}
