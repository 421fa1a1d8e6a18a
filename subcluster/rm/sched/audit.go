// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/audit"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Audit recomputes all sums and indexes of the scheduler from its asks and from the owner's containers, and checks
// the invariants. No allocation exceeds its node's size or its queue's maximum. Children sum to their parents, and
// every waiting application has its place in the order. It changes nothing.
//
// A full audit is Node for each node, App for each application, then Everything. An audit of changes is Node, App and
// Around for the content of Changes.
type Audit struct {
	part     *partition
	errs     []error
	perQueue audit.Ledger[*Queue]
	perUser  audit.Ledger[*user]

	parts map[*partition]*Audit // of other partitions

	total                     amounts.Vec
	active, reserved, waiting int
}

// Audit starts an audit.
func (s *Scheduler) Audit() *Audit { return auditOf(&s.main) }

func auditOf(part *partition) *Audit {
	c := &Audit{part: part, perQueue: audit.Ledger[*Queue]{}, perUser: audit.Ledger[*user]{}}
	for _, p := range part.others() {
		if c.parts == nil {
			c.parts = map[*partition]*Audit{}
		}
		c.parts[p] = auditOf(p)
	}
	return c
}

// Err returns all violations found, joined; nil for none.
func (c *Audit) Err() error {
	errs := slices.Clone(c.errs)
	for _, p := range c.part.others() {
		if err := c.parts[p].Err(); err != nil {
			errs = append(errs, fmt.Errorf("partition %s: %w", p.label, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Audit) fail(format string, args ...any) {
	if len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// Node checks one node, whose containers sum to used. above permits a use beyond its size: the node shrank, or
// registered with these containers.
func (c *Audit) Node(n *Node, used amounts.Vec, above bool) {
	if n.of != c.part {
		c.parts[n.of].Node(n, used, above)
		return
	}
	p := c.part
	if n.use != Off {
		c.active++
		c.total.Add(&n.total)
	}
	if n.hold != nil {
		c.reserved++
	}
	free := n.total
	free.Sub(&used)
	if held := n.hold != nil || len(n.kept) > 0; !free.Is(&n.free) || n.held != held {
		c.fail("node %s: free %v reserved %v, containers say %v %v", n.id, n.free, n.held, free, held)
	}
	if !above && !p.sizes.Fits(&used, &n.total) {
		c.fail("node %s: used %v above total %v", n.id, used, n.total)
	}
	if h := n.hold; h != nil && (h.node != n || h.ask.hold != h || h.ask.count <= 0 || n.use != Open) {
		c.fail("node %s: broken reservation", n.id)
	}
	if wrong := p.nodes.Check(n.serial, n.rack, &n.free, n.roomy()); wrong != "" {
		c.fail("node %s: %s", n.id, wrong)
	}
}

// Holding is the sum of an application's containers on nodes of one label.
type Holding struct {
	Used       amounts.Vec
	Containers int32
}

// account is the account of an application.
func (a *App) account() *audit.Sums {
	return &audit.Sums{Used: a.used, Held: a.held, Pending: a.pending, Containers: a.containers, Asked: a.pendingCount}
}

// account is the account of a queue; some of it only of a leaf.
func (q *Queue) account() *audit.Sums {
	s := &audit.Sums{
		Used: q.used, Held: q.reserved.sum, Pending: q.pending, Containers: q.containers, Asked: q.pendingCount,
		Running: q.apps.running,
	}
	if l := q.leaf; l != nil {
		s.Apps, s.Begun, s.AM = l.apps, l.begun, l.amUsed
	}
	return s
}

// account is the account of a user.
func (u *user) account() *audit.Sums {
	return &audit.Sums{Used: u.used, AM: u.amUsed, Apps: u.total, Running: u.running, Waiting: u.waitingApps}
}

// Books reports whether an application is charged for exactly these containers, by the label of their nodes.
func (a *App) Books(holds map[string]Holding) bool {
	books := func(x *App, label string) bool {
		h := holds[label]
		return h.Containers == x.containers && h.Used.Is(&x.used)
	}
	known := 0
	for _, x := range a.parts {
		label := x.queue.part.label
		if _, has := holds[label]; has {
			known++
		}
		if !books(x, label) {
			return false
		}
	}
	if _, has := holds[""]; has {
		known++
	}
	return known == len(holds) && books(a, "")
}

// App checks one application; holds has the sums of its containers by the label of their nodes, "" for none.
func (c *Audit) App(a *App, holds map[string]Holding) {
	known := 0
	for _, x := range a.parts {
		p := x.queue.part
		h, has := holds[p.label]
		if has {
			known++
		}
		c.parts[p].app(x, h.Used, h.Containers)
	}
	h, has := holds[""]
	if has {
		known++
	}
	if known != len(holds) {
		c.fail("%s: has containers in %d partitions, %d known", a.id, len(holds), known)
	}
	c.app(a, h.Used, h.Containers)
}

// before reports whether w may precede x: an ask precedes scheduling requests of its key.
func (w *Ask) before(x *Ask) bool {
	c := w.compareKey(x.priority, x.alloc, x.execution)
	return c < 0 || c == 0 && x.want != nil
}

func (c *Audit) app(a *App, used amounts.Vec, containers int32) {
	s := audit.Sums{Apps: 1, Used: used, Containers: containers}
	for i, w := range a.asks {
		if i > 0 && !a.asks[i-1].before(w) {
			c.fail("%s: asks out of order", a.id)
		}
		if w.count < 0 || w.count == 0 && !w.named.Any() {
			c.fail("%s: empty ask kept at priority %d", a.id, w.priority)
		}
		if w.size != nil {
			s.Pending.AddTimes(&w.size.V, int64(w.count))
			s.Asked += int64(w.count)
		}
		if w.hold != nil {
			s.Held.Add(&w.hold.size.V)
		}
		for _, p := range slices.Concat(w.named.Hosts, w.named.Racks) {
			if p.Count <= 0 {
				c.fail("%s: place %s with count %d", a.id, p.Name, p.Count)
			}
		}
	}
	of := audit.Used | audit.Containers | audit.Pending | audit.Asked | audit.Held
	if wrong := audit.Differ(a.account(), &s, of); wrong != "" {
		c.fail("%s: %s", a.id, wrong)
	}
	if !a.inQueue {
		if s.Containers > 0 || s.Asked > 0 || a.slot != 0 || a.pendSlot != 0 || a.activated {
			c.fail("%s is out of its queue, and has %d containers, %d pending", a.id, s.Containers, s.Asked)
		}
		return
	}
	if waits := a.pendingCount > 0 && a.runnable(); waits != a.waits || waits != (a.slot != 0) {
		c.fail("%s: waits %v, in the order %v, should be %v", a.id, a.waits, a.slot != 0, waits)
	}
	if a.waits {
		s.Waiting = 1
	}
	if a.begun {
		s.Begun = 1
	}
	if a.activated && a.main == nil {
		s.Running = 1
	}
	if of := a.whole(); of.activated && of.amSize != nil && (of.amPart == a || of.amPart == nil && of == a) {
		s.AM = of.amSize.V
	}
	if of := a.whole(); a.activated != of.activated || a.open != of.open || a.priority != of.priority {
		c.fail("%s: activated %v, open %v, priority %d, should be %v, %v, %d",
			a.id, a.activated, a.open, a.priority, of.activated, of.open, of.priority)
	}
	c.waiting += s.Waiting
	for q := a.queue; q != nil; q = q.parent {
		c.perQueue.Add(q, &s)
	}
	c.perUser.Add(a.user, &s)
}

// Everything checks the sums over all calls of Node and App, and the orders.
func (c *Audit) Everything() {
	part := c.part
	for _, p := range part.others() {
		c.parts[p].Everything()
	}
	if !c.total.Is(&part.total) || c.active != part.active || c.reserved != part.reservations.count {
		c.fail("cluster: total %v active %d reserved %d, nodes say %v %d %d",
			part.total, part.active, part.reservations.count, c.total, c.active, c.reserved)
	}
	if c.waiting != part.waiting {
		c.fail("%d applications wait, %d counted", c.waiting, part.waiting)
	}
	growing := 0
	for _, n := range part.nodes.All() {
		if n == nil {
			continue
		}
		growing += len(n.increases)
	}
	if growing != part.increases.waiting {
		c.fail("%d increases wait, %d counted", growing, part.increases.waiting)
	}
	for _, q := range part.tree.all {
		c.queue(q)
		if q.leaf != nil {
			c.leaf(q)
		}
	}
	c.order()
	c.preemption()
}

func (c *Audit) queue(q *Queue) {
	if c.part.tree.at(q.path) != q {
		c.fail("queue %s is not found by its path", q.path)
	}
	of := audit.Used | audit.Held | audit.Pending | audit.Containers | audit.Asked | audit.Running
	if q.leaf != nil {
		of |= audit.Apps | audit.Begun | audit.AM
	}
	if wrong := audit.Differ(q.account(), c.perQueue.Of(q), of); wrong != "" {
		c.fail("queue %s: %s", q.path, wrong)
	}
	var used amounts.Vec
	for _, k := range q.children {
		used.Add(&k.used)
	}
	if q.leaf == nil && !used.Is(&q.used) {
		c.fail("queue %s: used %v, children sum to %v", q.path, q.used, used)
	}
}

func (c *Audit) leaf(q *Queue) {
	l := q.leaf
	var byActive amounts.Vec
	var shares shareSum
	q.sized()
	active, limited, inLine, weights, allWeights := 0, 0, 0, 0.0, 0.0
	for _, u := range l.userList {
		of := audit.Used | audit.AM | audit.Apps | audit.Running | audit.Waiting
		if wrong := audit.Differ(u.account(), c.perUser.Of(u), of); wrong != "" {
			c.fail("user %s of %s: %s", u.name, q.path, wrong)
		}
		allWeights += u.weight
		if u.waitingApps > 0 {
			active++
			weights += u.weight
			byActive.Add(&u.used)
		}
		if u.limited {
			limited++
		}
		shares += shareSum(c.part.sizes.Dominant(&u.used, &c.part.total) * wholeShare)
		if u.running == 0 && u.pending.Len() > 0 {
			inLine++
		}
		limit, has := c.part.policy.userLimit(c.part, u)
		more := func(a, b *amounts.Vec) bool { return c.part.sizes.Compare(a, b, &c.part.total) > 0 }
		if has && u.weight == 1 && u.wellWithin() && more(&u.used, &limit) {
			c.fail("user %s of %s: %v is well within, and above the limit of %v", u.name, q.path, u.used, limit)
		}
		limit.Add(&c.part.sizes.Least) // tolerance for rounding
		if assured := q.sized().leaf.assured; has && u.weight == 1 && more(&assured, &limit) {
			c.fail("user %s of %s: %v is assured, above the limit of %v", u.name, q.path, assured, limit)
		}
	}
	// FairScheduler's limit depends on shares, which a query would recompute.
	_, capacity := c.part.policy.limiter.(*capacityPolicy)
	line := &c.part.cluster.line
	if capacity && l.pending.Len() > 0 && line.heldDue == 0 && !l.queuedActivate {
		a := l.pending.Top().pending.Top()
		if limit, _ := line.mayActivate(a, inDecisions); limit == explain.LimitNone {
			c.fail("queue %s: %s is the first in line and may start, and does not", q.path, a.id)
		}
	}
	if q.usedByUsers(); shares != l.shares {
		c.fail("queue %s: users have %d of %d of the cluster, in truth %d", q.path, l.shares, wholeShare, shares)
	}
	if inLine != l.inLine {
		c.fail("queue %s: %d users with nothing but in line, in truth %d", q.path, l.inLine, inLine)
	}
	if math.Abs(weights-l.weights) > 1e-6 || math.Abs(allWeights-l.allWeights) > 1e-6 {
		c.fail("queue %s: weights of users %v, active %v, in truth %v, %v",
			q.path, l.allWeights, l.weights, allWeights, weights)
	}
	if active != l.active || !byActive.Is(&l.usedByActive) || limited != l.limitedUsers {
		c.fail("queue %s: active users %d using %v, limited %d, in truth %d, %v, %d",
			q.path, l.active, l.usedByActive, l.limitedUsers, active, byActive, limited)
	}
}

// order checks the heaps: waiting entries are in, others are out, and each has its rank.
func (c *Audit) order() {
	blockers := 0
	for _, q := range c.part.tree.all {
		parked := int32(0)
		for _, k := range q.children {
			in := k.slot != 0
			if in && k.stopped.parked {
				c.fail("queue %s is parked and in the order", k.path)
			}
			if k.stopped.parked {
				parked++
			}
			if has := k.hasReady(); has != (in || k.stopped.parked) {
				c.fail("queue %s: something waits %v, in the order %v, parked %v", k.path, has, in, k.stopped.parked)
			}
			if in && k.least.Is(&amounts.Unlimited) {
				c.fail("queue %s waits for nothing", k.path)
			}
		}
		if w := q.stopped.blocker; w != nil {
			if blockers++; w.stops != q {
				c.fail("queue %s: blocked by an ask of %s that does not know it", q.path, w.app.id)
			}
		}
		if parked != q.stopped.below {
			c.fail("queue %s: %d children parked, counted %d", q.path, parked, q.stopped.below)
		}
		sorted(c, q, &q.ready)
		if q.leaf == nil {
			continue
		}
		for _, u := range q.leaf.userList {
			if (u.slot != 0) != (u.apps.Len() > 0) {
				c.fail(
					"user %s of %s: in the order %v, applications waiting %d",
					u.name,
					q.path,
					u.slot != 0,
					u.apps.Len(),
				)
			}
			sorted(c, q, &u.apps)
			for _, a := range u.apps.Items {
				if !c.part.sizes.Fits(&q.least, &a.least) {
					c.fail("queue %s: least %v above that of %s, %v", q.path, q.least, a.id, a.least)
				}
			}
		}
		sorted(c, q, &q.users)
		for p := q; p.parent != nil; p = p.parent {
			if p.hasReady() && !c.part.sizes.Fits(&p.parent.least, &p.least) {
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
	if blockers > c.part.retries.blocked {
		c.fail("%d queues are blocked, counted %d", blockers, c.part.retries.blocked)
	}
}

func sorted[T any](c *Audit, q *Queue, h *intrusive.Heap[T]) {
	if at := h.Check(); at >= 0 {
		c.fail("queue %s: heap out of order at %d", q.path, at)
	}
}
