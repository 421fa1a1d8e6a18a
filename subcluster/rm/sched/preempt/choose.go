// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// chooser finds room for asks among candidates. It prefers a node where one container is enough, in the order of the
// candidates. Its second choice is the node where the fewest containers end. With LeastWork it always chooses the node
// with the least lost work.
type chooser struct {
	r         *Round
	list      []candidate
	leastWork bool
	cursors   map[heapKey]int // position in list, for asks without a required place
	grouped   bool            // by node: nodes and Node.takes are set
	nodes     []*Node         // in the order of the candidates
	heaps     map[heapKey]*bundles
	scratch   []*candidate
	cleared   []*Node               // nodes with room left by claims, in the order of the claims
	offered   map[*amounts.Size]int // position in cleared, for asks without a required place
	lent      bool                  // some candidates are lent
	least     leastWork

	// See exchange.
	exchanges bool
	one       *amounts.Size // size of all candidates, nil if they differ
	chosen    map[*Claim][]*candidate
	steps     int
}

// heapKey identifies the asks that a heap of nodes serves. These asks have one size, no required place, and rules that
// may take the same containers.
type heapKey struct {
	size    *amounts.Size
	balance bool
	spared  *Queue // queue that loses nothing to them, nil if it has no budget
}

func (r *Round) keyOf(n *Need, w *Ask) heapKey {
	k := heapKey{size: w.Size, balance: n.Rule == Balance}
	if !n.Rule.Within() && n.Queue.budget != nil {
		k.spared = n.Queue
	}
	return k
}

func (r *Round) chooser(o *Offers) *chooser {
	list := o.list
	ch := &chooser{
		r: r, list: list, leastWork: o.leastWork, cursors: map[heapKey]int{}, heaps: map[heapKey]*bundles{},
		lent: r.lent, offered: map[*amounts.Size]int{},
	}
	for i := range list {
		list[i].rank = int32(i)
	}
	ch.exchanges = ch.leastWork && !slices.ContainsFunc(r.Over, func(b *Budget) bool { return !b.Queue.LeastWork })
	if ch.exchanges && len(list) > 0 {
		ch.one, ch.chosen = list[0].Size, map[*Claim][]*candidate{}
		for i := range list {
			if list[i].Size != list[0].Size {
				ch.one = nil
				break
			}
		}
	}
	for _, c := range slices.Concat(r.under, r.made) {
		// Without victims left, the claim's freed resources are already part of the node's count.
		if len(c.Victims) == 0 {
			continue
		}
		f := ch.room(c.Node)
		f.AddTimes(&c.Size.V, -int64(c.Count))
		for i := range c.Victims {
			f.Add(&c.Victims[i].Size.V)
		}
		ch.clears(c.Node, f)
	}
	return ch
}

// see prepares a node for this chooser.
func (ch *chooser) see(n *Node) *Node {
	if n.seen != ch {
		n.seen, n.room, n.takes = ch, n.Free, n.takes[:0]
	}
	return n
}

func (ch *chooser) room(n *Node) *amounts.Vec { return &ch.see(n).room }

// clears records a node with room left by claims.
func (ch *chooser) clears(n *Node, room *amounts.Vec) {
	if room.Memory > 0 {
		ch.cleared = append(ch.cleared, n)
	}
}

// leftover serves an ask from room that claims leave, without victims. It returns the part of want that it did not
// serve. The room is not reserved: if another ask gets it, a later round makes a claim.
func (ch *chooser) leftover(n *Need, w *Ask, want int32) int32 {
	if w.Single {
		return want
	}
	r, from := ch.r, 0
	if !w.Picky {
		from = ch.offered[w.Size]
		defer func() { ch.offered[w.Size] = from }()
	}
	for ; from < len(ch.cleared); from++ {
		node := ch.cleared[from]
		if r.Sizes.Fits(&w.Size.V, &node.Free) || !r.mayUse(w, node) {
			continue
		}
		for free := ch.room(node); r.Sizes.Fits(&w.Size.V, free); want-- {
			if want == 0 || !r.mayClaim(n, w) {
				return want
			}
			free.Sub(&w.Size.V)
			r.serve(n, &w.Size.V, 1)
			r.claimed(w, 1)
		}
	}
	return want
}

// claim makes one claim for an ask. It returns nil if no preemptible containers would serve the ask.
func (ch *chooser) claim(n *Need, w *Ask, want int32) *Claim {
	if c := ch.single(n, w, want, false); c != nil {
		return c
	}
	if c := ch.bundle(n, w, want); c != nil {
		return c
	}
	return ch.single(n, w, want, true)
}

