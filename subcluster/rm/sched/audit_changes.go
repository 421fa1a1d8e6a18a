// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/sched/audit"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Around checks what a changed application affects: its user, and its queues up to the root. App has already checked
// the application itself.
func (c *Audit) Around(a *App, k *Changes) {
	for _, x := range a.parts {
		c.parts[x.queue.part].Around(x, k)
	}
	if !a.inQueue {
		return
	}
	c.userInOrder(a.user)
	for q := a.queue; q != nil; q = q.parent {
		c.below(q)
		c.bound(q, k)
	}
}

// bound checks that a queue did not grow beyond its maximum. Its use may exceed the maximum after the cluster or the
// maximum shrank.
func (c *Audit) bound(q *Queue, k *Changes) {
	was := k.used[q]
	lends := c.part.label != "" && !c.part.exclusive // without regard to maxima
	for i := 0; q.sized().bounds.bounded && !lends && i < c.part.sizes.Check; i++ {
		if q.used.At(i) > q.bounds.max.At(i) && q.used.At(i) > was.At(i) {
			c.fail("queue %s grew from %v to %v, above its maximum %v", q.path, was, q.used, q.bounds.max)
		}
	}
	for i := 0; q.bounds.cap != nil && i < c.part.sizes.Check; i++ {
		if q.used.At(i) > q.bounds.cap.Lease.Amount.At(i) && q.used.At(i) > was.At(i) {
			c.fail("queue %s grew from %v to %v, above its cap %v", q.path, was, q.used, q.bounds.cap.Lease.Amount)
		}
	}
	k.used[q] = q.used
}

// below checks a queue against its direct children or users, and its place in the order.
func (c *Audit) below(q *Queue) {
	var s audit.Sums
	of := audit.Used | audit.Running
	if q.leaf != nil { // only applications, not users, have the other entries
		for _, u := range q.leaf.userList {
			s.Add(u.account())
		}
	} else {
		of |= audit.Held | audit.Pending | audit.Containers | audit.Asked
		for _, k := range q.children {
			s.Add(k.account())
		}
	}
	if wrong := audit.Differ(q.account(), &s, of); wrong != "" {
		c.fail("queue %s, by those below it: %s", q.path, wrong)
	}
	if p := q.parent; p != nil {
		in := q.slot != 0
		if has := q.hasReady(); has != (in || q.stopped.parked) || in && q.stopped.parked {
			c.fail("queue %s: something waits %v, in the order %v, parked %v", q.path, has, in, q.stopped.parked)
		}
		if q.hasReady() && !c.part.sizes.Fits(&p.least, &q.least) {
			c.fail("queue %s: least %v above that of its child %s, %v", p.path, p.least, q.path, q.least)
		}
		inOrder(c, q, &p.ready, q)
	}
}

func (c *Audit) userInOrder(u *user) {
	if (u.slot != 0) != (u.apps.Len() > 0) {
		c.fail("user %s of %s: in the order %v, applications waiting %d", u.name, u.q.path, u.slot != 0, u.apps.Len())
	}
	inOrder(c, u.q, &u.q.users, u)
	if u.apps.Len() > 0 {
		inOrder(c, u.q, &u.apps, u.apps.Top())
	}
}

func inOrder[T any](c *Audit, q *Queue, h *intrusive.Heap[T], x T) {
	if at := h.CheckOne(x); at >= 0 {
		c.fail("queue %s: heap out of order at %d", q.path, at)
	}
}

// Unserved checks the promise of Schedule: if an ask is outstanding, its limits or all nodes exclude it, or an
// earlier ask stops it. It checks all nodes for each ask, which is slow and obvious.
func (c *Audit) Unserved(a *App) {
	for _, x := range a.parts {
		c.parts[x.queue.part].Unserved(x)
	}
	c.unlent(a)
	if !a.waits || c.behindBlocker(a) {
		return
	}
	for _, w := range a.asks {
		if w.count <= 0 || w.size == nil || w.hold != nil || a.admit(w.size, nil).limit != explain.LimitNone {
			continue
		}
		k := w.audited()
		for _, n := range c.part.nodes.All() {
			if n == nil || n.use != Open || n.held {
				continue
			}
			at := audit.Node{Host: n.host.Name(), Rack: n.rack.Name(), Free: n.free}
			if by := k.Takes(&c.part.sizes, &at); by != "" && c.part.tags.allows(w, n) {
				c.fail("%s waits for %v at priority %d while %s has %v (%s)",
					a.id, w.size.V, w.priority, n.id, n.free, by)
				return
			}
		}
	}
}

// audited copies an ask for the check of the cycle's promise.
func (w *Ask) audited() *audit.Ask {
	k := &audit.Ask{Size: &w.size.V, Strict: w.strict, Level: w.level}
	k.Avoids = func(name string) bool {
		_, barred := w.app.black.names[name]
		return barred
	}
	for _, p := range w.named.Hosts {
		k.Hosts = append(k.Hosts, audit.Place{Name: p.Name, Strict: p.Strict})
	}
	for _, p := range w.named.Racks {
		k.Racks = append(k.Racks, audit.Place{Name: p.Name, Strict: p.Strict})
	}
	return k
}

// unlent checks that shared partitions have no idle resources that an ask without a label and without places could
// use.
func (c *Audit) unlent(a *App) {
	for _, w := range a.asks {
		if !w.borrows() || w.strict || w.named.Any() {
			continue
		}
		for _, p := range c.part.others() {
			for _, n := range p.nodes.All() {
				if n != nil && !p.exclusive && n.roomy() && c.part.sizes.Fits(&w.size.V, &n.free) && !a.black.bars(n) {
					c.fail("%s waits for %v at priority %d while %s of label %s would lend %v",
						a.id, w.size.V, w.priority, n.id, p.label, n.free)
					return
				}
			}
		}
	}
}

// behindBlocker reports whether an ask waits for the maximum of a queue above a.
func (c *Audit) behindBlocker(a *App) bool {
	for q := a.queue; q != nil; q = q.parent {
		if w := q.stopped.blocker; w != nil && w.waitsFor(q) {
			return true
		}
	}
	return false
}
