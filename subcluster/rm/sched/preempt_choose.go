// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// candidate is a container that may be taken.
type candidate struct {
	Container
	app    *App
	budget *budget
	used   bool // in a claim of this round
}

// candidates gives the containers of all applications that have a budget, in the
// order in which they are taken; AMs come last.
func (r *round) candidates() []candidate {
	byQueue := map[*Queue][]*App{}
	r.p.from.Apps(func(a *App) bool {
		if n := a.containers; n > 0 && a.inQueue && r.budgets[a.queue] != nil {
			byQueue[a.queue] = append(byQueue[a.queue], a)
		}
		return true
	})
	list := r.p.memory.list[:0]
	for _, b := range r.over {
		apps := byQueue[b.queue]
		servedLast(apps)
		begin := len(list)
		for _, a := range apps {
			list = r.addContainers(list, a, b)
		}
		if b.queue.losesLeast() {
			r.leastWork = true
			slices.SortStableFunc(list[begin:], func(x, y candidate) int { return cmp.Compare(y.Created, x.Created) })
		}
	}
	r.p.memory.list = list
	return list
}

// servedLast orders applications by who is served last.
func servedLast(apps []*App) {
	for _, a := range apps {
		if a.slot == 0 { // one that waits has its own up to date
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
	for _, c := range found {
		n := c.Node
		if may, _ := b.takes(r.s, &c.Size.V); may && !r.chosen[c.Owner] && n.of == r.s && n.use == Open && !n.held {
			list = append(list, candidate{Container: c, app: a, budget: b})
		}
	}
	clear(found)
	r.p.memory.found = found[:0]
	return list
}

// chooserMemory is used again by the next round.
type chooserMemory struct {
	list  []candidate
	found []Container
}

// chooser finds room for asks among candidates: first a node where one container
// is enough, in the order of the candidates; then the node where the fewest are.
// Of queues with LeastWork it is always the node where the least work is lost.
type chooser struct {
	r       *round
	list    []candidate
	free    map[*Node]*amounts.Vec // what is free of a node and not claimed
	cursors map[*amounts.Size]int  // of the list, for asks that may go anywhere
	byNode  map[*Node][]int32      // candidates but AMs
	nodes   []*Node                // in the order of the candidates
	heaps   map[*amounts.Size]*bundles
	scratch []*candidate
}

func (r *round) chooser(list []candidate) *chooser {
	ch := &chooser{
		r: r, list: list, free: map[*Node]*amounts.Vec{}, cursors: map[*amounts.Size]int{},
		heaps: map[*amounts.Size]*bundles{},
	}
	for _, c := range slices.Concat(r.p.claims, r.made) {
		// What is free there is counted on already, so far as the victims do not suffice.
		if len(c.victims) == 0 {
			continue
		}
		f := ch.room(c.node)
		f.AddTimes(&c.size.V, -int64(c.count))
		for _, v := range c.victims {
			f.Add(&v.Size.V)
		}
		f.Min(&c.node.free)
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

// claim makes one claim for an ask, nil if there is nothing to take that would
// serve it.
func (ch *chooser) claim(r *round, n *need, w *Ask, want int32) *claim {
	if c := ch.single(r, n, w, want, false); c != nil {
		return c
	}
	if c := ch.bundle(r, n, w, want); c != nil {
		return c
	}
	return ch.single(r, n, w, want, true)
}

// single takes one container that makes room enough: an AM only if ams says so.
func (ch *chooser) single(r *round, n *need, w *Ask, want int32, ams bool) *claim {
	s := r.s
	from := 0
	if keep := !w.picky() && !ams; keep {
		from = ch.cursors[w.size]
		defer func() { ch.cursors[w.size] = from }()
	}
	for ; from < len(ch.list); from++ {
		k := &ch.list[from]
		if k.used || k.AM != ams || k.app == w.app || !w.mayUse(k.Node) || !ams && k.budget.queue.losesLeast() {
			continue
		}
		if _, soon := k.budget.takes(s, &k.Size.V); !soon {
			continue
		}
		if ams && !s.sizes.Fits(&k.Size.V, &k.budget.ams) {
			continue
		}
		free := ch.room(k.Node)
		if !s.sizes.FitsPlus(&amounts.Vec{}, &w.size.V, plus(free, &k.Size.V)) || s.sizes.Fits(&w.size.V, free) {
			continue
		}
		if !r.mayTake(&k.Size.V) {
			return nil
		}
		return ch.take(r, n, w, want, k.Node, []*candidate{k})
	}
	return nil
}

func plus(a, b *amounts.Vec) *amounts.Vec {
	v := *a
	v.Add(b)
	return &v
}

// take books chosen containers of one node for as many of an ask as fit then.
func (ch *chooser) take(r *round, n *need, w *Ask, want int32, node *Node, chosen []*candidate) *claim {
	s, free := r.s, ch.room(node)
	for _, k := range chosen {
		k.used = true
		k.budget.take(&k.Size.V, 1)
		if k.AM {
			k.budget.ams.Sub(&k.Size.V)
		}
		free.Add(&k.Size.V)
	}
	count := int32(0)
	rest := need{rest: n.rest}
	for count < want && s.sizes.Fits(&w.size.V, free) && rest.due(s, &w.size.V) {
		free.Sub(&w.size.V)
		rest.rest.Sub(&w.size.V)
		count++
	}
	return r.book(n, w, node, count, chosen)
}

// bundles are nodes by what clearing enough of them for one size costs.
type bundles struct {
	items []bundle
}

type bundle struct {
	node *Node
	at   int32 // place of the node in the order of the candidates
	cost float64
}

func (b *bundles) Len() int { return len(b.items) }
func (b *bundles) Less(i, j int) bool {
	x, y := &b.items[i], &b.items[j]
	return x.cost < y.cost || x.cost == y.cost && x.at < y.at
}
func (b *bundles) Swap(i, j int) { b.items[i], b.items[j] = b.items[j], b.items[i] }
func (b *bundles) Push(x any)    { b.items = append(b.items, x.(bundle)) }
func (b *bundles) Pop() any {
	k := len(b.items) - 1
	x := b.items[k]
	b.items = b.items[:k]
	return x
}

// bundle takes several containers of one node.
func (ch *chooser) bundle(r *round, n *need, w *Ask, want int32) *claim {
	ch.groupByNode()
	h := ch.heaps[w.size]
	if h == nil || w.picky() {
		h = &bundles{}
		for i, node := range ch.nodes {
			if !w.mayUse(node) {
				continue
			}
			if list, cost := ch.clear(r, w, node); list != nil {
				h.items = append(h.items, bundle{node, int32(i), cost})
			}
		}
		heap.Init(h)
		if !w.picky() {
			ch.heaps[w.size] = h
		}
	}
	for h.Len() > 0 {
		best := h.items[0]
		list, cost := ch.clear(r, w, best.node)
		if list == nil {
			heap.Pop(h)
			continue
		}
		if cost > best.cost {
			h.items[0].cost = cost
			heap.Fix(h, 0)
			continue
		}
		var sum amounts.Vec
		for _, k := range list {
			sum.Add(&k.Size.V)
		}
		if !r.mayTake(&sum) {
			return nil
		}
		return ch.take(r, n, w, want, best.node, slices.Clone(list))
	}
	return nil
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
}

// clear gives the containers of a node that end so that an ask fits, and what
// that costs: the number of them and the age of the oldest, or the work lost. nil
// if it cannot fit, or does so already.
func (ch *chooser) clear(r *round, w *Ask, node *Node) ([]*candidate, float64) {
	s, need := r.s, &w.size.V
	free := *ch.room(node)
	if s.sizes.Fits(need, &free) {
		return nil, 0
	}
	list := ch.scratch[:0]
	for _, i := range ch.byNode[node] {
		k := &ch.list[i]
		if k.used || k.app == w.app {
			continue
		}
		if _, soon := k.budget.takes(s, &k.Size.V); !soon {
			continue
		}
		k.budget.take(&k.Size.V, 1)
		free.Add(&k.Size.V)
		list = append(list, k)
		if s.sizes.Fits(need, &free) {
			break
		}
	}
	for _, k := range list {
		k.budget.take(&k.Size.V, -1)
	}
	ch.scratch = list
	if !s.sizes.Fits(need, &free) {
		return nil, 0
	}
	// Those that are not needed after all stay, the ones that would lose most first.
	for i := len(list) - 1; i >= 0 && len(list) > 1; i-- {
		without := free
		without.Sub(&list[i].Size.V)
		if s.sizes.Fits(need, &without) {
			free = without
			list = slices.Delete(list, i, i+1)
		}
	}
	ch.scratch = list
	cost := 0.0
	for _, k := range list {
		age := float64(max(s.ms()-k.Created, 1))
		if r.leastWork {
			cost += age * s.sizes.Dominant(&k.Size.V, &s.total)
		} else {
			cost = max(cost, age)
		}
	}
	if !r.leastWork {
		cost += float64(len(list)) * 1e15
	}
	return list, cost
}

// losesLeast reports whether the nearest queue that says so has LeastWork.
func (q *Queue) losesLeast() bool {
	for ; q != nil; q = q.parent {
		if v := q.spec.Victims; v != queues.VictimsDefault {
			return v == queues.LeastWork
		}
	}
	return false
}
