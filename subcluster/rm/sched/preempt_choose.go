// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// candidate is a container that may be taken.
type candidate struct {
	Container
	app    *App
	budget *budget
	choice choice
	rank   int32 // position in the order
}

// candidates returns the containers of all applications with a budget, in the order of loss. In a partition borrowers
// come before asks of its label. AMs come last.
func (r *round) candidates() []candidate {
	byQueue := map[*Queue][]*App{}
	r.p.from.Apps(func(a *App) bool {
		if n := a.containers; n > 0 && a.inQueue && r.budgets[a.queue] != nil {
			byQueue[a.queue] = append(byQueue[a.queue], a)
		}
		return true
	})
	r.leastWork = slices.ContainsFunc(r.over, func(b *budget) bool { return b.queue.losesLeast() })
	list := r.p.memory.list[:0]
	for _, b := range r.over {
		apps := byQueue[b.queue]
		servedLast(apps)
		for _, a := range apps {
			list = r.addContainers(list, a, b)
		}
	}
	if r.lent {
		slices.SortStableFunc(list, func(a, b candidate) int { return last(a.Lent) - last(b.Lent) })
	}
	r.p.memory.list = list
	return list
}

// last orders lent containers before others.
func last(lent bool) int {
	if lent {
		return 0
	}
	return 1
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

func (r *round) addContainers(list []candidate, a *App, b *budget) []candidate {
	found := r.p.from.Newest(a, r.p.memory.found[:0])
	weight := 1.0
	if r.leastWork {
		weight = r.p.from.Weight(a)
	}
	for i := range found {
		c := &found[i]
		n := c.Node
		if n.of != r.part || n.use != Open || len(n.kept) > 0 || r.chosen[c.Owner] {
			continue
		}
		if may, _ := b.takes(r.part, &c.Size.V, RuleGuarantee); may {
			list = append(list, candidate{Container: *c, app: a, budget: b, choice: r.weigh(c, a, weight)})
			r.lent = r.lent || c.Lent
		}
	}
	clear(found)
	r.p.memory.found = found[:0]
	return list
}

// chooserMemory is reused by the next round.
type chooserMemory struct {
	list  []candidate
	found []Container
}

// chooser finds room for asks among candidates. It prefers a node where one container is enough, in the order of the
// candidates. Its second choice is the node where the fewest containers end. With LeastWork it always chooses the node
// with the least lost work.
type chooser struct {
	r       *round
	list    []candidate
	free    map[*Node]*amounts.Vec // free and unclaimed resources of a node
	cursors map[heapKey]int        // position in list, for asks without a required place
	byNode  map[*Node][]int32      // candidates except AMs
	nodes   []*Node                // in the order of the candidates
	heaps   map[heapKey]*bundles
	scratch []*candidate
	cleared []*Node               // nodes with room left by claims, in the order of the claims
	offered map[*amounts.Size]int // position in cleared, for asks without a required place
	lent    bool                  // some candidates are lent
	least   leastWork

	// See exchange.
	exchanges bool
	one       *amounts.Size // size of all candidates, nil if they differ
	chosen    map[*claim][]*candidate
	steps     int
}

// heapKey identifies the asks that a heap of nodes serves. These asks have one size, no required place, and rules that
// may take the same containers.
type heapKey struct {
	size    *amounts.Size
	balance bool
	spared  *Queue // queue that loses nothing to them, nil if it has no budget
}

func (r *round) keyOf(n *need, w *Ask) heapKey {
	k := heapKey{size: w.size, balance: n.rule == RuleBalance}
	if !n.rule.within() && r.budgets[n.queue] != nil {
		k.spared = n.queue
	}
	return k
}

func (r *round) chooser(list []candidate) *chooser {
	ch := &chooser{
		r: r, list: list, free: map[*Node]*amounts.Vec{}, cursors: map[heapKey]int{},
		heaps: map[heapKey]*bundles{}, lent: r.lent,
		offered: map[*amounts.Size]int{},
	}
	for i := range list {
		list[i].rank = int32(i)
	}
	ch.exchanges = r.leastWork && !slices.ContainsFunc(r.over, func(b *budget) bool { return !b.queue.losesLeast() })
	if ch.exchanges && len(list) > 0 {
		ch.one, ch.chosen = list[0].Size, map[*claim][]*candidate{}
		for i := range list {
			if list[i].Size != list[0].Size {
				ch.one = nil
				break
			}
		}
	}
	for _, c := range slices.Concat(r.p.claims, r.made) {
		// Without victims left, the claim's freed resources are already part of the node's count.
		if len(c.victims) == 0 {
			continue
		}
		f := ch.room(c.node)
		f.AddTimes(&c.size.V, -int64(c.count))
		for _, v := range c.victims {
			f.Add(&v.Size.V)
		}
		ch.clears(c.node, f)
	}
	return ch
}

func (ch *chooser) room(n *Node) *amounts.Vec {
	f := ch.free[n]
	if f == nil {
		f = new(n.free)
		ch.free[n] = f
	}
	return f
}

// clears records a node with room left by claims.
func (ch *chooser) clears(n *Node, room *amounts.Vec) {
	if room.Memory > 0 {
		ch.cleared = append(ch.cleared, n)
	}
}

// leftover serves an ask from room that claims leave, without victims. It returns the part of want that it did not
// serve. The room is not reserved: if another ask gets it, a later round makes a claim.
func (ch *chooser) leftover(r *round, n *need, w *Ask, want int32) int32 {
	if w.want != nil {
		return want
	}
	p, from := r.part, 0
	if !w.picky() {
		from = ch.offered[w.size]
		defer func() { ch.offered[w.size] = from }()
	}
	for ; from < len(ch.cleared); from++ {
		node := ch.cleared[from]
		if p.sizes.Fits(&w.size.V, &node.free) || !r.mayUse(w, node) {
			continue
		}
		for free := ch.room(node); p.sizes.Fits(&w.size.V, free); want-- {
			if want == 0 || !r.mayClaim(n, w) {
				return want
			}
			free.Sub(&w.size.V)
			r.serve(n, &w.size.V, 1)
			r.claimed[w]++
			sumOf(r.byUser, w.app.user).Add(&w.size.V)
		}
	}
	return want
}

// claim makes one claim for an ask. It returns nil if no preemptible containers would serve the ask.
func (ch *chooser) claim(r *round, n *need, w *Ask, want int32) *claim {
	if c := ch.single(r, n, w, want, false); c != nil {
		return c
	}
	if c := ch.bundle(r, n, w, want); c != nil {
		return c
	}
	return ch.single(r, n, w, want, true)
}

// single takes one container that frees enough: an AM only if ams permits it.
func (ch *chooser) single(r *round, n *need, w *Ask, want int32, ams bool) *claim {
	p := r.part
	from := 0
	if keep := !w.picky() && !ams && n.rule != RuleBalance; keep {
		of := r.keyOf(n, w)
		from = ch.cursors[of]
		defer func() { ch.cursors[of] = from }()
	}
	for ; from < len(ch.list); from++ {
		k := &ch.list[from]
		if k.choice.taken || k.AM != ams || n.spares(k, w) || !r.mayUse(w, k.Node) ||
			!ams && k.budget.queue.losesLeast() {
			continue
		}
		if _, soon := k.budget.takes(p, &k.Size.V, n.rule); !soon {
			continue
		}
		if ams && !p.sizes.Fits(&k.Size.V, &k.budget.ams) {
			continue
		}
		free := ch.room(k.Node)
		if !p.sizes.FitsPlus(&amounts.Vec{}, &w.size.V, plus(free, &k.Size.V)) || p.sizes.Fits(&w.size.V, free) {
			continue
		}
		if !r.mayTake(&k.Size.V) {
			return nil
		}
		return ch.take(r, n, w, want, k.Node, []*candidate{k})
	}
	return nil
}

// spares reports whether a candidate is never taken for an ask. An application loses nothing to its own asks, and a
// queue loses nothing to its own shortage.
func (n *need) spares(k *candidate, w *Ask) bool {
	return k.app == w.app || !n.rule.within() && k.app.queue == n.queue
}

func plus(a, b *amounts.Vec) *amounts.Vec {
	v := *a
	v.Add(b)
	return &v
}

// take books chosen containers of one node for as many of an ask as fit then.
func (ch *chooser) take(r *round, n *need, w *Ask, want int32, node *Node, chosen []*candidate) *claim {
	p, free := r.part, ch.room(node)
	for _, k := range chosen {
		k.choice.taken = true
		k.choice.of = int32(len(chosen))
		k.budget.take(&k.Size.V, 1)
		if k.AM {
			k.budget.ams.Sub(&k.Size.V)
		}
		free.Add(&k.Size.V)
	}
	count := int32(0)
	rest := need{rest: n.rest}
	for count < want && p.sizes.Fits(&w.size.V, free) && rest.due(p, &w.size.V) {
		free.Sub(&w.size.V)
		rest.rest.Sub(&w.size.V)
		count++
	}
	ch.clears(node, free)
	c := r.book(n, w, node, count, chosen)
	if ch.exchanges && w.size != ch.one {
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
	if ch.r.leastWork {
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
func (ch *chooser) bundle(r *round, n *need, w *Ask, want int32) *claim {
	ch.groupByNode()
	of := r.keyOf(n, w)
	h := ch.heaps[of]
	if h == nil || w.picky() {
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
		if !w.picky() {
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
func (ch *chooser) claimOn(n *need, w *Ask, node *Node, want int32) *claim {
	ch.groupByNode()
	list, _ := ch.clear(n, w, node, want)
	if list == nil {
		return nil
	}
	return ch.takeList(n, w, node, want, list)
}

func (ch *chooser) takeList(n *need, w *Ask, node *Node, want int32, list []*candidate) *claim {
	var sum amounts.Vec
	for _, k := range list {
		sum.Add(&k.Size.V)
	}
	if !ch.r.mayTake(&sum) {
		return nil
	}
	return ch.take(ch.r, n, w, want, node, slices.Clone(list))
}

func (ch *chooser) groupByNode() {
	if ch.byNode != nil {
		return
	}
	ch.byNode = map[*Node][]int32{}
	for i := range ch.list {
		k := &ch.list[i]
		if k.AM {
			continue
		}
		if ch.byNode[k.Node] == nil {
			ch.nodes = append(ch.nodes, k.Node)
		}
		ch.byNode[k.Node] = append(ch.byNode[k.Node], int32(i))
	}
	if !ch.r.leastWork {
		return
	}
	for _, list := range ch.byNode {
		slices.SortStableFunc(list, func(i, j int32) int {
			a, b := &ch.list[i], &ch.list[j]
			return cmp.Or(last(a.Lent)-last(b.Lent), cmp.Compare(a.choice.loss, b.choice.loss))
		})
	}
}

// clear returns the containers of a node that must end so that an ask fits. It also returns their cost for each
// container of the ask that fits then, up to want. It returns nil if the ask cannot fit, or fits already.
func (ch *chooser) clear(n *need, w *Ask, node *Node, want int32) ([]*candidate, cost) {
	p, need := ch.r.part, &w.size.V
	free := *ch.room(node)
	if p.sizes.Fits(need, &free) {
		return nil, cost{}
	}
	able := ch.scratch[:0]
	for _, i := range ch.byNode[node] {
		k := &ch.list[i]
		if k.choice.taken || n.spares(k, w) {
			continue
		}
		if _, soon := k.budget.takes(p, &k.Size.V, n.rule); soon {
			able = append(able, k)
		}
	}
	ch.scratch = able
	list := able[:0:0]
	for _, k := range able {
		if may, _ := k.budget.takes(p, &k.Size.V, n.rule); !may {
			continue
		}
		k.budget.reckon(&k.Size.V, 1)
		free.Add(&k.Size.V)
		list = append(list, k)
		if p.sizes.Fits(need, &free) {
			break
		}
	}
	for _, k := range list {
		k.budget.reckon(&k.Size.V, -1)
	}
	fits := p.sizes.Fits(need, &free)
	if fits {
		// Containers that are no longer needed are spared, those with the highest loss first.
		for i := len(list) - 1; i >= 0 && len(list) > 1; i-- {
			without := free
			without.Sub(&list[i].Size.V)
			if p.sizes.Fits(need, &without) {
				free = without
				list = slices.Delete(list, i, i+1)
			}
		}
	}
	var price cost
	for _, k := range list {
		price = ch.with(price, k)
	}
	switch {
	case ch.r.leastWork && (!fits || len(list) > 1 || list[0] != able[0]):
		if list, price = ch.leastOn(n, w, node, able, list, price, fits); list == nil {
			return nil, cost{}
		}
	case !fits:
		return nil, cost{}
	}
	if ch.r.leastWork && want > 1 {
		price.loss /= ch.serves(w, node, list, want)
	}
	return list, price
}