// single takes one container that frees enough: an AM only if ams permits it.
func (ch *chooser) single(n *Need, w *Ask, want int32, ams bool) *Claim {
	r, from := ch.r, 0
	if keep := !w.Picky && !ams && n.Rule != Balance; keep {
		of := r.keyOf(n, w)
		from = ch.cursors[of]
		defer func() { ch.cursors[of] = from }()
	}
	for ; from < len(ch.list); from++ {
		k := &ch.list[from]
		if k.choice.taken || k.AM != ams || n.spares(k, w) || !r.mayUse(w, k.Node) ||
			!ams && k.budget.Queue.LeastWork {
			continue
		}
		if _, soon := k.budget.takes(r.Sizes.Check, &k.Size.V, n.Rule); !soon {
			continue
		}
		if ams && !r.Sizes.Fits(&k.Size.V, &k.budget.AMs) {
			continue
		}
		free := ch.room(k.Node)
		if !r.Sizes.FitsPlus(&amounts.Vec{}, &w.Size.V, plus(free, &k.Size.V)) || r.Sizes.Fits(&w.Size.V, free) {
			continue
		}
		if !r.mayTake(&k.Size.V) {
			return nil
		}
		return ch.take(n, w, want, k.Node, []*candidate{k})
	}
	return nil
}

func plus(a, b *amounts.Vec) *amounts.Vec {
	v := *a
	v.Add(b)
	return &v
}

// take books chosen containers of one node for as many of an ask as fit then.
func (ch *chooser) take(n *Need, w *Ask, want int32, node *Node, chosen []*candidate) *Claim {
	r, free := ch.r, ch.room(node)
	for _, k := range chosen {
		k.choice.taken = true
		k.choice.of = int32(len(chosen))
		k.budget.take(&k.Size.V, 1)
		if k.AM {
			k.budget.AMs.Sub(&k.Size.V)
		}
		free.Add(&k.Size.V)
	}
	count := int32(0)
	rest := Need{Rest: n.Rest}
	for count < want && r.Sizes.Fits(&w.Size.V, free) && rest.due(r.Sizes.Check, &w.Size.V) {
		free.Sub(&w.Size.V)
		rest.Rest.Sub(&w.Size.V)
		count++
	}
	ch.clears(node, free)
	c := r.book(n, w, node, count, chosen)
	if ch.exchanges && w.Size != ch.one {
		ch.chosen[c] = chosen
	}
	return c
}

// cost is the cost of clearing a node for an ask. In Hadoop's order it is the number of containers, then the position
// of the last one. With LeastWork it is the lost work. A container that is not lent costs more than any number of lent
// ones.
type cost struct {
	own    int
	number int
	loss   float64
}

func (c cost) compare(d cost) int {
	switch {
	case c.less(d):
		return -1
	case d.less(c):
		return 1
	}
	return 0
}

func (c cost) less(d cost) bool {
	if c.own != d.own {
		return c.own < d.own
	}
	return c.number < d.number || c.number == d.number && c.loss < d.loss
}

// with returns the cost including one more container.
func (ch *chooser) with(c cost, k *candidate) cost {
	if ch.lent && !k.Lent {
		c.own++
	}
	if ch.leastWork {
		c.loss += k.choice.loss
		return c
	}
	c.number++
	c.loss = max(c.loss, float64(k.rank))
	return c
}

// bundles orders nodes by the cost of clearing enough of them for one size.
type bundles struct {
	items []bundle
}

type bundle struct {
	node *Node
	at   int32 // place of the node in the order of the candidates
	cost cost
}

func (b *bundles) Len() int { return len(b.items) }
func (b *bundles) Less(i, j int) bool {
	x, y := &b.items[i], &b.items[j]
	return x.cost.less(y.cost) || x.cost == y.cost && x.at < y.at
}
func (b *bundles) Swap(i, j int) { b.items[i], b.items[j] = b.items[j], b.items[i] }
func (b *bundles) Push(x any)    { b.items = append(b.items, x.(bundle)) }
func (b *bundles) Pop() any {
	k := len(b.items) - 1
	x := b.items[k]
	b.items = b.items[:k]
	return x
}

// bundle makes a claim on several containers of one node.
func (ch *chooser) bundle(n *Need, w *Ask, want int32) *Claim {
	r := ch.r
	ch.groupByNode()
	of := r.keyOf(n, w)
	h := ch.heaps[of]
	if h == nil || w.Picky {
		h = &bundles{}
		for i, node := range ch.nodes {
			if !r.mayUse(w, node) {
				continue
			}
			if list, cost := ch.clear(n, w, node, want); list != nil {
				h.items = append(h.items, bundle{node, int32(i), cost})
			}
		}
		heap.Init(h)
		if !w.Picky {
			ch.heaps[of] = h
		}
	}
	for h.Len() > 0 {
		best := h.items[0]
		list, cost := ch.clear(n, w, best.node, want)
		if list == nil {
			heap.Pop(h)
			continue
		}
		if best.cost.less(cost) {
			h.items[0].cost = cost
			heap.Fix(h, 0)
			continue
		}
		return ch.takeList(n, w, best.node, want, list)
	}
	return nil
}

