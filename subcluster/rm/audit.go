// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Audit recomputes everything the machine keeps in sums and indexes from its
// containers and asks, and checks the promises: no node above its size by an
// allocation, no queue above its maximum by an allocation, children summing to
// their parents, every waiting application in its place in the order. It gives
// all breaches joined, nil for none. It looks at everything, and changes nothing.
func (m *Machine) Audit() error {
	c := auditor{m: m}
	c.nodes()
	c.apps()
	c.queues()
	c.order()
	return errors.Join(c.errs...)
}

type auditor struct {
	m    *Machine
	errs []error
}

func (c *auditor) fail(format string, args ...any) {
	if len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *auditor) nodes() {
	m := c.m
	var total vec
	active, reserved := 0, 0
	live := int32(0)
	for _, n := range m.nodeList {
		live += c.node(n)
		if n.state.runs() {
			active++
			total.add(&n.total)
		}
		if n.hold != nil {
			reserved++
		}
	}
	if !total.is(&m.total) || active != m.active || reserved != m.reserved || live != m.count.containers {
		c.fail(
			"cluster: total %v active %d reserved %d containers %d, nodes say %v %d %d %d",
			m.total,
			m.active,
			m.reserved,
			m.count.containers,
			total,
			active,
			reserved,
			live,
		)
	}
	if m.count.granted-m.count.released != int64(live) {
		c.fail("granted %d, released %d, but %d live", m.count.granted, m.count.released, live)
	}
}

// node checks one node and counts its containers.
func (c *auditor) node(n *node) int32 {
	m := c.m
	var used vec
	count := int32(0)
	for i, k := range n.live {
		if k == nil {
			continue
		}
		if int(k.slot) != i || k.node != n {
			c.fail("node %s: broken list of containers at %d", n.id, i)
			return count
		}
		if m.container(k.id()) != k {
			c.fail("node %s: container %s is not found by its id", n.id, k.id())
		}
		if k.state >= cCompleted {
			c.fail("node %s: container %s is %s and still there", n.id, k.id(), k.state)
		}
		if k.state < cRunning != (k.wait != 0 && m.unlaunched.get(k.wait) == k) {
			c.fail("container %s is %s; waits for its start: %v", k.id(), k.state, k.wait != 0)
		}
		used.add(&m.sizeOf(k).v)
		count++
	}
	free := n.total
	free.sub(&used)
	if !free.is(&n.free) || count != n.count || n.held != (n.hold != nil) {
		c.fail(
			"node %s: free %v count %d reserved %v, containers say %v %d %v",
			n.id,
			n.free,
			n.count,
			n.held,
			free,
			count,
			n.hold != nil,
		)
	}
	if !n.override && !m.t.fits(&used, &n.total) && !n.recovered {
		c.fail("node %s: used %v above total %v", n.id, used, n.total)
	}
	if !n.state.runs() && count > 0 {
		c.fail("node %s is %s and has %d containers", n.id, n.state, count)
	}
	if n.hold != nil && (n.hold.node != n || n.hold.want.hold != n.hold || n.hold.want.count <= 0 || !n.state.takes()) {
		c.fail("node %s: broken reservation", n.id)
	}
	room := int64(-1)
	if m.roomy(n) {
		room = n.free.mem
	}
	if m.room[n.serial] != room {
		c.fail("node %s: has room for %d MiB, known as %d", n.id, room, m.room[n.serial])
	}
	if hears := m.notes.heads[n.serial] != deaf; hears != n.listens() {
		c.fail("node %s is %s: notes are kept for it %v", n.id, n.state, hears)
	}
	mask, at, indexed := m.inAll[n.serial].where()
	if want := m.roomy(n) && !m.ix.full(&n.free); indexed != want {
		c.fail("node %s: in the index %v, should be %v", n.id, indexed, want)
	}
	if indexed {
		if cell := int32(
			rowOf(n.free.mem/m.ix.steps[mem])*cols + colOf(n.free.cpu/m.ix.steps[cpu]),
		); cell != at ||
			mask != m.ix.extras(&n.free) {
			c.fail("node %s: in the wrong cell", n.id)
		}
	}
	return count
}

// sums are what a queue or user should have.
type sums struct {
	used, held, pending, am    vec
	containers, pendingCount   int32
	apps, running, waitingApps int
}

