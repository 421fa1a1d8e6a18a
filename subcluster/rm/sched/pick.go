// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// pick is next where all are in their places: a container on n, or anywhere when
// n is nil. Those that cannot have one are set aside for the time of the walk
// and put back; a child that only its own limit stops is parked until that
// loosens, so that it costs nothing meanwhile.
func (s *Scheduler) pick(q *Queue, n *Node) bool {
	if q.leaf != nil {
		return s.pickLeaf(q, n)
	}
	mark, found, ended := len(s.scratchQ), false, false
	if q.ordering.relative {
		q.rankChildren()
	}
	inOrder := n == nil || s.blockers > 0 && q.anyBlocked()
	for q.ready.Len() > 0 {
		c := q.ready.Top()
		if !inOrder && !s.sizes.Fits(&c.least, &n.free) {
			if c = s.firstFor(q, n); c == nil {
				break // those left need more than n has
			}
		}
		if c.sized().bounded && !s.within(c, &c.least, nil) {
			q.ready.Remove(c)
			s.park(c)
			continue
		}
		if n == nil || s.sizes.Fits(&c.least, &n.free) {
			if found = s.pick(c, n); found {
				break
			}
			if ended = s.endsAt(q, c); ended {
				break
			}
			if c.slot == 0 {
				continue // it left, or was parked from below
			}
		} else if ended = s.endsAt(q, c); ended {
			break
		}
		q.ready.Remove(c)
		s.scratchQ = append(s.scratchQ, c)
	}
	if found && len(s.scratchQ) == mark && (q.slot != 0 || q.parent == nil) {
		return true // nobody was passed over, so all are where they were
	}
	least := amounts.Unlimited
	if !found {
		for _, c := range q.ready.Items {
			least.Min(&c.least)
		}
	}
	for _, c := range s.scratchQ[mark:] {
		least.Min(&c.least)
		if c.slot == 0 && !c.parked && c.hasReady() {
			c.enter()
		}
	}
	clear(s.scratchQ[mark:])
	s.scratchQ = s.scratchQ[:mark]
	switch {
	case found || ended:
		q.least.Min(&least)
		q.back()
	case q.parkedBelow == 0:
		q.least = least // seen them all: the bound is exact again
	}
	return found
}

// firstFor gives the first in order of the children that wait whose least need
// n has room for, nil for none. Those before it stay where they are.
func (s *Scheduler) firstFor(q *Queue, n *Node) *Queue {
	h := &q.ready
	var best *Queue
	var look func(i int)
	look = func(i int) {
		for ; i < len(h.Items); i = 2*i + 2 {
			c := h.Items[i]
			if best != nil && !h.Less(c, best) {
				return // nor is anything under it
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

// anyBlocked reports whether somebody may wait for the maximum of q or of a
// queue above it.
func (q *Queue) anyBlocked() bool {
	for ; q != nil; q = q.parent {
		if q.blocker != nil {
			return true
		}
	}
	return false
}

// back returns a queue, and those above it, to where they wait, if they left
// while what is below was set aside.
func (q *Queue) back() {
	for ; q.parent != nil && q.hasReady(); q = q.parent {
		if q.slot == 0 && !q.parked {
			q.enter()
		}
		q.parent.least.Min(&q.least)
	}
}

func (s *Scheduler) pickLeaf(q *Queue, n *Node) bool {
	markU, markA, found, ended := len(s.scratchU), len(s.scratchA), false, false
	least := amounts.Unlimited
	byLimit := true
	for !found && !ended && q.users.Len() > 0 {
		u := q.users.Top()
		for !found && u.apps.Len() > 0 {
			a := u.apps.Top()
			// An application over the user limit stops all of its user.
			if !s.policy.userAdmits(s, u) {
				s.userStopped(a)
				break
			}
			byLimit = false
			for _, w := range a.asks {
				if ended = w.stops != nil && s.recheck(w.stops); ended {
					break
				}
				if w.count <= 0 || w.size == nil || n != nil && !s.sizes.Fits(&w.size.V, &n.free) {
					continue
				}
				if found = s.give(w, n); found {
					if w.count == 0 || a.slot == 0 { // else it waits as before
						s.enroll(a)
					}
					break
				}
				if ended = w.stops != nil; ended {
					break
				}
			}
			if ended {
				break
			}
			if !found {
				least.Min(&a.least)
				u.apps.Remove(a)
				s.scratchA = append(s.scratchA, a)
			}
		}
		if found || ended {
			break
		}
		for _, a := range u.apps.Items {
			least.Min(&a.least)
		}
		q.users.Remove(u)
		s.scratchU = append(s.scratchU, u)
	}
	if found && len(s.scratchA) == markA && len(s.scratchU) == markU && (q.slot != 0 || q.parent == nil) {
		return true
	}
	for _, a := range s.scratchA[markA:] {
		if a.waits && a.slot == 0 {
			a.ratio = q.ordering.share(a)
			a.user.apps.Push(a)
			if a.user.slot != 0 {
				q.users.Fix(a.user)
			} else {
				q.users.Push(a.user)
			}
		}
	}
	for _, u := range s.scratchU[markU:] {
		if u.slot == 0 && u.apps.Len() > 0 {
			q.users.Push(u)
		}
	}
	clear(s.scratchA[markA:])
	clear(s.scratchU[markU:])
	s.scratchA, s.scratchU = s.scratchA[:markA], s.scratchU[:markU]
	if found || ended {
		q.least.Min(&least)
		q.back()
	} else {
		q.least = least
		if byLimit && q.parent != nil && q.slot != 0 && q.users.Len() > 0 {
			q.parent.ready.Remove(q)
			s.park(q)
		}
	}
	return found
}
