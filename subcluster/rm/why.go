// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"

	"github.com/creelrm/creel"
)

// Why tells what holds an application back now, with the numbers of the limit.
// It looks at the limits in the order the machine does, and changes nothing;
// so the answer is that of the moment, not of the last time somebody wrote a
// line. False if there is no such application.
func (m *Machine) Why(id creel.ApplicationID) (Why, bool) {
	a := m.apps[id]
	if a == nil {
		return Why{}, false
	}
	w := Why{App: id, State: a.state.public(a.before), User: a.sub.User, Where: a.path, Waiting: a.pendingCount}
	switch {
	case a.state.ended():
		w.Text = "It has ended: " + a.diag
	case a.state == appNewSaving || a.state == appFinalSaving || a.state == appNew:
		w.Limit, w.Text = LimitSaving, "Its state is being made durable."
	case !a.inQueue:
		w.Text = "It is being taken in."
	case !a.activated:
		m.whyNotActive(a, &w)
	case a.pendingCount > 0:
		m.whyWaiting(a, &w)
	case a.current != nil && a.current.state != tRunning && a.current.state < tFinalSaving:
		w.Limit, w.Text = LimitMaster, fmt.Sprintf("Its master is %s and has not registered yet.", a.current.state)
		w.Try = "look at the master's log; it has " + m.cfg.MasterExpiry.String() + " from its launch to register"
	default:
		w.Text = "Nothing: it has all it asked for."
	}
	return w, true
}

func (m *Machine) whyNotActive(a *app, w *Why) {
	limit, q := m.mayActivate(a)
	w.Limit = limit
	if a.amSize != nil {
		w.Need = a.amSize.Resource
	}
	if q != nil {
		w.Where = q.path
	}
	switch limit {
	case LimitParallelApps:
		if q != nil {
			w.Count, w.Max = q.running, q.maxRunning
			w.Text = fmt.Sprintf("Queue %s runs %d applications of at most %d at once.", q.path, w.Count, w.Max)
			w.Try = "wait until one ends, or raise the queue's limit of parallel applications"
			return
		}
		w.Count, w.Max = *m.userRunning[a.sub.User], m.userMaxApps(a.sub.User)
		w.Text = fmt.Sprintf("User %s runs %d applications of at most %d at once.", a.sub.User, w.Count, w.Max)
		w.Try = "wait until one ends, or raise the user's limit of parallel applications"
	case LimitAM, LimitUserAM:
		all, one := m.masterLimit(q, inViews)
		used, who, bound := q.leaf.amUsed, "Masters in queue "+string(q.path), all
		if limit == LimitUserAM {
			used, who, bound = a.user.amUsed, "Masters of user "+a.sub.User+" in queue "+string(q.path), one
		}
		w.Used, w.Bound = m.t.resource(&used), m.t.resource(&bound)
		w.Text = fmt.Sprintf("%s use %s of at most %s; this one needs %s.", who, w.Used, w.Bound, w.Need)
		w.Try = "wait until an application ends, ask for a smaller master, or raise the queue's share for masters (maximum-am-resource-percent, maxAMShare)"
	default:
		// It may start, but others are first in line.
		w.Limit, w.Text = LimitAM, fmt.Sprintf(
			"Others are first in line in queue %s: %d applications wait to start.",
			a.queue.path,
			a.queue.leaf.pendingApps,
		)
	}
}

func (m *Machine) whyWaiting(a *app, w *Why) {
	for _, k := range a.current.wants {
		if k.count <= 0 || k.size == nil {
			continue
		}
		m.whyAsk(a, k, w)
		return
	}
}

