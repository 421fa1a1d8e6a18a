// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// update applies one UpdateContainerRequest. A decrease takes effect here and is pushed to the node. An increase is
// charged here; it takes effect when the AM passes the new token to the node, else it is rolled back. Promotions and
// demotions change the execution type.
func (m *Machine) update(t *attempt, u *Update) {
	fail := func(reason string, version int32) {
		t.errors = append(t.errors, UpdateError{Reason: reason, Version: version, Update: *u})
	}
	c := m.container(u.Container)
	if c == nil || c.owner() != t {
		fail("INVALID_CONTAINER_ID", 0)
		return
	}
	version := c.rare().version
	if u.Version != version {
		fail("INCORRECT_CONTAINER_VERSION_ERROR", version)
		return
	}
	if c.rare().from != nil ||
		slices.ContainsFunc(t.updated, func(x ContainerUpdate) bool { return x.Grant.ID == u.Container }) {
		fail("UPDATE_OUTSTANDING_ERROR", version)
		return
	}
	switch u.Kind {
	case Increase, Decrease:
		v, err := m.sizes.Normalize(u.Resource, t.app.Queue().Largest())
		if err != nil {
			fail("RESOURCE_OUTSIDE_ALLOWED_RANGE", version)
			return
		}
		has := &m.sizeOf(c).V
		grows := !m.sizes.Fits(&v, has)
		shrinks := !m.sizes.Fits(has, &v)
		if u.Kind == Increase && shrinks || u.Kind == Decrease && grows {
			fail("RESOURCE_OUTSIDE_ALLOWED_RANGE", version)
			return
		}
		m.resizeContainer(t, c, u, m.sizes.Of(v))
	case Promote, Demote:
		to := creel.Guaranteed
		if u.Kind == Demote {
			to = creel.Opportunistic
		}
		if c.execution == uint8(to) {
			fail("INVALID_CONTAINER_ID", version)
			return
		}
		c.execution = uint8(to)
		m.updated(t, c, u.Kind)
	default:
		fail("INVALID_CONTAINER_ID", version)
	}
}

func (m *Machine) resizeContainer(t *attempt, c *container, u *Update, s *amounts.Size) {
	if u.Kind == Decrease {
		m.sched.Resize(&t.app.App, &c.node.Node, m.sizeOf(c), s)
		m.setSize(c, s)
		m.updated(t, c, Decrease)
		c.node.updates = append(c.node.updates, m.grantOf(c))
		return
	}
	if x := c.rare().growing; x != nil {
		m.withdraw(x) // the newer one counts
	}
	x := &growth{
		Increase: sched.Increase{App: &t.app.App, Node: &c.node.Node, From: m.sizeOf(c), To: s},
		attempt:  t,
		c:        c,
		update:   *u,
	}
	x.Owner = x
	if !m.sched.Increase(&x.Increase) {
		t.growing = append(t.growing, x)
		c.more().growing = x
		return
	}
	m.grown(x)
}

// growth is an increase of a container; it may wait for free resources.
type growth struct {
	sched.Increase
	attempt *attempt
	c       *container
	update  Update
}

// grown books an increase that the scheduler granted.
func (m *Machine) grown(x *growth) {
	t, c, from := x.attempt, x.c, x.From
	m.forget(x)
	m.setSize(c, x.To)
	m.updated(t, c, Increase)
	if m.cfg.AutoUpdate {
		c.node.updates = append(c.node.updates, m.grantOf(c))
		return
	}
	more := c.more()
	more.from = from
	more.timer = m.timer(m.now+int64(m.cfg.ContainerExpiry), func() {
		// The update never reached the node: back to the former size.
		more.timer, more.from = nil, nil
		m.sched.Resize(&t.app.App, &c.node.Node, m.sizeOf(c), from)
		m.setSize(c, from)
		more.version++
		c.node.updates = append(c.node.updates, m.grantOf(c))
	})
}

// withdraw cancels an increase that waits for free resources.
func (m *Machine) withdraw(x *growth) {
	m.sched.Withdraw(&x.Increase)
	m.forget(x)
}

func (m *Machine) forget(x *growth) {
	if x.c.rare().growing == x {
		x.c.extra.growing = nil
	}
	if i := slices.Index(x.attempt.growing, x); i >= 0 {
		x.attempt.growing = slices.Delete(x.attempt.growing, i, i+1)
	}
}

// updated raises a container's version and notifies its AM. A waiting increase is for the old version, and is
// rejected.
func (m *Machine) updated(t *attempt, c *container, kind UpdateKind) {
	more := c.more()
	more.version++
	if x := more.growing; x != nil {
		m.withdraw(x)
		t.errors = append(
			t.errors,
			UpdateError{Reason: "INCORRECT_CONTAINER_VERSION_ERROR", Version: more.version, Update: x.update},
		)
	}
	t.updated = append(t.updated, ContainerUpdate{Kind: kind, Grant: m.grantOf(c)})
	m.news(t)
}

// increased runs when the node has applied a new size.
func (m *Machine) increased(c *container) {
	if c.rare().from != nil {
		c.extra.from = nil
		m.stop(&c.extra.timer)
	}
}
