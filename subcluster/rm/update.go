// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Reasons of rejected updates, as YARN names them.
const (
	unknownContainer = "INVALID_CONTAINER_ID"
	wrongVersion     = "INCORRECT_CONTAINER_VERSION_ERROR"
	outstanding      = "UPDATE_OUTSTANDING_ERROR"
	outsideRange     = "RESOURCE_OUTSIDE_ALLOWED_RANGE"
)

// asBefore is the reason why an update changes nothing; it is not sent.
const asBefore = "as before"

// updates are the UpdateContainerRequests of one call of an attempt.
//
// A decrease takes effect here and is pushed to the node. An increase is charged here; it takes effect when the AM
// passes the new token to the node, else it is rolled back. A promotion waits until the scheduler can charge for the
// container on its node. A demotion takes effect here. After both, the AM passes the new token to the node.
type updates struct {
	m    *Machine
	t    *attempt
	list []*pendingUpdate
}

// pendingUpdate is a valid request with its container.
type pendingUpdate struct {
	*Update
	c  *container
	to *amounts.Size // of Increase and Decrease
}

// handling is the order in which Hadoop handles the updates of a call.
var handling = [...]UpdateKind{Promote, Increase, Demote, Decrease}

// apply checks all requests first, in the order of the call.
func (u *updates) apply(list []Update) {
	for i := range list {
		p := &pendingUpdate{Update: &list[i], c: u.m.apps.container(list[i].Container)}
		switch wrong, version := u.check(p); wrong {
		case "":
			u.list = append(u.list, p)
		case asBefore: // as in Hadoop, without an answer
		default:
			u.t.errors = append(u.t.errors, UpdateError{Reason: wrong, Version: version, Update: list[i]})
		}
	}
	for _, kind := range handling {
		for _, p := range u.list {
			if p.Kind == kind {
				u.perform(p)
			}
		}
	}
}

// check returns the reason why a request is not performed, with the container's version, by Hadoop's checks in
// Hadoop's order; "" if it is. It sets the size of an increase or a decrease.
func (u *updates) check(p *pendingUpdate) (wrong string, version int32) {
	m, c := u.m, p.c
	if c == nil || c.owner() != u.t || c.state == cAllocated { // its AM does not know it yet
		return unknownContainer, -1
	}
	version = c.rare().version
	if p.Version != version {
		return wrongVersion, version
	}
	if c.rare().from != nil || slices.ContainsFunc(u.list, func(p *pendingUpdate) bool { return p.c == c }) {
		return outstanding, version
	}
	switch p.Kind {
	case Increase, Decrease:
		v, err := m.sizes.Normalize(p.Resource, u.t.app.Queue().Largest())
		has := &m.sizeOf(c).V
		if err != nil || p.Kind == Increase && !m.sizes.Fits(has, &v) || p.Kind == Decrease && !m.sizes.Fits(&v, has) {
			return outsideRange, version
		}
		p.to = m.sizes.Of(v)
	case Promote, Demote:
		if c.executionType() == p.Kind.execution() {
			return asBefore, version
		}
		if c.am && p.Kind == Demote {
			return unknownContainer, version
		}
	default:
		return unknownContainer, version
	}
	if x := c.rare().growing; x != nil && x.promotes() && !x.lent {
		return outstanding, version
	}
	return "", version
}

// execution is the execution type after the update.
func (k UpdateKind) execution() creel.ExecutionType {
	if k == Demote {
		return creel.Opportunistic
	}
	return creel.Guaranteed
}

func (u *updates) perform(p *pendingUpdate) {
	m, c := u.m, p.c
	switch {
	case p.Kind == Decrease:
		m.containers.resize(c, p.to)
		m.containers.updated(u.t, c, Decrease)
		c.node.updates = append(c.node.updates, m.containers.grantOf(c))
	case p.Kind == Increase:
		u.increase(p)
	case m.opportunistic == nil:
		c.setExecution(p.Kind.execution())
		m.containers.retyped(u.t, c, p.Kind)
	case p.Kind == Promote:
		if x := c.rare().growing; x != nil {
			m.containers.withdraw(x) // its AM learns of the promotion
		}
		u.wait(&growth{Increase: sched.Increase{To: m.sizeOf(c)}, c: c, update: *p.Update})
	default:
		m.opportunistic.demote(c)
		m.containers.retyped(u.t, c, Demote)
	}
}

