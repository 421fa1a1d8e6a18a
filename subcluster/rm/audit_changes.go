// SPDX-License-Identifier: Apache-2.0

package rm

import "errors"

// Auditor audits a machine event by event at the cost of what each event
// changed: the nodes, applications and queues it touched are checked as Audit
// checks them, all others being as they were. Every so many events everything
// is. One auditor at a time watches a machine.
type Auditor struct {
	m     *Machine
	every int
	n     int
	nodes []*node
	apps  []*app
	used  map[*queue]vec // as of the last check, for queues with a maximum
}

// NewAuditor watches a machine from now on; every is the number of checks from
// one full audit to the next, 0 for none.
func NewAuditor(m *Machine, every int) *Auditor {
	a := &Auditor{m: m, every: every, used: map[*queue]vec{}}
	m.auditor = a
	return a
}

// Checks is how many times Check was called.
func (a *Auditor) Checks() int { return a.n }

func (m *Machine) nodeChanged(n *node) {
	if m.auditor != nil && !n.changed {
		n.changed = true
		m.auditor.nodes = append(m.auditor.nodes, n)
	}
}

func (m *Machine) appChanged(a *app) {
	if m.auditor != nil && !a.changed {
		a.changed = true
		m.auditor.apps = append(m.auditor.apps, a)
	}
}

// Check audits what changed since it was last called.
func (a *Auditor) Check() error {
	c := auditor{m: a.m}
	for _, n := range a.nodes {
		n.changed = false
		c.node(n)
	}
	for _, x := range a.apps {
		x.changed = false
		if a.m.apps[x.id] != x {
			continue
		}
		if _, counts := c.app(x); counts {
			c.user(x.user)
		}
		for q := x.queue; q != nil; q = q.parent {
			c.sum(q)
			a.bound(&c, q)
		}
	}
	clear(a.nodes)
	clear(a.apps)
	a.nodes, a.apps = a.nodes[:0], a.apps[:0]
	a.n++
	if a.every > 0 && a.n%a.every == 0 {
		c.errs = append(c.errs, a.m.Audit())
	}
	return errors.Join(c.errs...)
}

// bound checks that a queue did not grow beyond its maximum. It may stand above
// when the cluster or the maximum shrank.
func (a *Auditor) bound(c *auditor, q *queue) {
	was := a.used[q]
	for i := 0; q.sized().bounded && i < a.m.t.check; i++ {
		if q.used.at(i) > q.max.at(i) && q.used.at(i) > was.at(i) {
			c.fail("queue %s grew from %v to %v, above its maximum %v", q.path, was, q.used, q.max)
		}
	}
	for i := 0; q.cap != nil && i < a.m.t.check; i++ {
		if q.used.at(i) > q.cap.amount.at(i) && q.used.at(i) > was.at(i) {
			c.fail("queue %s grew from %v to %v, above its cap %v", q.path, was, q.used, q.cap.amount)
		}
	}
	a.used[q] = q.used
}

// sum checks a queue against what is right below it: its children, or its users.
func (c *auditor) sum(q *queue) {
	var used, held, pending vec
	containers, wanted, running := int32(0), int32(0), 0
	for _, k := range q.children {
		used.add(&k.used)
		held.add(&k.held)
		pending.add(&k.pending)
		containers, wanted, running = containers+k.containers, wanted+k.pendingCount, running+k.running
	}
	if q.leaf != nil {
		for _, u := range q.leaf.userList {
			used.add(&u.used)
			running += u.running
		}
		held, pending, containers, wanted = q.held, q.pending, q.containers, q.pendingCount // known of applications, not of users
	}
	if !used.is(&q.used) || !held.is(&q.held) || !pending.is(&q.pending) || containers != q.containers ||
		wanted != q.pendingCount ||
		running != q.running {
		c.fail(
			"queue %s: used %v held %v pending %v (%d, %d) running %d, below it %v %v %v (%d, %d) %d",
			q.path,
			q.used,
			q.held,
			q.pending,
			q.containers,
			q.pendingCount,
			q.running,
			used,
			held,
			pending,
			containers,
			wanted,
			running,
		)
	}
	if p := q.parent; p != nil {
		in := q.slot != 0
		if has := q.hasReady(); has != (in || q.parked) || in && q.parked {
			c.fail("queue %s: something waits %v, in the order %v, parked %v", q.path, has, in, q.parked)
		}
		if q.hasReady() && !c.m.t.fits(&p.least, &q.least) {
			c.fail("queue %s: least %v above that of its child %s, %v", p.path, p.least, q.path, q.least)
		}
		inOrder(c, q.path, &p.ready, q)
	}
}

func (c *auditor) user(u *user) {
	if (u.slot != 0) != (u.apps.len() > 0) {
		c.fail("user %s of %s: in the order %v, applications waiting %d", u.name, u.q.path, u.slot != 0, u.apps.len())
	}
	inOrder(c, u.q.path, &u.q.users, u)
	if u.apps.len() > 0 {
		inOrder(c, u.q.path, &u.apps, u.apps.top())
	}
}

// inOrder checks one element of a heap against its neighbours.
func inOrder[T any](c *auditor, path any, h *heap[T], x T) {
	at := int(*h.slot(x)) - 1
	if at < 0 {
		return
	}
	for _, k := range []int{2*at + 1, 2*at + 2} {
		if k < len(h.items) && h.less(h.items[k], x) {
			c.fail("queue %s: heap out of order at %d", path, k)
		}
	}
	if at > 0 && h.less(x, h.items[(at-1)/2]) {
		c.fail("queue %s: heap out of order at %d", path, at)
	}
}
