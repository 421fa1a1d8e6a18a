// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// SecondPass lends asks for guaranteed containers the resources of a node that are allocated and not used. It follows
// the guaranteed pass, so its asks have got nothing there. The lent containers are opportunistic: they charge no queue,
// user or node, and no limit of these applies to them. Asks that insist on guaranteed containers, asks for AMs, asks
// with tags or a constraint, and the asks of queues that opt out get nothing. A node with a label lends to asks of the
// label only.
type SecondPass struct {
	Node *Node
	Room amounts.Vec // for lent containers
	Most int         // containers
	// Lent returns the amount of lent containers in a queue and its descendants, on nodes of the label. The queue with
	// the least of it, over its part of these nodes, is next.
	Lent func(q *Queue) amounts.Vec

	grants []Grant
	queues map[*Queue]*amounts.Vec // granted in this pass
}

// Run grants containers until no ask fits. The owner books them, outside the scheduler.
func (p *SecondPass) Run() []Grant {
	n := p.Node
	p.queues = map[*Queue]*amounts.Vec{}
	if n.use != Open || n.of.waiting == 0 {
		return nil
	}
	for len(p.grants) < p.Most && p.pick(n.of.tree.root) {
	}
	return p.grants
}

// pick grants a container below a queue, and reports whether it did.
func (p *SecondPass) pick(q *Queue) bool {
	if q.pendingCount == 0 || q.spec.NoOversubscription {
		return false
	}
	if q.leaf != nil {
		return p.pickLeaf(q)
	}
	children := slices.Clone(q.children)
	share := make(map[*Queue]float64, len(children))
	for _, c := range children {
		lent := p.Lent(c)
		if more := p.queues[c]; more != nil {
			lent.Add(more)
		}
		share[c] = q.part.sizes.Dominant(&lent, &q.part.total) / max(q.part.policy.promise(q.part, c), 1e-9)
	}
	slices.SortStableFunc(children, func(a, b *Queue) int { return cmp.Compare(share[a], share[b]) })
	return slices.ContainsFunc(children, p.pick)
}

// pickLeaf is pick for a leaf: its applications in the order of service.
func (p *SecondPass) pickLeaf(q *Queue) bool {
	var apps []*App
	for _, u := range q.leaf.userList {
		apps = append(apps, u.apps.Items...)
	}
	slices.SortFunc(apps, func(a, b *App) int {
		switch {
		case q.ordering.apps(a, b):
			return -1
		case q.ordering.apps(b, a):
			return 1
		}
		return cmp.Compare(a.seq, b.seq)
	})
	for _, a := range apps {
		if !a.open || !a.activated || a.black.bars(p.Node) {
			continue
		}
		for _, w := range a.asks {
			if p.admits(w) {
				p.grant(w)
				return true
			}
		}
	}
	return false
}

// admits reports whether an ask may get a lent container on the node.
func (p *SecondPass) admits(w *Ask) bool {
	if w.count <= 0 || w.size == nil || w.am || w.enforced || w.want != nil || w.execution != creel.Guaranteed {
		return false
	}
	sizes := &w.app.queue.part.sizes
	return sizes.Fits(&w.size.V, &p.Room) && sizes.Fits(&w.size.V, &p.Node.total) && w.reaches(p.Node)
}

// grant lends an ask a container.
func (p *SecondPass) grant(w *Ask) {
	a, n, size := w.app, p.Node, w.size
	part := a.queue.part
	if h := w.hold; h != nil && (h.node == n || w.count == 1) {
		part.reservations.drop(h)
	}
	at, reason := places.AtAny, OffSwitch
	switch {
	case w.named.OnHost(n.host) != nil:
		at, reason = places.AtNode, NodeLocal
	case w.named.OnRack(n.rack) != nil:
		at, reason = places.AtRack, RackLocal
	}
	rare := w.rare(n, at)
	if part.label != "" {
		if rare == nil {
			rare = &GrantExtra{}
		}
		rare.Label = part.label
	}
	p.grants = append(p.grants, Grant{
		App: a.whole(), Node: n, Size: size, AllocationRequestID: w.alloc, Priority: w.priority,
		ExecutionType: creel.Opportunistic, Reason: reason, Waited: time.Duration(part.now - w.asked), Rare: rare,
	})
	p.Room.Sub(&size.V)
	for q := a.queue; q != nil; q = q.parent {
		if p.queues[q] == nil {
			p.queues[q] = &amounts.Vec{}
		}
		p.queues[q].Add(&size.V)
	}
	part.served(w, n, at)
	if w.count == 0 {
		part.forgetIfEmpty(w)
	}
	part.enroll(a)
}
