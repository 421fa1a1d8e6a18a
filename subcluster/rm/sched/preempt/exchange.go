// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Claims for one ask are made one by one, each where it costs least at that time. With containers of several sizes the
// total loss may be larger than necessary. Example: first two small ones end on a node, then a large one that alone
// would free enough for both claims. So with LeastWork the claims of an ask are reconsidered together. Other
// containers, of the same nodes or others, replace the victims if they free as much and lose less.
//
// The search over each node's offers is exact. It has limits for the claims and nodes considered together, and for
// steps in a round. When the steps are used up, claims stay unchanged.
const (
	exchangeClaims = 16
	exchangeServes = 64      // containers of the ask in all
	exchangeNodes  = 32      // the claims' nodes, and the cheapest others
	exchangeOffers = 32      // of one node
	exchangeSteps  = 1 << 19 // of one round
)

// exchange is one such search.
type exchange struct {
	ch     *chooser
	n      *Need
	w      *Ask
	serves int32
	nodes  []*Node
	offers [][]offer
	bound  [][]cost // by node and number: the least for so many on that node and later ones
	now    []int    // index of the chosen offer by node, -1 for none
	best   []int    // nil if no better solution was found
	price  cost     // of best, or of the claims
}

// offer is a set of containers of a node, and the number of asks that fit when they end.
type offer struct {
	list []*candidate
	fit  int32
	cost cost
	sum  amounts.Vec
}

// exchange reconsiders the claims for an ask, starting at one of them.
func (ch *chooser) exchange(n *Need, w *Ask, from int) {
	r := ch.r
	if !ch.exchanges || from == len(r.made) || ch.one == w.Size || w.Single || w.Hold != nil || n.Rule.Within() {
		return
	}
	ch.groupByNode()
	made := slices.Clone(r.made[from:])
	r.made = r.made[:from]
	for len(made) > 0 {
		some, serves := 0, int32(0)
		for some < min(len(made), exchangeClaims) && (some == 0 || serves+made[some].Count <= exchangeServes) {
			serves += made[some].Count
			some++
		}
		ch.exchangeSome(n, w, made[:some], serves)
		made = made[some:]
	}
}

// exchangeSome undoes claims, and makes the same or better ones.
func (ch *chooser) exchangeSome(n *Need, w *Ask, claims []*Claim, serves int32) {
	x := &exchange{ch: ch, n: n, w: w, serves: serves}
	var was amounts.Vec
	lists := make([][]*candidate, len(claims))
	for i := len(claims) - 1; i >= 0; i-- {
		c := claims[i]
		lists[i] = ch.chosen[c]
		for _, k := range lists[i] {
			if k.AM || !k.choice.least { // its loss was not computed
				serves = 0
			}
			x.price = ch.with(x.price, k)
			was.Add(&k.Size.V)
		}
		ch.takeBack(n, c)
	}
	if serves > 0 && ch.steps < exchangeSteps {
		x.look(claims)
	}
	if x.best != nil && !x.may(&was) {
		x.best = nil
	}
	if x.best == nil {
		for i, c := range claims {
			ch.take(n, w, c.Count, c.Node, lists[i])
		}
		return
	}
	for i, o := range x.best {
		if o >= 0 {
			of := x.offers[i][o]
			fit := min(of.fit, serves)
			ch.take(n, w, fit, x.nodes[i], of.list)
			serves -= fit
		}
	}
}

// takeBack undoes a claim of this round.
func (ch *chooser) takeBack(n *Need, c *Claim) {
	r := ch.r
	free := ch.room(c.Node)
	for _, k := range ch.chosen[c] {
		k.choice.taken = false
		delete(r.chosen, k.Owner)
		k.budget.take(&k.Size.V, -1)
		if k.AM {
			k.budget.AMs.Add(&k.Size.V)
		}
		free.Sub(&k.Size.V)
	}
	free.AddTimes(&c.Size.V, int64(c.Count))
	r.serve(n, &c.Size.V, -c.Count)
	r.count(c, -1)
	for _, of := range c.Spent {
		for i := range c.Victims {
			r.planned[of].Sub(&c.Victims[i].Size.V)
		}
	}
	delete(ch.chosen, c)
}

// may reports whether the amount under notice of the best solution is allowed, or no more than before.
func (x *exchange) may(was *amounts.Vec) bool {
	var sum amounts.Vec
	for i, o := range x.best {
		if o >= 0 {
			sum.Add(&x.offers[i][o].sum)
		}
	}
	r := x.ch.r
	if !r.withinBudgets(r.serves, &sum) {
		return false
	}
	return !r.bounded || r.Sizes.Fits(&sum, was) || r.Sizes.FitsPlus(&r.taken, &sum, &r.allowed)
}

// look searches for a better solution than the claims.
func (x *exchange) look(claims []*Claim) {
	ch := x.ch
	seen := map[*Node]bool{}
	see := func(n *Node) {
		if seen[n] || len(x.nodes) == exchangeNodes {
			return
		}
		seen[n] = true
		if ch.r.mayUse(x.w, n) {
			x.nodes = append(x.nodes, n)
		}
	}
	for _, c := range claims {
		see(c.Node)
	}
	if h := ch.heaps[ch.r.keyOf(x.n, x.w)]; h != nil {
		for _, b := range h.items[:min(len(h.items), exchangeNodes)] {
			see(b.node)
		}
	}
	for _, n := range ch.nodes[:min(len(ch.nodes), exchangeNodes)] {
		see(n)
	}
	for _, n := range x.nodes {
		x.offers = append(x.offers, x.offered(n))
	}
	x.bounds()
	x.now = make([]int, len(x.nodes))
	x.choose(0, x.serves, cost{})
}

