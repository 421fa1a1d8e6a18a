// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
)

// entitle is stage 1. It runs from the root down the tree. At each parent the children get their guarantees first, up
// to their demand. The rest of the parent's share is split by weight, up to demand and maximum. That is the level L
// at which the sum of min(want, max(guaranteed, weight*L)) equals the parent's share.
func (p *Planner) entitle(in *Input) []float64 {
	// Node 0 is root, then come the parents, then the leaves.
	first := 1 + len(in.Parents)
	nodes := make([]node, first+len(in.Leaves))
	nodes[0].maximum = 0
	for _, c := range in.Members {
		nodes[0].maximum += c
	}
	for i := range in.Parents {
		q := &in.Parents[i]
		nodes[1+i] = node{
			above:     q.Above,
			guarantee: q.Guarantee,
			weight:    weight(q.Weight, q.Guarantee),
			maximum:   q.Maximum,
		}
	}
	for i := range in.Leaves {
		q := &in.Leaves[i]
		nodes[first+i] = node{
			above:     q.Above,
			guarantee: q.Guarantee,
			weight:    weight(q.Weight, q.Guarantee),
			maximum:   q.Maximum,
			want:      q.Wants,
		}
	}
	for i := range in.Pairs {
		if l := in.Pairs[i].Leaf; in.Leaves[l].Wants == 0 {
			nodes[first+int(l)].want += in.Pairs[i].Demand
		}
	}
	// Bottom up: each node's demand, and its guarantee within that demand. A parent's guarantee is at least the sum
	// of its children's, so its own setting cannot reduce theirs.
	children := make([][]int32, first)
	for i := len(nodes) - 1; i > 0; i-- {
		n := &nodes[i]
		n.want = min(n.want, n.maximum)
		n.floor = min(n.want, max(n.guarantee, n.floor))
		nodes[n.above].want += n.want
		nodes[n.above].floor += n.floor
		children[n.above] = append(children[n.above], int32(i))
	}
	nodes[0].share = min(nodes[0].maximum, nodes[0].want)
	for i := range first {
		p.divide(nodes, children[i], nodes[i].share)
	}
	out := make([]float64, len(in.Leaves))
	for i := range out {
		out[i] = nodes[first+i].share
	}
	return out
}

// node is a queue of the tree in stage 1. floor and share are parts of the federation.
type node struct {
	above                                          int32
	guarantee, weight, maximum, want, floor, share float64
}

// divide shares a parent's share among its children.
func (p *Planner) divide(nodes []node, children []int32, share float64) {
	p.level = p.level[:0]
	floors := 0.0
	for _, c := range children {
		n := &nodes[c]
		p.level = append(p.level, levelEntry{floor: n.floor, ceiling: n.want, weight: n.weight})
		floors += n.floor
	}
	if floors > share { // the guarantees exceed the total: every queue gets less in proportion
		for i := range p.level {
			p.level[i].floor *= share / floors
		}
	}
	level := waterLevel(p.level, share)
	for i, c := range children {
		nodes[c].share = p.level[i].at(level)
	}
}

// bindParents reduces leaves' shares in proportion if they sum to more than a parent's maximum. Stage 2 computes
// leaves' shares without the maxima of their parents.
func (p *Planner) bindParents(in *Input) {
	for i := len(in.Parents) - 1; i >= 0; i-- {
		if math.IsInf(in.Parents[i].Maximum, 1) {
			continue
		}
		below := func(above int32) bool {
			for ; above > 0; above = in.Parents[above-1].Above {
				if int(above) == i+1 {
					return true
				}
			}
			return false
		}
		sum := 0.0
		for j := range in.Pairs {
			if below(in.Leaves[in.Pairs[j].Leaf].Above) {
				sum += p.given[j]
			}
		}
		if sum <= in.Parents[i].Maximum {
			continue
		}
		for j := range in.Pairs {
			if below(in.Leaves[in.Pairs[j].Leaf].Above) {
				p.given[j] *= in.Parents[i].Maximum / sum
			}
		}
	}
}

// weight returns a queue's own weight, or else its guarantee, or else a tiny weight.
func weight(own, guarantee float64) float64 {
	switch {
	case own > 0:
		return own
	case guarantee > 0:
		return guarantee
	}
	return 1e-6
}

// most returns the upper bound of the leaf's share in all members together.
func (l *Leaf) most() float64 {
	if l.Wants > 0 {
		return min(l.Wants, l.Maximum)
	}
	return l.Maximum
}

// levelEntry is a vessel of the water filling: it reaches from floor to ceiling and is weight wide.
type levelEntry struct{ floor, ceiling, weight float64 }

func (e *levelEntry) at(level float64) float64 { return min(e.ceiling, max(e.floor, e.weight*level)) }

// waterLevel returns the level at which the entries sum to the amount, or +Inf if all ceilings sum to less. The
// floors sum to at most the amount.
func waterLevel(entries []levelEntry, amount float64) float64 {
	floors, full := 0.0, 0.0
	for i := range entries {
		floors += entries[i].floor
		full += entries[i].ceiling
	}
	if full <= amount {
		return math.Inf(1)
	}
	if floors >= amount {
		return 0
	}
	// Newton's steps on a piecewise linear, concave-then-flat function. From a level that is too low, each step stays
	// too low and removes at least one entry from the active set. So the loop ends, in practice after four or five
	// steps.
	low, high := 0.0, math.Inf(1)
	level := 0.0
	for range 64 {
		sum, slope, next := 0.0, 0.0, math.Inf(1)
		for i := range entries {
			e := &entries[i]
			switch w := e.weight * level; {
			case w >= e.ceiling:
				sum += e.ceiling
			case w >= e.floor:
				sum += w
				slope += e.weight
			default:
				sum += e.floor
				if e.weight > 0 {
					next = min(next, e.floor/e.weight)
				}
			}
		}
		rest := amount - sum
		if math.Abs(rest) <= 1e-9*amount {
			return level
		}
		if rest > 0 {
			low = level
		} else {
			high = level
		}
		switch {
		case slope > 0:
			level += rest / slope
		case rest > 0:
			level = next
		}
		if !(level > low && level < high) {
			if math.IsInf(high, 1) {
				level = max(next, low*2)
				continue
			}
			level = (low + high) / 2
		}
	}
	return low
}

// reason returns the limit that determines a leaf's entitlement, as text.
func reason(l *Leaf, want, entitled float64) string {
	switch {
	case want == 0:
		return "it has no demand"
	case entitled >= l.Maximum:
		return "its maximum in the federation"
	case entitled >= want*(1-1e-9):
		return "all it wants"
	case entitled <= l.Guarantee:
		return "its guarantee"
	}
	return fmt.Sprintf("its guarantee and a part of the rest, by weight %.4g", weight(l.Weight, l.Guarantee))
}