func (u *updates) increase(p *pendingUpdate) {
	m, c := u.m, p.c
	if x := c.rare().growing; x != nil {
		m.containers.withdraw(x) // the newer one counts
	}
	x := &growth{Increase: sched.Increase{From: m.sizeOf(c), To: p.to}, attempt: u.t, c: c, update: *p.Update}
	if c.uncharged() {
		m.opportunistic.resize(c, p.to)
		m.containers.grown(x)
		return
	}
	u.wait(x)
}

// wait books an increase or a promotion, now or when there are free resources on the container's node.
func (u *updates) wait(x *growth) {
	x.attempt, x.App, x.Node, x.Owner = u.t, &u.t.app.App, &x.c.node.Node, x
	if !u.m.sched.Increase(&x.Increase) {
		u.t.growing = append(u.t.growing, x)
		x.c.more().growing = x
		return
	}
	u.m.containers.grown(x)
}

// resize changes the size of a container, regardless of limits.
func (l *containerLife) resize(c *container, to *amounts.Size) {
	m := l.m
	if c.uncharged() {
		m.opportunistic.resize(c, to)
		return
	}
	m.sched.Resize(&c.owner().app.App, &c.node.Node, m.sizeOf(c), to)
	l.setSize(c, to)
}

// growth is an increase or a promotion of a container; it may wait for free resources.
type growth struct {
	sched.Increase
	attempt *attempt
	c       *container
	update  Update
	lent    bool // a promotion that no AM has asked for; see lender
}

// promotes reports whether it is a promotion.
func (x *growth) promotes() bool { return x.From == nil }

// grown books an increase or a promotion for which the scheduler has charged.
func (l *containerLife) grown(x *growth) {
	m := l.m
	t, c, from := x.attempt, x.c, x.From
	x.forget()
	if x.promotes() {
		m.opportunistic.promote(c)
		if x.lent { // its AM need not know
			c.more().version++
			c.node.updates = append(c.node.updates, l.grantOf(c))
			return
		}
		l.retyped(t, c, Promote)
		return
	}
	l.setSize(c, x.To)
	l.updated(t, c, Increase)
	if m.cfg.AutoUpdate {
		c.node.updates = append(c.node.updates, l.grantOf(c))
		return
	}
	more := c.more()
	more.from = from
	more.timer = m.timers.arm(m.now+int64(m.cfg.ContainerExpiry), func() {
		// The update never reached the node: back to the former size.
		more.timer, more.from = nil, nil
		l.resize(c, from)
		more.version++
		c.node.updates = append(c.node.updates, l.grantOf(c))
	})
}

// withdraw cancels an increase or a promotion that waits for free resources.
func (l *containerLife) withdraw(x *growth) {
	l.m.sched.Withdraw(&x.Increase)
	x.forget()
}

func (x *growth) forget() {
	if x.c.rare().growing == x {
		x.c.extra.growing = nil
	}
	if i := slices.Index(x.attempt.growing, x); i >= 0 {
		x.attempt.growing = slices.Delete(x.attempt.growing, i, i+1)
	}
}

// retyped notifies the AM of a container's new execution type, and also its node if the configuration says so.
func (l *containerLife) retyped(t *attempt, c *container, kind UpdateKind) {
	l.updated(t, c, kind)
	if l.m.cfg.AutoUpdate {
		c.node.updates = append(c.node.updates, l.grantOf(c))
	}
}

// updated raises a container's version and notifies its AM. A waiting increase is for the old version, and is
// rejected.
func (l *containerLife) updated(t *attempt, c *container, kind UpdateKind) {
	more := c.more()
	more.version++
	if x := more.growing; x != nil {
		l.withdraw(x)
		if !x.lent {
			t.errors = append(t.errors, UpdateError{Reason: wrongVersion, Version: more.version, Update: x.update})
		}
	}
	t.updated = append(t.updated, ContainerUpdate{Kind: kind, Grant: l.grantOf(c)})
	l.m.attempts.news(t)
}

// increased runs when the node has applied a new size. Another size than the container's is a former increase, which
// was rolled back before its acknowledgement arrived: the present one can still fail.
func (l *containerLife) increased(c *container, to amounts.Vec) {
	m := l.m
	if c.rare().from != nil && to.Is(&m.sizeOf(c).V) {
		c.extra.from = nil
		m.timers.stop(&c.extra.timer)
	}
}
