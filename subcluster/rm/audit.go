// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Audit recomputes all sums and indexes of the machine and its scheduler from containers and asks, and checks the
// invariants. No allocation exceeds its node's size or its queue's maximum. Children sum to their parents, and every
// waiting application has its place in the order. It returns all violations joined, nil for none. It reads everything
// and changes nothing.
func (r Reader) Audit() error {
	m := r.m
	c := auditor{m: m, sched: m.sched.Audit()}
	live := int32(0)
	for _, n := range m.nodes.list {
		live += c.node(n)
	}
	if live != m.count.containers || m.count.granted-m.count.released != int64(live) {
		c.fail("granted %d, released %d, %d containers counted, but %d live",
			m.count.granted, m.count.released, m.count.containers, live)
	}
	uams := 0
	for _, a := range m.apps.list {
		if m.apps.byID[a.id] != a {
			continue
		}
		c.app(a)
		if _, counted := m.apps.uams[a]; counted != (a.isUAM() && !a.state.ended()) {
			c.fail("%s: a UAM is %v, in state %v, but counted as one that lives: %v", a.id, a.isUAM(), a.state, counted)
		} else if counted {
			uams++
		}
	}
	if uams != len(m.apps.uams) {
		c.fail("%d UAMs are counted as living, in truth %d", len(m.apps.uams), uams)
	}
	c.tallies()
	c.sched.Everything()
	return c.err()
}

type auditor struct {
	m     *Machine
	sched *sched.Audit
	near  *holdings // nil: sums are computed from all containers
	errs  []error
}

func (c *auditor) err() error { return errors.Join(append(c.errs, c.sched.Err())...) }

func (c *auditor) fail(format string, args ...any) {
	if len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// node checks one node and counts its containers.
func (c *auditor) node(n *node) int32 {
	m := c.m
	var used amounts.Vec
	var free uncharged
	count := int32(0)
	for i, k := range n.live {
		if k == nil {
			continue
		}
		if int(k.slot) != i || k.node != n {
			c.fail("node %s: broken list of containers at %d", n.ID(), i)
			return count
		}
		if m.apps.container(k.id()) != k {
			c.fail("node %s: container %s is not found by its id", n.ID(), k.id())
		}
		if k.state >= cCompleted {
			c.fail("node %s: container %s is %s and still there", n.ID(), k.id(), k.state)
		}
		if k.state < cRunning != (k.wait != 0 && m.containers.unlaunched.Get(k.wait) == k) {
			c.fail("container %s is %s; waits for its start: %v", k.id(), k.state, k.wait != 0)
		}
		count++
		if k.uncharged() {
			free.add(m, k)
			continue
		}
		if k.rare().queued > 0 {
			c.fail("guaranteed container %s waits in the queue of opportunistic ones", k.id())
		}
		used.Add(&m.sizeOf(k).V)
	}
	c.opportunistic(n, &free)
	if count != n.count {
		c.fail("node %s: %d containers counted, %d there", n.ID(), n.count, count)
	}
	if !n.state.runs() && count > 0 {
		c.fail("node %s is %s and has %d containers", n.ID(), n.state, count)
	}
	if hears := m.nodes.commands.IsOpen(n.Serial()); hears != n.listens() {
		c.fail("node %s is %s: commands are kept for it %v", n.ID(), n.state, hears)
	}
	c.sched.Node(&n.Node, used, n.override || n.recovered)
	return count - free.containers
}

// opportunistic compares the booked opportunistic containers of a node with its containers.
func (c *auditor) opportunistic(n *node, is *uncharged) {
	o := c.m.opportunistic
	if o == nil {
		if is.containers > 0 {
			c.fail("node %s has opportunistic containers, which are not allocated", n.ID())
		}
		return
	}
	placed, containers, unseen := o.nodes.Booked(n.Serial())
	if containers != is.containers || unseen != is.unseen || !placed.Is(&is.placed) {
		c.fail("node %s: %d opportunistic containers of %v, %d unseen; counted %d of %v, %d unseen",
			n.ID(), is.containers, is.placed, is.unseen, containers, placed, unseen)
	}
}

// app checks one application.
func (c *auditor) app(a *app) {
	if was := c.m.appView(a); was.Over && !reflect.DeepEqual(was, c.m.newAppView(a)) {
		c.fail("%s was over and has changed: %+v, now %+v", a.id, was, c.m.newAppView(a))
	}
	holds, free, current := c.near.sums(a)
	if !current {
		holds, free = c.held(a)
	}
	if may := a.mayGet(); may != a.Open() && a.InQueue() {
		c.fail("%s is %s: the scheduler may give it containers %v, should be %v", a.id, a.state, a.Open(), may)
	}
	if u := a.opportunisticUse(0); u.containers != free.containers || !u.used.Is(&free.placed) {
		c.fail("%s has %d opportunistic containers of %v, counted %d of %v",
			a.id, free.containers, free.placed, u.containers, u.used)
	}
	c.sched.App(&a.App, holds)
}

// held sums an application's containers, by the label of their nodes, and its opportunistic ones.
func (c *auditor) held(a *app) (holds map[string]sched.Holding, free uncharged) {
	holds = map[string]sched.Holding{}
	for _, t := range a.attempts {
		owns := false
		for k := range t.containers() {
			owns = true
			if c.near != nil && k.node != nil {
				c.near.refresh(k.node)
			}
			if k.uncharged() {
				free.add(c.m, k)
				continue
			}
			label := ""
			if k.node != nil {
				label = k.node.Label()
			} else {
				c.fail("container %s is on no node", k.id())
			}
			h := holds[label]
			h.Used.Add(&c.m.sizeOf(k).V)
			h.Containers++
			holds[label] = h
		}
		if t.over() && t != a.current && owns {
			c.fail("%s is %s and owns containers", t.id, t.state)
		}
	}
	return holds, free
}

// tallies checks the counts of queues' opportunistic containers.
func (c *auditor) tallies() {
	o := c.m.opportunistic
	if o == nil || o.tallies == nil {
		return
	}
	if again := o.tallied(); !reflect.DeepEqual(o.tallies, again) {
		c.fail("queues have opportunistic containers %v, counted %v", again, o.tallies)
	}
}