func (c *auditor) apps() {
	m := c.m
	perQueue, perUser := map[*queue]*sums{}, map[*user]*sums{}
	waiting := 0
	for _, a := range m.appList {
		if m.apps[a.id] != a {
			continue
		}
		if was := m.appView(a); was.Over && !reflect.DeepEqual(was, m.newAppView(a)) {
			c.fail("%s was over and has changed: %+v, now %+v", a.id, was, m.newAppView(a))
		}
		s, counts := c.app(a)
		if !counts {
			continue
		}
		waiting += s.waitingApps
		for q := a.queue; q != nil; q = q.parent {
			add(perQueue, q, &s)
		}
		add(perUser, a.user, &s)
	}
	if waiting != m.waiting {
		c.fail("%d applications wait, %d counted", waiting, m.waiting)
	}
	for _, q := range m.tree.all {
		s := perQueue[q]
		if s == nil {
			s = &sums{}
		}
		if !s.used.is(&q.used) || !s.held.is(&q.held) || !s.pending.is(&q.pending) || s.containers != q.containers ||
			s.pendingCount != q.pendingCount ||
			s.running != q.running {
			c.fail(
				"queue %s: used %v held %v pending %v (%d, %d) running %d, applications say %v %v %v (%d, %d) %d",
				q.path,
				q.used,
				q.held,
				q.pending,
				q.containers,
				q.pendingCount,
				q.running,
				s.used,
				s.held,
				s.pending,
				s.containers,
				s.pendingCount,
				s.running,
			)
		}
		if q.leaf == nil {
			continue
		}
		if s.apps != q.leaf.apps || !s.am.is(&q.leaf.amUsed) {
			c.fail(
				"queue %s: %d applications, masters use %v, in truth %d, %v",
				q.path,
				q.leaf.apps,
				q.leaf.amUsed,
				s.apps,
				s.am,
			)
		}
		var byActive vec
		active, limited, weights, allWeights := 0, 0, 0.0, 0.0
		for _, u := range q.leaf.userList {
			us := perUser[u]
			if us == nil {
				us = &sums{}
			}
			if !us.used.is(&u.used) || !us.am.is(&u.amUsed) || us.apps != u.total || us.running != u.running ||
				us.waitingApps != u.waitingApps {
				c.fail(
					"user %s of %s: used %v apps %d running %d waiting %d, in truth %v %d %d %d",
					u.name,
					q.path,
					u.used,
					u.total,
					u.running,
					u.waitingApps,
					us.used,
					us.apps,
					us.running,
					us.waitingApps,
				)
			}
			allWeights += u.weight
			if u.waitingApps > 0 {
				active++
				weights += u.weight
				byActive.add(&u.used)
			}
			if u.limited {
				limited++
			}
			if sure, limit := q.sized().leaf.sure, m.userLimit(
				u,
			); m.tree.spec.Scheduler == queues.CapacityScheduler && u.weight == 1 &&
				!m.t.fits(&sure, &limit) {
				c.fail("user %s of %s: %v is sure, above the limit of %v", u.name, q.path, sure, limit)
			}
		}
		if math.Abs(weights-q.leaf.weights) > 1e-6 || math.Abs(allWeights-q.leaf.allWeights) > 1e-6 {
			c.fail(
				"queue %s: weights of users %v, active %v, in truth %v, %v",
				q.path,
				q.leaf.allWeights,
				q.leaf.weights,
				allWeights,
				weights,
			)
		}
		if active != q.leaf.active || !byActive.is(&q.leaf.usedByActive) || limited != q.leaf.limitedUsers {
			c.fail(
				"queue %s: active users %d using %v, limited %d, in truth %d, %v, %d",
				q.path,
				q.leaf.active,
				q.leaf.usedByActive,
				q.leaf.limitedUsers,
				active,
				byActive,
				limited,
			)
		}
	}
}

// app checks one application and gives what it adds to its queue, if anything.
func (c *auditor) app(a *app) (sums, bool) {
	s := sums{apps: 1}
	for _, t := range a.attempts {
		owns := false
		for k := range t.containers() {
			owns = true
			s.used.add(&c.m.sizeOf(k).v)
			s.containers++
		}
		if t.over() && t != a.current && owns {
			c.fail("%s is %s and owns containers", t.id, t.state)
		}
		for i, w := range t.wants {
			if i > 0 && t.wants[i-1].compare(w.priority, w.alloc, w.execution) >= 0 {
				c.fail("%s: asks out of order", t.id)
			}
			if w.count < 0 || w.count == 0 && !w.placed() {
				c.fail("%s: empty ask kept at priority %d", t.id, w.priority)
			}
			if w.size != nil {
				s.pending.addTimes(&w.size.v, int64(w.count))
				s.pendingCount += w.count
			}
			if w.hold != nil {
				s.held.add(&w.hold.size.v)
			}
			for _, p := range slices.Concat(w.hosts, w.racks) {
				if p.count <= 0 {
					c.fail("%s: place %s with count %d", t.id, p.name, p.count)
				}
			}
		}
	}
	if !s.used.is(&a.used) || s.containers != a.containers || !s.pending.is(&a.pending) ||
		s.pendingCount != a.pendingCount ||
		!s.held.is(&a.held) {
		c.fail(
			"%s: used %v (%d) pending %v (%d) held %v, in truth %v (%d) %v (%d) %v",
			a.id,
			a.used,
			a.containers,
			a.pending,
			a.pendingCount,
			a.held,
			s.used,
			s.containers,
			s.pending,
			s.pendingCount,
			s.held,
		)
	}
	if !a.inQueue {
		if s.containers > 0 || s.pendingCount > 0 || a.slot != 0 || a.pendSlot != 0 {
			c.fail(
				"%s is %s, out of its queue, and has %d containers, %d pending",
				a.id,
				a.state,
				s.containers,
				s.pendingCount,
			)
		}
		return s, false
	}
	if waits := a.pendingCount > 0 && a.runnable(); waits != a.waits || waits != (a.slot != 0) {
		c.fail("%s: waits %v, in the order %v, should be %v", a.id, a.waits, a.slot != 0, waits)
	}
	if a.waits {
		s.waitingApps = 1
	}
	if a.activated {
		s.running = 1
		if a.amSize != nil {
			s.am = a.amSize.v
		}
	}
	return s, true
}

