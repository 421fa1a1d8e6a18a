// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"

	"github.com/creelrm/creel"
)

// update takes one UpdateContainerRequest. A decrease takes effect here and is
// pushed to the node; an increase is charged here and takes effect when the
// master brings the new token to the node, or is rolled back; promotions and
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
		slices.ContainsFunc(t.updated, func(x Updated) bool { return x.Grant.ID == u.Container }) {
		fail("UPDATE_OUTSTANDING_ERROR", version)
		return
	}
	switch u.Kind {
	case Increase, Decrease:
		v, err := m.normalize(u.Resource, &t.app.queue.largest)
		if err != nil {
			fail("RESOURCE_OUTSIDE_ALLOWED_RANGE", version)
			return
		}
		has := &m.sizeOf(c).v
		grows := !m.t.fits(&v, has)
		shrinks := !m.t.fits(has, &v)
		if u.Kind == Increase && shrinks || u.Kind == Decrease && grows {
			fail("RESOURCE_OUTSIDE_ALLOWED_RANGE", version)
			return
		}
		m.resizeContainer(t, c, u, m.size(v))
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

func (m *Machine) resizeContainer(t *attempt, c *container, u *Update, s *size) {
	if u.Kind == Decrease {
		m.setSize(c, s)
		m.updated(t, c, Decrease)
		c.node.updates = append(c.node.updates, m.grantOf(c))
		return
	}
	more := s.v
	more.sub(&m.sizeOf(c).v)
	extra := &size{v: more}
	if !m.t.fits(&more, &c.node.free) || m.admit(t.app, extra, nil).limit != LimitNone {
		// No room now: it waits, and is tried again as room appears on the node.
		t.growing = append(t.growing, growth{*u, s})
		m.growers++
		return
	}
	from := m.sizeOf(c)
	m.setSize(c, s)
	m.updated(t, c, Increase)
	if m.cfg.AutoUpdate {
		c.node.updates = append(c.node.updates, m.grantOf(c))
		return
	}
	x := c.more()
	x.from = from
	x.timer = m.timer(m.now+int64(m.cfg.ContainerExpiry), func() {
		// Never brought to the node: back to what it had.
		x.timer, x.from = nil, nil
		m.setSize(c, from)
		x.version++
		c.node.updates = append(c.node.updates, m.grantOf(c))
	})
}

// growth is an increase that waits for room.
type growth struct {
	update Update
	to     *size
}

// regrow tries the increases that wait for room on n, in the order of their places there.
func (m *Machine) regrow(n *node) {
	for _, c := range n.live {
		if c == nil {
			continue
		}
		t := c.owner()
		i := slices.IndexFunc(t.growing, func(g growth) bool { return g.update.Container == c.id() })
		if i < 0 {
			continue
		}
		g := t.growing[i]
		t.growing = slices.Delete(t.growing, i, i+1)
		m.growers--
		m.update(t, &g.update) // waits again if there is still no room
	}
}

func (m *Machine) updated(t *attempt, c *container, kind UpdateKind) {
	c.more().version++
	t.updated = append(t.updated, Updated{Kind: kind, Grant: m.grantOf(c)})
	m.news(t)
}

// setSize changes what a container holds.
func (m *Machine) setSize(c *container, s *size) {
	a, was := c.owner().app, m.sizeOf(c)
	m.charge(a, was, -1)
	c.node.free.addTimes(&was.v, 1)
	c.size = s.number
	m.charge(a, s, 1)
	c.node.free.addTimes(&s.v, -1)
	m.placeInIndex(c.node)
	m.roomOn(c.node)
}

// increased: the node has taken over a new size.
func (m *Machine) increased(c *container) {
	if c.rare().from != nil {
		c.extra.from = nil
		m.stop(&c.extra.timer)
	}
}
