// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// This page fills the values that package explain reads. It asks the functions of the cycle for their verdicts, so that
// each rule exists once.

// inLine copies what stops the activation of an application. label is the partition of the limit.
func (e Explainer) inLine(a *App) (l explain.Line, label string) {
	line := &e.part.cluster.line
	limit, q := line.mayActivate(a, inViews)
	l = explain.Line{User: a.user.name, Queue: a.queue.path, Limit: limit, InLine: a.queue.leaf.pendingApps}
	if a.amSize != nil {
		l.AM = a.amSize.Resource
	}
	switch {
	case q != nil:
		l.Where = q.path
		l.Running, l.Most = q.apps.running, q.settings.maxRunning
	case limit == explain.LimitParallelApps:
		l.Running, l.Most = line.runningOf(a.user.name), line.userMaxApps(a.user.name)
	}
	if limit != explain.LimitAM && limit != explain.LimitUserAM {
		return l, ""
	}
	u := a.user
	if a.amPart != nil {
		u = a.amPart.user
	}
	used := q.leaf.amUsed
	bound, one := q.amLimit(u, inViews)
	if limit == explain.LimitUserAM {
		used, bound = u.amUsed, one
	}
	l.Used, l.Bound = q.part.sizes.Resource(&used), q.part.sizes.Resource(&bound)
	return l, q.part.label
}

// firstWaiting returns the first outstanding ask of an application and its part that has it; nil for none.
func (a *App) firstWaiting() (*App, *Ask) {
	for i := -1; i < len(a.parts); i++ {
		x := a
		if i >= 0 {
			x = a.parts[i]
		}
		if x.pendingCount == 0 {
			continue
		}
		for _, k := range x.asks {
			if k.count > 0 && k.size != nil {
				return x, k
			}
		}
		break
	}
	return a, nil
}

// stop is what stops an ask before any node is considered.
type stop struct {
	verdict
	before *Ask // an earlier ask that waits for the queue's maximum
}

// stopOf returns what stops an ask before any node is considered.
func stopOf(a *App, k *Ask) stop {
	if k.hold != nil {
		return stop{verdict: verdict{explain.LimitReservation, a.queue}}
	}
	if v := a.admit(k.size, nil); v.limit != explain.LimitNone {
		return stop{verdict: v}
	}
	for q := a.queue; q != nil; q = q.parent {
		if b := q.stopped.blocker; b != nil && b != k && b.waitsFor(q) {
			return stop{verdict{explain.LimitQueue, q}, b}
		}
	}
	return stop{}
}

// stopped copies what stops an ask.
func (e Explainer) stopped(a *App, k *Ask, by stop) *explain.Stop {
	p, q := e.part, by.where
	s := &explain.Stop{User: a.user.name, Ask: k.view(), Limit: by.limit, Where: q.path}
	switch {
	case by.limit == explain.LimitReservation:
		n := k.hold.node
		s.Node, s.Used, s.Bound = n.id, p.sizes.Resource(&n.free), k.size.Resource
	case by.limit == explain.LimitQueue:
		have := q.reserved.and(&q.used)
		s.Used, s.Bound = p.sizes.Resource(&have), p.sizes.Resource(&q.bounds.max)
		if b := by.before; b != nil {
			s.Blocker = &explain.Blocker{Need: b.size.Resource}
			if b.app.id != a.id {
				s.Blocker.App = b.app.id
			}
		} else if c := q.bounds.cap; c != nil && !c.Lease.Admits(&p.sizes, p.now, &have, &k.size.V) {
			s.Cap = &explain.Cap{
				Part: c.Cap, Of: c.Maximum, Until: c.Until, Expired: c.Lease.Expired(p.now),
				Short: c.Short, Reason: c.Reason,
			}
		}
	default:
		s.Used = p.sizes.Resource(&a.user.used)
		if !a.user.underCap(&k.size.V) && p.policy.userAdmits(p, a.user) {
			s.Cap = e.capOf(a.user)
			break
		}
		limit, _ := p.policy.userLimit(p, a.user)
		s.Bound = p.sizes.Resource(&limit)
	}
	return s
}