// offered returns a node's offers without dominated ones. A dominated offer costs more, ends more and frees no more
// than another.
func (x *exchange) offered(node *Node) []offer {
	ch, r := x.ch, x.ch.r
	var able []*candidate
	for _, i := range ch.see(node).takes {
		k := &ch.list[i]
		if k.choice.taken || x.n.spares(k, x.w) || !k.choice.least {
			continue
		}
		if _, soon := k.budget.takes(r.Sizes.Check, &k.Size.V, x.n.Rule); soon {
			able = append(able, k)
		}
	}
	var out []offer
	var now []*candidate
	steps := 0
	var try func(from int, free, sum amounts.Vec, so cost)
	try = func(from int, free, sum amounts.Vec, so cost) {
		for i := from; i < len(able); i++ {
			k := able[i]
			price := ch.with(so, k)
			if steps++; steps > leastSteps || !price.less(x.price) {
				return // the following offers cost more
			}
			if may, _ := k.budget.takes(r.Sizes.Check, &k.Size.V, x.n.Rule); !may {
				continue
			}
			k.budget.reckon(&k.Size.V, 1)
			now = append(now, k)
			room, all := *plus(&free, &k.Size.V), *plus(&sum, &k.Size.V)
			fit := ch.fit(x.w, room, x.serves)
			if fit > 0 {
				out = keepOffer(out, r.Sizes.Check, offer{list: now, fit: fit, cost: price, sum: all})
			}
			if fit < x.serves {
				try(i+1, room, all, price)
			}
			now = now[:len(now)-1]
			k.budget.reckon(&k.Size.V, -1)
		}
	}
	try(0, *ch.room(node), amounts.Vec{}, cost{})
	ch.steps += steps
	slices.SortStableFunc(out, func(a, b offer) int { return a.cost.compare(b.cost) })
	return out
}

// fit returns how many containers of the ask fit, at most most.
func (ch *chooser) fit(w *Ask, free amounts.Vec, most int32) (n int32) {
	for ; n < most && ch.r.Sizes.Fits(&w.Size.V, &free); n++ {
		free.Sub(&w.Size.V)
	}
	return n
}

// keepOffer copies and adds an offer, unless another is as good. It removes dominated ones.
func keepOffer(list []offer, types int, o offer) []offer {
	for i := range list {
		if list[i].asGood(&o, types) {
			return list
		}
	}
	list = slices.DeleteFunc(list, func(l offer) bool { return o.asGood(&l, types) })
	if len(list) < exchangeOffers {
		o.list = slices.Clone(o.list)
		list = append(list, o)
	}
	return list
}

func (o *offer) asGood(as *offer, types int) bool {
	if o.fit < as.fit || as.cost.less(o.cost) {
		return false
	}
	for i := range types {
		if o.sum.At(i) > as.sum.At(i) {
			return false
		}
	}
	return true
}

func (c cost) plus(d cost) cost { return cost{c.own + d.own, c.number + d.number, c.loss + d.loss} }

// bounds computes the minimum cost of the nodes from each one on.
func (x *exchange) bounds() {
	never := cost{own: math.MaxInt32}
	x.bound = make([][]cost, len(x.nodes)+1)
	x.bound[len(x.nodes)] = slices.Repeat([]cost{never}, int(x.serves)+1)
	x.bound[len(x.nodes)][0] = cost{}
	for i := len(x.nodes) - 1; i >= 0; i-- {
		x.bound[i] = slices.Clone(x.bound[i+1])
		for n := 1; n <= int(x.serves); n++ {
			for _, o := range x.offers[i] {
				if c := o.cost.plus(x.bound[i+1][max(0, n-int(o.fit))]); c.less(x.bound[i][n]) {
					x.bound[i][n] = c
				}
			}
		}
		x.ch.steps += len(x.offers[i])
	}
}

// choose tries each offer of a node, and no offer, for the remaining number.
func (x *exchange) choose(i int, left int32, so cost) {
	if left <= 0 {
		if enough := x.price.loss * (1 - 1e-9); so.own < x.price.own || so.own == x.price.own && so.loss < enough {
			x.best, x.price = append(x.best[:0], x.now[:i]...), so
		}
		return
	}
	if x.ch.steps++; x.ch.steps > exchangeSteps || i == len(x.nodes) || !so.plus(x.bound[i][left]).less(x.price) {
		return
	}
	r := x.ch.r
	for j := range x.offers[i] {
		o := &x.offers[i][j]
		may := true
		taken := 0
		for _, k := range o.list {
			if _, may = k.budget.takes(r.Sizes.Check, &k.Size.V, x.n.Rule); !may {
				break
			}
			k.budget.reckon(&k.Size.V, 1)
			taken++
		}
		for _, k := range o.list[:taken] {
			k.budget.reckon(&k.Size.V, -1)
			if may {
				k.budget.take(&k.Size.V, 1)
			}
		}
		if !may {
			continue
		}
		x.now[i] = j
		x.choose(i+1, left-o.fit, so.plus(o.cost))
		for _, k := range o.list {
			k.budget.take(&k.Size.V, -1)
		}
	}
	x.now[i] = -1
	x.choose(i+1, left, so)
}