// whyAsk explains the first outstanding ask.
func (m *Machine) whyAsk(a *app, k *want, w *Why) {
	w.Ask, w.Need = k.view(m), k.size.Resource
	if k.hold != nil {
		n := k.hold.node
		w.Limit, w.Used, w.Bound = LimitReservation, m.t.resource(&n.free), k.size.Resource
		w.Text = fmt.Sprintf("Node %s is reserved for it and has %s free; it needs %s.", n.id, w.Used, w.Need)
		w.Try = "wait until containers on that node end"
		return
	}
	if v := m.admit(a, k.size, nil); v.limit != LimitNone {
		w.Limit, w.Where = v.limit, v.where.path
		if v.limit == LimitQueue && v.where.cap != nil {
			have := v.where.used
			have.add(&v.where.held)
			if !m.underCap(v.where, &have, &k.size.v) {
				m.whyCap(v.where, w.Need, w)
				return
			}
		}
		if v.limit == LimitQueue {
			have := v.where.used
			have.add(&v.where.held)
			w.Used, w.Bound = m.t.resource(&have), m.t.resource(&v.where.max)
			w.Text = fmt.Sprintf(
				"Queue %s uses %s of at most %s; one more container needs %s.",
				v.where.path,
				w.Used,
				w.Bound,
				w.Need,
			)
			w.Try = "wait until containers of the queue end, move the application, or raise the queue's maximum"
			return
		}
		limit := m.userLimit(a.user)
		w.Used, w.Bound = m.t.resource(&a.user.used), m.t.resource(&limit)
		w.Text = fmt.Sprintf(
			"User %s uses %s in queue %s, above the user limit of %s.",
			a.sub.User,
			w.Used,
			v.where.path,
			w.Bound,
		)
		w.Try = "wait until containers of the user end, or raise the queue's user-limit-factor or minimum-user-limit-percent"
		return
	}
	for q := a.queue; q != nil; q = q.parent {
		b := q.blocker
		if b == nil || b == k || !m.waitsFor(b, q) {
			continue
		}
		have := q.used
		have.add(&q.held)
		w.Limit, w.Where, w.Used, w.Bound = LimitQueue, q.path, m.t.resource(&have), m.t.resource(&q.max)
		w.Text = fmt.Sprintf(
			"Queue %s uses %s of at most %s; %s is before it and waits there for %s, which smaller asks may not pass.",
			q.path,
			w.Used,
			w.Bound,
			b.attempt.app.id,
			b.size.Resource,
		)
		w.Try = "wait until containers of the queue end, or raise the queue's maximum"
		return
	}
	m.whyNoNode(a, k, w)
}

// nodeTally counts the nodes by what keeps an ask off them.
type nodeTally struct{ takes, large, allowed, room, held int }

func (m *Machine) whyNoNode(a *app, k *want, w *Why) {
	var t nodeTally
	best := vec{}
	for _, n := range m.nodeList {
		if !n.state.takes() {
			continue
		}
		t.takes++
		best.max(&n.free)
		if !m.t.fits(&k.size.v, &n.total) {
			continue
		}
		t.large++
		if k.attempt.black.bars(n) {
			continue
		}
		t.allowed++
		if !m.t.fits(&k.size.v, &n.free) {
			continue
		}
		t.room++
		if n.hold != nil {
			t.held++
		}
	}
	w.Used, w.Count, w.Max = m.t.resource(&best), t.room, t.takes
	switch {
	case t.takes == 0:
		w.Limit, w.Text, w.Try = LimitNoNode, "No node is running.", "start a NodeManager"
	case t.large == 0:
		w.Limit = LimitNoNode
		w.Text = fmt.Sprintf("It needs %s; none of the %d nodes has that much even when empty.", w.Need, t.takes)
		w.Try = "ask for smaller containers or add larger nodes"
	case t.allowed == 0:
		w.Limit = LimitBlacklist
		w.Text = fmt.Sprintf("All %d nodes that are large enough are on its blacklist.", t.large)
		w.Try = "remove nodes from the blacklist"
	case t.room == 0:
		w.Limit = LimitRoom
		w.Text = fmt.Sprintf(
			"It needs %s; none of the %d nodes it may use has that much free (most free of each type: %s).",
			w.Need,
			t.allowed,
			w.Used,
		)
		w.Try = "wait until containers end, or add nodes"
	case t.held == t.room:
		w.Limit = LimitReservation
		w.Text = fmt.Sprintf("The %d nodes with room for %s are reserved for others.", t.room, w.Need)
		w.Try = "wait for the reservations to be fulfilled"
	case k.strict:
		w.Limit = LimitLocality
		w.Text = fmt.Sprintf(
			"It takes only the places it names (%d hosts, %d racks), and none has room; %d other nodes have.",
			len(k.hosts),
			len(k.racks),
			t.room,
		)
		w.Try = "relax locality, or wait until containers there end"
	default:
		w.Limit = LimitLocality
		left := int64(0)
		if k.slot != 0 {
			left = k.relaxAt - m.opps
		}
		w.Text = fmt.Sprintf(
			"It waits for a node it names; %d other nodes have room. It goes further after %d more opportunities.",
			t.room,
			max(left, 0),
		)
		w.Try = "wait, or lower the locality delay"
	}
}
