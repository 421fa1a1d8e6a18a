// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/runtimes"
)

// With LeastWork the cost of a container is the expected loss of work. It is the product of four factors: run time at
// the kill, dominant share of the cluster, the application's declared weight, and the chance of still running then.
// That chance is derived from the run times of its queue's containers (package runtimes). So a container about
// to end is chosen before a new one, and one new container before two small ones.

// weigh computes the cost of a candidate.
func (r *round) weigh(c *Container, a *App, weight float64) choice {
	k := choice{lent: c.Lent, stays: 1, weight: float32(weight)}
	if !r.leastWork {
		return k
	}
	p, wait := r.part, r.p.cfg.Wait.Milliseconds()
	age := max(p.ms()-c.Created, 0)
	k.least = a.queue.losesLeast()
	if t := a.queue.leaf.runtimes; t != nil && !c.AM {
		k.stays = float32(t.Stays(age, wait))
	}
	k.loss = float64(age+max(wait, 1)) * p.sizes.Dominant(&c.Size.V, &p.total) * weight * float64(k.stays)
	return k
}

// Why explains the choice of a victim.
func (v *Victim) Why() string {
	k := &v.choice
	text := "it is the newest whose end frees enough"
	switch {
	case v.AM:
		text = "only AMs are left"
	case k.of > 1 && k.least:
		text = fmt.Sprintf("clearing its node of %d containers loses the least work", k.of)
	case k.of > 1:
		text = fmt.Sprintf("no node is cleared by fewer than %d containers", k.of)
	case k.least:
		text = "its end loses the least work"
	}
	if k.least && k.stays < 1 {
		wait := time.Duration(v.By - v.Since)
		text += fmt.Sprintf("; of its queue's containers of that age %.0f%% end within %s", 100*(1-k.stays), wait)
	}
	if k.least && k.weight > 1 {
		text += fmt.Sprintf("; its application's settings count it %g times", k.weight)
	}
	if k.lent {
		text += "; it runs on resources lent by the label"
	}
	return text
}

// leastWork is the search for the containers of one node with the least total loss.
type leastWork struct {
	n     *need
	need  *amounts.Vec
	able  []*candidate  // cheapest first
	rest  []amounts.Vec // sums from each index on
	now   []*candidate
	best  []*candidate
	price cost
	found bool
	steps int
}

// leastSteps bounds the search on one node: 2^11 sets of containers, which is all sets of eleven. With more containers
// the search returns the best set found so far. It first considers the cheapest sufficient containers.
const leastSteps = 1 << 11

// leastOn chooses the containers to end on a node so that an ask fits; list suffices if fits.
func (ch *chooser) leastOn(
	n *need, w *Ask, node *Node, able, list []*candidate, price cost, fits bool,
) ([]*candidate, cost) {
	l := &ch.least
	l.n, l.need, l.able, l.best, l.price, l.found, l.steps = n, &w.size.V, able, list, price, fits, 0
	l.now = l.now[:0]
	l.rest = append(l.rest[:0], make([]amounts.Vec, len(able)+1)...)
	for i := len(able) - 1; i >= 0; i-- {
		l.rest[i] = l.rest[i+1]
		l.rest[i].Add(&able[i].Size.V)
	}
	ch.search(0, *ch.room(node), cost{})
	if !l.found {
		return nil, cost{}
	}
	return l.best, l.price
}

// serves returns how many of want fit on a node after containers there have ended.
func (ch *chooser) serves(w *Ask, node *Node, list []*candidate, want int32) float64 {
	free, n := *ch.room(node), int32(0)
	for _, k := range list {
		free.Add(&k.Size.V)
	}
	for ; n < want && ch.r.part.sizes.Fits(&w.size.V, &free); n++ {
		free.Sub(&w.size.V)
	}
	return float64(max(n, 1))
}

// search tries sets with and without each container, from one on.
func (ch *chooser) search(from int, free amounts.Vec, so cost) {
	l, p := &ch.least, ch.r.part
	if p.sizes.Fits(l.need, &free) {
		if !l.found || so.less(l.price) {
			l.best, l.price, l.found = append(l.best[:0:0], l.now...), so, true
		}
		return
	}
	for i := from; i < len(l.able); i++ {
		k := l.able[i]
		price := ch.with(so, k)
		if l.steps++; l.steps > leastSteps || l.found && !price.less(l.price) {
			return
		}
		if !p.sizes.Fits(l.need, plus(&free, &l.rest[i])) {
			return
		}
		if may, _ := k.budget.takes(p, &k.Size.V, l.n.rule); !may {
			continue
		}
		k.budget.reckon(&k.Size.V, 1)
		l.now = append(l.now, k)
		ch.search(i+1, *plus(&free, &k.Size.V), price)
		l.now = l.now[:len(l.now)-1]
		k.budget.reckon(&k.Size.V, -1)
	}
}

// Learns reports whether the scheduler uses Ended.
func (p *Preemption) Learns() bool { return p.on }

// Ended records that a container of an application on a node ended by itself after ms milliseconds. Estimates for its
// queue use it.
func (p *Preemption) Ended(a *App, n *Node, ms int64) {
	if n.of != p.part {
		if a = a.partIn(n.of); a == nil {
			return
		}
	}
	if a.queue == nil || a.queue.leaf == nil {
		return
	}
	l := a.queue.leaf
	if l.runtimes == nil {
		l.runtimes = &runtimes.Histogram{}
	}
	l.runtimes.Add(ms)
}