// claimOn makes a claim on one node. It returns nil if the node cannot be cleared for the ask.
func (ch *chooser) claimOn(n *Need, w *Ask, node *Node, want int32) *Claim {
	ch.groupByNode()
	list, _ := ch.clear(n, w, node, want)
	if list == nil {
		return nil
	}
	return ch.takeList(n, w, node, want, list)
}

func (ch *chooser) takeList(n *Need, w *Ask, node *Node, want int32, list []*candidate) *Claim {
	var sum amounts.Vec
	for _, k := range list {
		sum.Add(&k.Size.V)
	}
	if !ch.r.mayTake(&sum) {
		return nil
	}
	return ch.take(n, w, want, node, slices.Clone(list))
}

func (ch *chooser) groupByNode() {
	if ch.grouped {
		return
	}
	ch.grouped = true
	for i := range ch.list {
		k := &ch.list[i]
		if k.AM {
			continue
		}
		n := ch.see(k.Node)
		if len(n.takes) == 0 {
			ch.nodes = append(ch.nodes, n)
		}
		n.takes = append(n.takes, int32(i))
	}
	if !ch.leastWork {
		return
	}
	for _, n := range ch.nodes {
		slices.SortStableFunc(n.takes, func(i, j int32) int {
			a, b := &ch.list[i], &ch.list[j]
			return cmp.Or(last(a.Lent)-last(b.Lent), cmp.Compare(a.choice.loss, b.choice.loss))
		})
	}
}

// clear returns the containers of a node that must end so that an ask fits. It also returns their cost for each
// container of the ask that fits then, up to want. It returns nil if the ask cannot fit, or fits already.
func (ch *chooser) clear(n *Need, w *Ask, node *Node, want int32) ([]*candidate, cost) {
	need, free := &w.Size.V, *ch.room(node)
	if ch.r.Sizes.Fits(need, &free) {
		return nil, cost{}
	}
	able := ch.able(n, w, node)
	list, free := ch.enough(n, need, able, free)
	fits := ch.r.Sizes.Fits(need, &free)
	if fits {
		list = ch.spare(need, list, free)
	}
	var price cost
	for _, k := range list {
		price = ch.with(price, k)
	}
	switch {
	case ch.leastWork && (!fits || len(list) > 1 || list[0] != able[0]):
		if list, price = ch.leastOn(n, w, node, able, list, price, fits); list == nil {
			return nil, cost{}
		}
	case !fits:
		return nil, cost{}
	}
	if ch.leastWork && want > 1 {
		price.loss /= ch.serves(w, node, list, want)
	}
	return list, price
}

// able returns the containers of a node that may be taken for an ask in this round, cheapest first. The list is
// overwritten later.
func (ch *chooser) able(n *Need, w *Ask, node *Node) []*candidate {
	able := ch.scratch[:0]
	for _, i := range ch.see(node).takes {
		k := &ch.list[i]
		if k.choice.taken || n.spares(k, w) {
			continue
		}
		if _, soon := k.budget.takes(ch.r.Sizes.Check, &k.Size.V, n.Rule); soon {
			able = append(able, k)
		}
	}
	ch.scratch = able
	return able
}

// enough returns the first containers after whose end an ask fits, within their budgets, and the free amount then.
func (ch *chooser) enough(
	n *Need, need *amounts.Vec, able []*candidate, free amounts.Vec,
) ([]*candidate, amounts.Vec) {
	r := ch.r
	list := able[:0:0]
	for _, k := range able {
		if may, _ := k.budget.takes(r.Sizes.Check, &k.Size.V, n.Rule); !may {
			continue
		}
		k.budget.reckon(&k.Size.V, 1)
		free.Add(&k.Size.V)
		list = append(list, k)
		if r.Sizes.Fits(need, &free) {
			break
		}
	}
	for _, k := range list {
		k.budget.reckon(&k.Size.V, -1)
	}
	return list, free
}

// spare removes the containers that are no longer needed, those with the highest loss first.
func (ch *chooser) spare(need *amounts.Vec, list []*candidate, free amounts.Vec) []*candidate {
	for i := len(list) - 1; i >= 0 && len(list) > 1; i-- {
		without := free
		without.Sub(&list[i].Size.V)
		if ch.r.Sizes.Fits(need, &without) {
			free = without
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}
