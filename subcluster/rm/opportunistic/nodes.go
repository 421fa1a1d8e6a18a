// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// node is the load of one node. Containers here are opportunistic ones, unless the field says otherwise.
type node struct {
	serial     int32
	name, rack string
	label      string
	candidate  bool // it has sent a heartbeat since its registration, with an estimate if that is needed

	// Of its last heartbeat.
	length, wait, capacity int32
	total, guaranteed      amounts.Vec
	reported               int64

	containers int32
	unseen     int32 // of them, granted and not yet reported by the node
	sheds      int32 // with Config.Moves, waiting containers that leave with its next answer
	placed     amounts.Vec

	share float64 // of the cluster's resources, free on it; computed for a sort
}

// queued is the length of its queue once it knows all its containers.
func (n *node) queued() int32 { return n.length + n.unseen }

// load is the figure that the comparator sorts by first.
func (n *node) load(c Comparator) int32 {
	if c == QueueWaitTime {
		return n.wait
	}
	return n.queued()
}

func (n *node) free() amounts.Vec {
	v := n.total
	v.Sub(&n.guaranteed)
	v.Sub(&n.placed)
	return v
}

// Report is a node's heartbeat.
type Report struct {
	Label      string
	Length     int32 // of its queue, of containers of both types
	Wait       int32 // estimated wait in its queue, ms; negative: unknown
	Capacity   int32 // of its queue
	Total      amounts.Vec
	Guaranteed amounts.Vec // sum of its guaranteed containers
}

// Nodes has the loads of all nodes. One goroutine owns it.
type Nodes struct {
	cfg    Config
	sizes  *amounts.Sizes
	open   func(serial int32) bool
	list   []*node            // by serial number; nil for nodes that were never added
	byName map[string][]*node // by the names that asks use
	pools  map[string]*pool   // by label
	order  []*node            // reused by sort

	sorted   bool
	sortedAt int64
	limit    int32
}

// pool has the nodes of one label, the least loaded first.
type pool struct {
	sorted []*node
	racks  map[string][]*node
}

// NewNodes returns the loads of no nodes. open reports whether a node may get containers now.
func NewNodes(cfg Config, sizes *amounts.Sizes, open func(serial int32) bool) *Nodes {
	l := &Nodes{cfg: cfg, sizes: sizes, open: open, byName: map[string][]*node{}, pools: map[string]*pool{}}
	l.limit = l.bounds().clamp(0)
	return l
}

// Add records a node that registered, or its new rack. It gets containers after its first heartbeat.
func (l *Nodes) Add(serial int32, name, rack string) {
	for len(l.list) <= int(serial) {
		l.list = append(l.list, nil)
	}
	n := l.list[serial]
	if n == nil {
		n = &node{serial: serial, name: name, wait: -1}
		l.list[serial] = n
		l.byName[name] = append(l.byName[name], n)
	}
	n.rack = rack
	n.candidate = false
}

func (l *Nodes) at(serial int32) *node {
	if int(serial) < len(l.list) {
		return l.list[serial]
	}
	return nil
}

// Report applies a heartbeat at a time in ns, and sorts the nodes if the period is over.
func (l *Nodes) Report(serial int32, r *Report, now int64) {
	n := l.at(serial)
	n.label, n.reported = r.Label, now
	n.length, n.wait, n.capacity = max(r.Length, 0), max(r.Wait, -1), r.Capacity
	n.total, n.guaranteed = r.Total, r.Guaranteed
	n.candidate = l.cfg.Comparator != QueueWaitTime || n.wait >= 0
	if !l.sorted || now-l.sortedAt >= int64(l.cfg.Period) {
		l.sorted, l.sortedAt = true, now
		l.sort()
	}
}

// Put books a container on a node. seen reports that the node knows it.
func (l *Nodes) Put(serial int32, size *amounts.Vec, seen bool) {
	n := l.at(serial)
	n.containers++
	n.placed.Add(size)
	if !seen {
		n.unseen++
	}
}

// Take removes a container from its node.
func (l *Nodes) Take(serial int32, size *amounts.Vec, seen bool) {
	n := l.at(serial)
	n.containers--
	n.placed.Sub(size)
	if !seen {
		n.unseen--
	}
}

// Seen records that a node has reported a container for the first time.
func (l *Nodes) Seen(serial int32) { l.at(serial).unseen-- }

// Resize changes the size of a container.
func (l *Nodes) Resize(serial int32, from, to *amounts.Vec) {
	n := l.at(serial)
	n.placed.Sub(from)
	n.placed.Add(to)
}

