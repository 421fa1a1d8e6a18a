// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Explainer answers questions about the present state: the reasons why applications wait, the outcome for a node, and
// the figures of queues and applications. It only reads: no decision depends on a question. It fills values for package
// explain (explain_snapshot.go), which has the sentences.
type Explainer struct{ part *partition }

// Explain returns the explainer of all partitions.
func (s *Scheduler) Explain() Explainer { return s.main.explain() }

func (p *partition) explain() Explainer { return Explainer{p} }

// Why returns the reason why an application in a queue waits, with the numbers of the limit. It checks the limits in
// the scheduler's order and changes nothing. So the result is current, unlike a log line. If the scheduler delays
// nothing, it returns explain.LimitNone and no text.
func (e Explainer) Why(a *App) explain.Why {
	if !a.activated {
		line, label := e.inLine(a)
		return line.Why().On(label)
	}
	x, k := a.firstWaiting()
	if k == nil {
		return explain.Why{User: a.user.name, Where: a.queue.path}
	}
	at := x.queue.part.explain()
	if by := stopOf(x, k); by.limit != explain.LimitNone {
		return at.stopped(x, k, by).Why().On(at.part.label)
	}
	return at.noNode(x, k).Why().On(at.part.label)
}

// Waits returns the result of Why without its numbers: the limit and its queue. It is for lists of thousands of
// applications.
func (e Explainer) Waits(a *App, l *explain.Scan) (explain.Limit, creel.QueuePath) {
	if !a.activated {
		limit, q := e.part.cluster.line.mayActivate(a, inViews)
		if limit == explain.LimitNone {
			limit = explain.LimitOrder
		}
		if q != nil {
			return limit, q.path
		}
		return limit, a.queue.path
	}
	x, k := a.firstWaiting()
	if k == nil {
		return explain.LimitNone, a.queue.path
	}
	if by := stopOf(x, k); by.limit != explain.LimitNone {
		return by.limit, by.where.path
	}
	at := x.queue.part.explain()
	alike := len(x.black.names) == 0 && (k.want == nil || k.want.Constraint == nil)
	return l.Limit(at.part.label, k.size, alike, func() explain.Tally {
		t, _ := at.tally(k)
		return t
	}), a.queue.path
}

// WaitsSince returns the time, in ns, at which the oldest of its outstanding asks was made; ok is false if it has none.
// The containers of one ask count from the mean of their times.
func (a *App) WaitsSince() (since int64, ok bool) {
	for _, x := range append([]*App{a}, a.parts...) {
		for _, k := range x.asks {
			if k.count > 0 && k.size != nil && (!ok || k.asked < since) {
				since, ok = k.asked, true
			}
		}
	}
	return since, ok
}

// Consider returns the reason why each waiting application in the partition of a node gets no container there, for at
// most the given number of applications. It changes nothing. After a Schedule no ask can be served, so every
// outstanding ask has such a reason.
func (e Explainer) Consider(n *Node, most int) explain.QueueOn {
	at := n.of.explain().queueAt(n.of.tree.root, n, &most)
	return at.On()
}

// ConsiderApp is Consider for one application. ok is false if it has no outstanding ask in the node's partition.
func (e Explainer) ConsiderApp(a *App, n *Node) (on explain.AppOn, ok bool) {
	for _, x := range append([]*App{a}, a.parts...) {
		if x.queue != nil && x.queue.part == n.of && (!a.activated || x.pendingCount > 0) {
			at := n.of.explain().appAt(x, n)
			return at.On(), true
		}
	}
	return explain.AppOn{}, false
}

// FreeOn returns a node's free resources.
func (e Explainer) FreeOn(n *Node) creel.Resource { return e.part.sizes.Resource(&n.free) }

// UseByPartition returns one entry for each label that the application has asked for or used, first the default
// partition; nil if it never named one.
func (e Explainer) UseByPartition(a *App) []explain.PartitionUse {
	p := e.part
	if len(a.parts) == 0 {
		return nil
	}
	out := make([]explain.PartitionUse, 0, 1+len(a.parts))
	for _, x := range append([]*App{a}, a.parts...) {
		out = append(out, explain.PartitionUse{
			Label: x.label(), Used: p.sizes.Resource(&x.used), Reserved: p.sizes.Resource(&x.held),
			Pending: p.sizes.Resource(&x.pending), AMUsed: p.sizes.Resource(&x.amUsed),
		})
	}
	return out
}

// Shares returns an application's use in percent of its queue's guarantee, and of the cluster.
func (e Explainer) Shares(a *App) (ofQueue, ofCluster float64) {
	p := e.part
	used := p.policy.measure(p, &a.used)
	if promise := p.policy.promise(p, a.queue); promise > 0 {
		ofQueue = finite(100 * used / promise)
	}
	return ofQueue, finite(100 * used)
}
