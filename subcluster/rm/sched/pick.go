// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// next grants one container to the first ask in order below q that can have one: on n, or anywhere if n is nil.
func (k *walk) next(q *Queue, n *Node) bool {
	k.order()
	return k.pick(q, n) // which calls give for each candidate
}

// order moves entries with changed use to their positions. It runs before the order of service is read.
func (k *walk) order() {
	for _, q := range k.outranked {
		q.outranked = false
		if q.slot == 0 {
			continue
		}
		if h := &q.parent.ready; h.Len() > 1 {
			q.rank = q.parent.ordering.rankOf(q)
			h.Fix(q)
		} // else it waits alone, and is ranked when another child waits (enter)
	}
	k.outranked = k.outranked[:0]
}

// head is the first ask in tree order, nil for none.
func (k *walk) head() *Ask {
	q := k.part.tree.root
	for q.leaf == nil {
		if q.ready.Len() == 0 {
			return nil
		}
		q = q.ready.Top()
	}
	if q.users.Len() == 0 {
		return nil
	}
	for _, w := range q.users.Top().apps.Top().asks {
		if w.count > 0 && w.size != nil {
			return w
		}
	}
	return nil
}

// pick is next once all entries are in order: a container on n, or anywhere if n is nil. Entries that cannot have one
// are set aside for the walk and put back after it. A child stopped only by its own limit is parked until the limit
// loosens, so that it costs nothing meanwhile.
func (k *walk) pick(q *Queue, n *Node) bool {
	p := k.part
	if q.leaf != nil {
		return k.pickLeaf(q, n)
	}
	aside, found, ended := len(k.queues), false, false
	if q.ordering.relative {
		q.rankChildren()
	}
	inOrder := n == nil || p.retries.blocked > 0 && q.anyBlocked() // check each child, because it may end the walk
	for q.ready.Len() > 0 {
		// 1. Which child is next? Skip children whose smallest need does not fit.
		c := q.ready.Top()
		if !inOrder && !p.sizes.Fits(&c.least, &n.free) {
			if c = k.firstFor(q, n); c == nil {
				break // the others need more than n has
			}
		}
		// 2. Does the child's maximum admit anything?
		if c.sized().bounds.bounded && !c.admits(&c.least, 1, nil) {
			q.ready.Remove(c)
			p.retries.park(c)
			continue
		}
		// 3. Can a descendant have a container?
		if n == nil || p.sizes.Fits(&c.least, &n.free) {
			if found = k.pick(c, n); found {
				break
			}
		}
		// 4. May later children be tried?
		if ended = p.retries.endsAt(q, c); ended {
			break
		}
		if c.slot != 0 { // else it left, or was parked by the recursion
			q.ready.Remove(c)
			k.queues = append(k.queues, c)
		}
	}
	if found && len(k.queues) == aside && (q.slot != 0 || q.parent == nil) {
		return true // none was skipped, so the order is unchanged
	}
	k.putBack(q, aside, found, ended)
	return found
}

// putBack returns the children of q that a walk set aside, and updates q.least.
func (k *walk) putBack(q *Queue, aside int, found, ended bool) {
	least := amounts.Unlimited
	if !found {
		for _, c := range q.ready.Items {
			least.Min(&c.least)
		}
	}
	for _, c := range k.queues[aside:] {
		least.Min(&c.least)
		if c.slot == 0 && !c.stopped.parked && c.hasReady() {
			c.enter()
		}
	}
	clear(k.queues[aside:])
	k.queues = k.queues[:aside]
	switch {
	case found || ended:
		q.least.Min(&least)
		q.back()
	case q.stopped.below == 0:
		q.least = least // all were visited: the bound is exact again
	}
}

// firstFor returns the first waiting child in order whose smallest need fits on n, nil for none. Children before it
// stay in place.
func (k *walk) firstFor(q *Queue, n *Node) *Queue {
	h := &q.ready
	var best *Queue
	var look func(i int)
	look = func(i int) {
		for ; i < len(h.Items); i = 2*i + 2 {
			c := h.Items[i]
			if best != nil && !h.Less(c, best) {
				return // neither does any entry below it
			}
			if k.part.sizes.Fits(&c.least, &n.free) {
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
		if q.stopped.blocker != nil {
			return true
		}
	}
	return false
}

// back returns a queue, and its ancestors, to the waiting ones if they left while entries below were set aside.
func (q *Queue) back() {
	for ; q.parent != nil && q.hasReady(); q = q.parent {
		if q.slot == 0 && !q.stopped.parked {
			q.enter()
		}
		q.parent.least.Min(&q.least)
	}
}

// pickLeaf is pick for a leaf: by user, then by application, then by ask.
func (k *walk) pickLeaf(q *Queue, n *Node) bool {
	p := k.part
	asideU, asideA, found, ended := len(k.users), len(k.apps), false, false
	least := amounts.Unlimited
	byLimit := true // only limits of users stopped applications
	for !found && !ended && q.users.Len() > 0 {
		// 1. Which user is next? An application above the user limit stops all applications of its user.
		u := q.users.Top()
		for !found && !ended && u.apps.Len() > 0 {
			a := u.apps.Top()
			if !p.policy.userAdmits(p, u) || !u.underCap(&p.sizes.Least) {
				p.retries.stopUser(a)
				break
			}
			byLimit = false
			// 2. Can one of its asks have a container, by priority?
			if found, ended = k.pickAsk(a, n); !found && !ended {
				least.Min(&a.least)
				u.apps.Remove(a)
				k.apps = append(k.apps, a)
			}
		}
		// 3. The user's other applications wait; so does the user.
		if !found && !ended {
			for _, a := range u.apps.Items {
				least.Min(&a.least)
			}
			q.users.Remove(u)
			k.users = append(k.users, u)
		}
	}
	if found && len(k.apps) == asideA && len(k.users) == asideU && (q.slot != 0 || q.parent == nil) {
		return true
	}
	k.putBackLeaf(q, asideU, asideA)
	if found || ended {
		q.least.Min(&least)
		q.back()
		return found
	}
	q.least = least
	if byLimit && q.parent != nil && q.slot != 0 && q.users.Len() > 0 {
		q.parent.ready.Remove(q)
		p.retries.park(q)
	}
	return false
}

// pickAsk grants one container for the first ask of an application that can have one. ended reports that an ask waits
// for the maximum of a queue. Then no later ask may be tried.
func (k *walk) pickAsk(a *App, n *Node) (found, ended bool) {
	p := k.part
	for _, w := range a.asks {
		if w.stops != nil && p.retries.recheck(w.stops) {
			return false, true
		}
		if w.count <= 0 || w.size == nil || n != nil && !p.sizes.Fits(&w.size.V, &n.free) {
			continue
		}
		if p.give(w, n) {
			if w.count == 0 || a.slot == 0 { // else it waits as before
				p.enroll(a)
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
func (k *walk) putBackLeaf(q *Queue, asideU, asideA int) {
	for _, a := range k.apps[asideA:] {
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
	for _, u := range k.users[asideU:] {
		if u.slot == 0 && u.apps.Len() > 0 {
			q.users.Push(u)
		}
	}
	clear(k.apps[asideA:])
	clear(k.users[asideU:])
	k.apps, k.users = k.apps[:asideA], k.users[:asideU]
}