// Booked returns the sum and number of a node's containers, and how many of them it has not reported yet.
func (l *Nodes) Booked(serial int32) (placed amounts.Vec, containers, unseen int32) {
	n := l.at(serial)
	if n == nil {
		return placed, 0, 0
	}
	return n.placed, n.containers, n.unseen
}

// full reports whether the sorted list leaves a node out.
func (l *Nodes) full(n *node) bool {
	switch {
	case l.cfg.Comparator == QueueWaitTime:
		return false
	case n.capacity > 0:
		return n.queued() >= n.capacity
	}
	return l.cfg.Comparator == QueueLengthThenResources && n.queued() > 0
}

// sort fills the pools and computes the limit.
func (l *Nodes) sort() {
	order, total := l.order[:0], amounts.Vec{}
	for _, n := range l.list {
		if n != nil && n.candidate && l.open(n.serial) {
			total.Add(&n.total)
			if !l.full(n) {
				order = append(order, n)
			}
		}
	}
	l.order = order
	byShare := l.cfg.Comparator == QueueLengthThenResources && total.Memory > 0 && total.VCores > 0
	for _, n := range order {
		if n.share = 0; byShare {
			n.share = l.leastShare(n, &total)
		}
	}
	slices.SortFunc(order, l.compare)
	for _, p := range l.pools {
		p.clear()
	}
	for _, n := range order {
		p := l.pools[n.label]
		if p == nil {
			p = &pool{racks: map[string][]*node{}}
			l.pools[n.label] = p
		}
		p.sorted = append(p.sorted, n)
		p.racks[n.rack] = append(p.racks[n.rack], n)
	}
	l.limit = l.newLimit()
	l.share()
}

// Least calls yield with the nodes that get containers of asks without a place: the least loaded ones of each label.
func (l *Nodes) Least(yield func(serial int32) bool) {
	taken := map[string]int{}
	for _, n := range l.order {
		if taken[n.label] >= max(l.cfg.NodesUsed, 1) || l.full(n) || !l.open(n.serial) {
			continue
		}
		taken[n.label]++
		if !yield(n.serial) {
			return
		}
	}
}

// Queued is the length of a node's queue once the node knows all its containers.
func (l *Nodes) Queued(serial int32) int32 { return l.at(serial).queued() }

func (p *pool) clear() {
	clear(p.sorted)
	p.sorted = p.sorted[:0]
	for rack, list := range p.racks {
		if len(list) == 0 {
			delete(p.racks, rack) // it had no node at the last sort either
			continue
		}
		clear(list)
		p.racks[rack] = list[:0]
	}
}

// leastShare is the smallest share of the cluster, over the resource types, that is free on a node.
func (l *Nodes) leastShare(n *node, total *amounts.Vec) float64 {
	free, least := n.free(), math.Inf(1)
	for i := range l.sizes.N {
		if all := total.At(i); all > 0 {
			least = min(least, float64(free.At(i))/float64(all))
		}
	}
	return least
}

// compare orders nodes, the least loaded first. It is a total order, so that equal loads always sort equally.
func (l *Nodes) compare(a, b *node) int {
	c := l.cfg.Comparator
	order := cmp.Compare(a.load(c), b.load(c))
	if order == 0 && c == QueueLengthThenResources {
		x, y := a.free(), b.free()
		order = cmp.Or(
			cmp.Compare(b.share, a.share), cmp.Compare(y.VCores, x.VCores), cmp.Compare(y.Memory, x.Memory),
		)
	}
	return cmp.Or(order, cmp.Compare(b.reported, a.reported), cmp.Compare(a.serial, b.serial))
}

// admits reports whether a node takes one more container of a size.
func (l *Nodes) admits(n *node, size *amounts.Vec) bool {
	if !n.candidate || !l.open(n.serial) || !l.sizes.Fits(size, &n.total) {
		return false
	}
	if n.queued() < n.capacity {
		return true
	}
	free := n.free()
	return l.cfg.Comparator != QueueLength && l.sizes.Fits(size, &free)
}

// AppendState appends, as text, all state that determines later decisions.
func (l *Nodes) AppendState(b []byte) []byte {
	b = fmt.Appendf(b, "opportunistic sorted=%d limit=%d\n", l.sortedAt, l.limit)
	for _, n := range l.list {
		if n != nil {
			b = fmt.Appendf(b, "  %d %q candidate=%v length=%d wait=%d capacity=%d containers=%d unseen=%d sheds=%d placed=%v\n",
				n.serial, n.label, n.candidate, n.length, n.wait, n.capacity, n.containers, n.unseen, n.sheds, n.placed)
		}
	}
	return b
}
