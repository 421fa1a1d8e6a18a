// SPDX-License-Identifier: Apache-2.0

package preempt

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// leastWork is the search for the containers of one node with the least total loss.
type leastWork struct {
	n     *Need
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
	n *Need, w *Ask, node *Node, able, list []*candidate, price cost, fits bool,
) ([]*candidate, cost) {
	l := &ch.least
	l.n, l.need, l.able, l.best, l.price, l.found, l.steps = n, &w.Size.V, able, list, price, fits, 0
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
	for ; n < want && ch.r.Sizes.Fits(&w.Size.V, &free); n++ {
		free.Sub(&w.Size.V)
	}
	return float64(max(n, 1))
}

// search tries sets with and without each container, from one on.
func (ch *chooser) search(from int, free amounts.Vec, so cost) {
	l, r := &ch.least, ch.r
	if r.Sizes.Fits(l.need, &free) {
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
		if !r.Sizes.Fits(l.need, plus(&free, &l.rest[i])) {
			return
		}
		if may, _ := k.budget.takes(r.Sizes.Check, &k.Size.V, l.n.Rule); !may {
			continue
		}
		k.budget.reckon(&k.Size.V, 1)
		l.now = append(l.now, k)
		ch.search(i+1, *plus(&free, &k.Size.V), price)
		l.now = l.now[:len(l.now)-1]
		k.budget.reckon(&k.Size.V, -1)
	}
}
