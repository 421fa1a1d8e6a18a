// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
)

// claimAll makes claims for all needs, until the budgets are used up.
func (r *round) claimAll() {
	if len(r.Needs) == 0 || len(r.Over) == 0 {
		return
	}
	for i := range r.Needs {
		r.Needs[i].Asks = r.waiting(r.Needs[i].Queue.Owner.(*Queue))
	}
	offers := r.offers()
	r.ClaimAll(offers, r.p.cfg.ReservedFirst)
	offers.Keep(&r.p.memory.offers)
}

// offers returns the containers of all applications with a budget, in the order of loss.
func (r *round) offers() *preempt.Offers {
	byQueue := map[*Queue][]*App{}
	for _, b := range r.Over {
		byQueue[b.Queue.Owner.(*Queue)] = nil
	}
	r.p.from.Apps(func(a *App) bool {
		if n := a.containers; n > 0 && a.inQueue {
			if list, loses := byQueue[a.queue]; loses {
				byQueue[a.queue] = append(list, a)
			}
		}
		return true
	})
	leastWork := slices.ContainsFunc(r.Over, func(b *preempt.Budget) bool { return b.Queue.LeastWork })
	out := r.Offers(leastWork, &r.p.memory.offers)
	for _, b := range r.Over {
		apps := byQueue[b.Queue.Owner.(*Queue)]
		servedLast(apps)
		for _, a := range apps {
			r.offer(out, a, b, leastWork)
		}
	}
	return out
}

// servedLast orders applications in reverse order of service.
func servedLast(apps []*App) {
	for _, a := range apps {
		if a.slot == 0 { // the ratio of a waiting application is current
			a.ratio = a.queue.share(a)
		}
	}
	slices.SortStableFunc(apps, func(a, b *App) int {
		less := a.queue.ordering.apps
		switch {
		case less(a, b):
			return 1
		case less(b, a):
			return -1
		}
		return cmp.Compare(b.seq, a.seq)
	})
}

// offer adds the containers of an application, except those on nodes that must not be cleared.
func (r *round) offer(out *preempt.Offers, a *App, b *preempt.Budget, leastWork bool) {
	found := r.p.from.Newest(a, r.p.memory.found[:0])
	weight := 1.0
	if leastWork {
		weight = r.p.from.Weight(a)
	}
	app := r.app(a)
	for i := range found {
		c := &found[i]
		if n := c.Node; n.of != r.part || n.use != Open || len(n.kept) > 0 {
			continue
		}
		out.Add(&preempt.Container{
			Owner: c.Owner, App: app, Node: r.node(c.Node), Size: c.Size, Created: c.Created, AM: c.AM, Lent: c.Lent,
		}, b, weight)
	}
	clear(found)
	r.p.memory.found = found[:0]
}

// roundMemory is reused by the next round.
type roundMemory struct {
	offers preempt.Memory
	found  []Container
}

// waitingApps returns the waiting applications of a leaf, in the order of service.
func (l *leafState) waitingApps() []*App {
	var list []*App
	for _, u := range l.userList {
		list = append(list, u.apps.Items...)
	}
	if len(list) > 1 {
		less := list[0].queue.ordering.apps
		slices.SortStableFunc(list, func(a, b *App) int {
			switch {
			case less(a, b):
				return -1
			case less(b, a):
				return 1
			}
			return int(a.seq - b.seq)
		})
	}
	return list
}

// mayGo reports whether an ask could ever be placed on a node, by its requested and excluded places.
func (w *Ask) mayGo(n *Node) bool {
	if w.app.black.bars(n) || !w.app.queue.part.tags.allows(w, n) {
		return false
	}
	if !w.strict {
		return true
	}
	if p := w.named.OnHost(n.host); p != nil {
		return w.rackAsked(n)
	}
	p := w.named.OnRack(n.rack)
	return p != nil && !p.Strict
}

// picky reports whether the ask limits its nodes: by requested or excluded places, a constraint, or its own
// reservation.
func (w *Ask) picky() bool {
	return w.strict || w.want != nil || w.hold != nil || len(w.app.black.names) > 0
}