func add[K comparable](to map[K]*sums, k K, s *sums) {
	t := to[k]
	if t == nil {
		t = &sums{}
		to[k] = t
	}
	t.used.add(&s.used)
	t.held.add(&s.held)
	t.pending.add(&s.pending)
	t.am.add(&s.am)
	t.containers += s.containers
	t.pendingCount += s.pendingCount
	t.apps += s.apps
	t.running += s.running
	t.waitingApps += s.waitingApps
}

func (c *auditor) queues() {
	m := c.m
	for _, q := range m.tree.all {
		if m.tree.byPath[q.path] != q {
			c.fail("queue %s is not found by its path", q.path)
		}
		var used vec
		for _, k := range q.children {
			used.add(&k.used)
		}
		if q.leaf == nil && !used.is(&q.used) {
			c.fail("queue %s: used %v, children sum to %v", q.path, q.used, used)
		}
	}
}

// order checks the heaps: who waits is in, who does not is out, and everybody
// stands where its rank says.
func (c *auditor) order() {
	blockers := 0
	for _, q := range c.m.tree.all {
		parked := 0
		for _, k := range q.children {
			in := k.slot != 0
			if in && k.parked {
				c.fail("queue %s is parked and in the order", k.path)
			}
			if k.parked {
				parked++
			}
			if has := k.hasReady(); has != (in || k.parked) {
				c.fail("queue %s: something waits %v, in the order %v, parked %v", k.path, has, in, k.parked)
			}
			if in && k.least.is(&vecMax) {
				c.fail("queue %s waits for nothing", k.path)
			}
		}
		if w := q.blocker; w != nil {
			if blockers++; w.stops != q {
				c.fail("queue %s: blocked by an ask of %s that does not know it", q.path, w.attempt.id)
			}
		}
		if parked != q.parkedBelow {
			c.fail("queue %s: %d children parked, counted %d", q.path, parked, q.parkedBelow)
		}
		sorted(c, q.path, &q.ready)
		if q.leaf == nil {
			continue
		}
		for _, u := range q.leaf.userList {
			if (u.slot != 0) != (u.apps.len() > 0) {
				c.fail(
					"user %s of %s: in the order %v, applications waiting %d",
					u.name,
					q.path,
					u.slot != 0,
					u.apps.len(),
				)
			}
			sorted(c, q.path, &u.apps)
			for _, a := range u.apps.items {
				if !c.m.t.fits(&q.least, &a.least) {
					c.fail("queue %s: least %v above that of %s, %v", q.path, q.least, a.id, a.least)
				}
			}
		}
		sorted(c, q.path, &q.users)
		for p := q; p.parent != nil; p = p.parent {
			if p.hasReady() && !c.m.t.fits(&p.parent.least, &p.least) {
				c.fail(
					"queue %s: least %v above that of its child %s, %v",
					p.parent.path,
					p.parent.least,
					p.path,
					p.least,
				)
			}
		}
	}
	if blockers > c.m.blockers {
		c.fail("%d queues are blocked, counted %d", blockers, c.m.blockers)
	}
}

func sorted[T any](c *auditor, path creel.QueuePath, h *heap[T]) {
	for i, x := range h.items {
		if int(*h.slot(x)) != i+1 {
			c.fail("queue %s: element %d of a heap thinks it is at %d", path, i, *h.slot(x)-1)
		}
		if i > 0 && h.less(x, h.items[(i-1)/2]) {
			c.fail("queue %s: heap out of order at %d", path, i)
		}
	}
}