// capOf copies a user's cap.
func (e Explainer) capOf(u *user) *explain.Cap {
	c := u.q.leaf.caps
	k, hot := c.Users[u.name]
	if !hot {
		k = c.Each
	}
	return &explain.Cap{
		Part: k.Cap, Of: c.Limit, Until: k.Until, Expired: e.part.now >= k.Until.UnixNano(),
		Short: k.Short, Reason: k.Reason,
	}
}

// noNode copies how an ask fares on all nodes, which is slow for many of them.
func (e Explainer) noNode(a *App, k *Ask) *explain.NoNode {
	t, free := e.tally(k)
	s := &explain.NoNode{
		User: a.user.name, Queue: a.queue.path, Label: e.part.label, Ask: k.view(), Tally: t,
		Free: e.part.sizes.Resource(&free), Strict: k.strict, Hosts: len(k.named.Hosts), Racks: len(k.named.Racks),
	}
	if k.slot != 0 {
		s.Left = k.relaxAt - e.part.delays.count
	}
	return s
}

// tally counts all nodes for an ask. best is the largest free amount of each type.
func (e Explainer) tally(k *Ask) (t explain.Tally, best amounts.Vec) {
	for _, n := range e.part.nodes.All() {
		if n == nil {
			continue
		}
		at := k.at(n)
		if t.Add(&at); at.Open {
			best.Max(&n.free)
		}
	}
	return t, best
}

// at returns the verdict about an ask on a node, clause by clause, up to the first that excludes the ask for good.
func (k *Ask) at(n *Node) (v explain.Node) {
	p := n.of
	if v.Open = n.use == Open; !v.Open {
		return v
	}
	if v.Large = p.sizes.Fits(&k.size.V, &n.total); !v.Large {
		return v
	}
	if v.Barred = k.app.black.bars(n); v.Barred {
		return v
	}
	if k.want != nil {
		if v.Refused = p.tags.refused(k, n); v.Refused != nil {
			return v
		}
	}
	v.Room, v.Held, v.Kept = p.sizes.Fits(&k.size.V, &n.free), n.hold != nil, n.held
	return v
}

// queueAt copies a queue and those below it, with at most left of their waiting applications.
func (e Explainer) queueAt(q *Queue, n *Node, left *int) explain.QueueAt {
	at := explain.QueueAt{Path: q.path}
	if q.leaf != nil {
		var apps []*App
		for _, u := range q.leaf.userList {
			apps = append(append(apps, u.apps.Items...), u.pending.Items...)
		}
		slices.SortFunc(apps, func(a, b *App) int { return a.id.Compare(b.id) })
		listed := min(len(apps), *left)
		*left -= listed
		for _, a := range apps[:listed] {
			at.Apps = append(at.Apps, e.appAt(a, n))
		}
		at.More = len(apps) - listed
	}
	for _, c := range q.children {
		at.Children = append(at.Children, e.queueAt(c, n, left))
	}
	return at
}

// appAt copies an application when a node is considered.
func (e Explainer) appAt(a *App, n *Node) explain.AppAt {
	at := explain.AppAt{App: a.id, Queue: a.queue.path, Priority: a.priority}
	if whole := a.whole(); !whole.activated {
		why := e.part.cluster.Explain().Why(whole)
		at.InLine = &why
		return at
	}
	for _, k := range a.asks {
		switch {
		case k.count <= 0 || k.size == nil:
		case len(at.Asks) < explain.MostAsks:
			at.Asks = append(at.Asks, e.askAt(a, k, n))
		default:
			at.More++
		}
	}
	return at
}

// askAt copies an ask when a node is considered.
func (e Explainer) askAt(a *App, k *Ask, n *Node) explain.AskAt {
	p := e.part
	at := explain.AskAt{
		Priority: k.priority, AllocationRequestID: k.alloc, Need: k.size.Resource, Free: p.sizes.Resource(&n.free),
		Total: p.sizes.Resource(&n.total), Here: k.hold != nil && k.hold.node == n,
	}
	if at.Here {
		return at
	}
	if by := stopOf(a, k); by.limit != explain.LimitNone {
		at.Stop = e.stopped(a, k, by)
		return at
	}
	at.Node, at.Reaches, at.Strict = k.at(n), k.reaches(n), k.strict
	if n.hold != nil {
		at.For = n.hold.ask.app.id
	}
	return at
}
