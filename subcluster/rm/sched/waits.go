// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// mostTallies limits the scans of all nodes by one WaitScan. After that many applications with a blacklist or a
// constraint, the result for further ones is LimitNodes; Why names the clause.
const mostTallies = 64

// WaitScan checks many applications between two events. The same clause excludes all asks of one size that any node
// may serve, so nodes are checked once for all of them. The zero value is ready.
type WaitScan struct {
	tallies map[tallyKey]nodeTally
	looked  int
}

type tallyKey struct {
	part *partition
	size *amounts.Size
}

// Waits returns the result of Why without its numbers: the limit and its queue. It is for lists of thousands of
// applications.
func (e Explainer) Waits(a *App, l *WaitScan) (Limit, creel.QueuePath) {
	switch {
	case !a.activated:
		limit, q := e.part.cluster.line.mayActivate(a, inViews)
		if limit == LimitNone {
			limit = LimitOrder
		}
		if q != nil {
			return limit, q.path
		}
		return limit, a.queue.path
	case a.pendingCount > 0:
		return e.waitsAsk(a, l)
	}
	for _, x := range a.parts {
		if x.pendingCount > 0 {
			return x.queue.part.explain().waitsAsk(x, l)
		}
	}
	return LimitNone, a.queue.path
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

// waitsAsk checks the first outstanding ask, like whyAsk.
func (e Explainer) waitsAsk(a *App, l *WaitScan) (Limit, creel.QueuePath) {
	k := a.firstWaiting()
	switch {
	case k == nil:
		return LimitNone, a.queue.path
	case k.hold != nil:
		return LimitReservation, a.queue.path
	}
	if v := a.admit(k.size, nil); v.limit != LimitNone {
		return v.limit, v.where.path
	}
	if q := e.heldAt(a, k); q != nil {
		return LimitQueue, q.path
	}
	return e.waitsNode(a, k, l), a.queue.path
}

func (e Explainer) waitsNode(a *App, k *Ask, l *WaitScan) Limit {
	p := e.part
	key, any := tallyKey{p, k.size}, len(k.app.black.names) == 0 && (k.want == nil || k.want.Constraint == nil)
	if t, ok := l.tallies[key]; ok && any {
		return t.limit(p.label)
	}
	if l.looked == mostTallies {
		return LimitNodes
	}
	l.looked++
	best := amounts.Vec{}
	t := e.tally(a, k, &best, map[*constraints.Constraint]int{})
	if any {
		if l.tallies == nil {
			l.tallies = map[tallyKey]nodeTally{}
		}
		l.tallies[key] = t
	}
	return t.limit(p.label)
}
