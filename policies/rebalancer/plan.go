// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/creelrm/creel"
)

// Input of a plan: what the members' reports and the queue tree say, as arrays
// that hold only pairs of queue and member with demand or use. Amounts are
// shares of one unit of the whole federation's dominant type, so that queues of
// different shape compare (see Share).
type Input struct {
	Members []float64 // capacity of each
	Leaves  []Leaf
	Pairs   []Pair // by leaf, then member
}

// Leaf is a queue without queues below it.
type Leaf struct {
	Guarantee float64 // of the federation
	Weight    float64 // of what is beyond guarantees
	Maximum   float64 // math.Inf(1) for none
}

// Pair is what one leaf has and wants in one member.
type Pair struct {
	Leaf, Member int32
	Demand       float64 // use and pending, that which can run in this member
	Use          float64
}

// Plan is what each leaf is entitled to, and how much of that in each member.
type Plan struct {
	Entitled []float64 // by leaf
	Given    []float64 // by pair
	Sweeps   int
}

// Options of a plan.
type Options struct {
	Sweeps int     // at most so many of stage 2 [40]
	Stop   float64 // stop when no leaf's sum changes by more than this part [0.005]
}

// Planner computes plans and keeps its memory between them. It has one owner.
type Planner struct {
	Options

	split  []float64 // by pair: the part of its leaf's weight that counts in the member
	given  []float64
	sums   []float64
	before []float64
	norms  []float64
	order  []int32 // pairs by member
	starts []int32 // of each member in order
	level  []levelEntry
	basins []basin
}

// Plan computes one. warm, if it has the given of a former plan of the same
// pairs, begins from there; it may be nil.
func (p *Planner) Plan(in *Input, warm []float64) Plan {
	if p.Sweeps <= 0 {
		p.Sweeps = 40
	}
	if p.Stop <= 0 {
		p.Stop = 0.005
	}
	entitled := p.entitle(in)
	p.index(in)
	p.begin(in, warm)
	out := Plan{Entitled: entitled}
	for out.Sweeps < p.Sweeps {
		out.Sweeps++
		for m := range in.Members {
			p.fill(in, entitled, m)
		}
		if p.settle(in) {
			break
		}
	}
	out.Given = slices.Clone(p.given)
	return out
}

// entitle is stage 1: guarantees first, as far as they are wanted, then what is
// left by weight up to demand and maximum: the level L with the sum of
// min(want, max(guaranteed, weight*L)) equal to what there is.
func (p *Planner) entitle(in *Input) []float64 {
	want := make([]float64, len(in.Leaves))
	for i := range in.Pairs {
		want[in.Pairs[i].Leaf] += in.Pairs[i].Demand
	}
	total := 0.0
	for _, c := range in.Members {
		total += c
	}
	p.level = p.level[:0]
	for i := range in.Leaves {
		l := &in.Leaves[i]
		want[i] = min(want[i], l.Maximum)
		p.level = append(p.level, levelEntry{floor: min(want[i], l.Guarantee), ceiling: want[i], weight: l.weight()})
	}
	floors := 0.0
	for i := range p.level {
		floors += p.level[i].floor
	}
	if floors > total { // more is guaranteed than there is: everybody gets less in proportion
		for i := range p.level {
			p.level[i].floor *= total / floors
		}
	}
	level := waterLevel(p.level, total)
	out := make([]float64, len(in.Leaves))
	for i := range p.level {
		out[i] = p.level[i].at(level)
	}
	return out
}

func (l *Leaf) weight() float64 {
	switch {
	case l.Weight > 0:
		return l.Weight
	case l.Guarantee > 0:
		return l.Guarantee
	}
	return 1e-6
}

// levelEntry is one that water is filled into: from floor to ceiling, weight
// wide.
type levelEntry struct{ floor, ceiling, weight float64 }

func (e *levelEntry) at(level float64) float64 { return min(e.ceiling, max(e.floor, e.weight*level)) }

// waterLevel finds the level at which the entries together hold the amount, or
// +Inf when all are full before. The floors fit into the amount.
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
	// Newton's steps on a piecewise linear, concave-then-flat function: from a
	// level that is too low each step stays too low and at least one entry leaves
	// the active set, so it ends; in practice after four or five.
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

// index orders the pairs by member.
func (p *Planner) index(in *Input) {
	p.starts = resize(p.starts, len(in.Members)+1)
	clear(p.starts)
	for i := range in.Pairs {
		p.starts[in.Pairs[i].Member+1]++
	}
	for m := 1; m < len(p.starts); m++ {
		p.starts[m] += p.starts[m-1]
	}
	p.order = resize(p.order, len(in.Pairs))
	next := slices.Clone(p.starts)
	for i := range in.Pairs {
		m := in.Pairs[i].Member
		p.order[next[m]] = int32(i)
		next[m]++
	}
}

// begin splits each leaf's weight over its members: as it received in the plan
// before, else as it demands.
func (p *Planner) begin(in *Input, warm []float64) {
	p.given, p.split = resize(p.given, len(in.Pairs)), resize(p.split, len(in.Pairs))
	p.sums, p.before = resize(p.sums, len(in.Leaves)), resize(p.before, len(in.Leaves))
	clear(p.sums)
	clear(p.before)
	of := func(i int) float64 {
		if len(warm) == len(in.Pairs) && warm[i] > 0 {
			return warm[i]
		}
		return in.Pairs[i].Demand
	}
	for i := range in.Pairs {
		p.sums[in.Pairs[i].Leaf] += of(i)
	}
	norm := p.norm(len(in.Leaves))
	for i := range in.Pairs {
		p.split[i] = least
		if s := p.sums[in.Pairs[i].Leaf]; s > 0 {
			p.split[i] = max(of(i)/s, least)
		}
		norm[in.Pairs[i].Leaf] += p.split[i]
	}
	for i := range in.Pairs {
		p.split[i] /= norm[in.Pairs[i].Leaf]
	}
}

// least is the smallest part of its weight that a leaf keeps in a member, so
// that it can come back.
const least = 1e-7

// fill is stage 2 for one member alone: it shares its capacity by the leaves'
// weights as they are split now. What it gives is feasible at any time.
func (p *Planner) fill(in *Input, entitled []float64, m int) {
	pairs := p.order[p.starts[m]:p.starts[m+1]]
	p.basins = resize(p.basins, len(pairs))
	for j, i := range pairs {
		pair := &in.Pairs[i]
		p.basins[j] = basin{
			width: max(entitled[pair.Leaf]*p.split[i], 1e-12),
			// The parts of a maximum sum to it, so that no sum can be above it.
			ceiling: min(pair.Demand, in.Leaves[pair.Leaf].Maximum*p.split[i]),
		}
	}
	level := fillLevel(p.basins, in.Members[m])
	for j, i := range pairs {
		p.given[i] = min(p.basins[j].ceiling, p.basins[j].width*level)
	}
}

// basin is one that water is filled into from the bottom: levelEntry without a
// floor, half as large, since this is what a plan spends its time on
// (BenchmarkPlan).
type basin struct{ ceiling, width float64 }

// fillLevel is waterLevel for basins. What they hold is concave in the level, so
// Newton's steps from below never pass the answer, and end when no basin more is
// full.
func fillLevel(basins []basin, amount float64) float64 {
	full, width := 0.0, 0.0
	for _, b := range basins {
		full += b.ceiling
		width += b.width
	}
	if full <= amount {
		return math.Inf(1)
	}
	level := amount / width
	for range len(basins) {
		rest, open := amount, 0.0
		for _, b := range basins {
			if b.width*level >= b.ceiling {
				rest -= b.ceiling
			} else {
				open += b.width
			}
		}
		next := rest / open
		if open == 0 || next <= level*(1+1e-12) {
			break
		}
		level = next
	}
	return level
}

// settle sums up what leaves received and moves their weight towards where they received. It reports whether nothing
// moved any more.
func (p *Planner) settle(in *Input) bool {
	clear(p.sums)
	for i := range in.Pairs {
		p.sums[in.Pairs[i].Leaf] += p.given[i]
	}
	moved := 0.0
	for l, s := range p.sums {
		if ref := max(s, p.before[l]); ref > 0 {
			moved = max(moved, math.Abs(s-p.before[l])/ref)
		}
	}
	copy(p.before, p.sums)
	if moved < p.Stop {
		return true
	}
	norm := p.norm(len(in.Leaves))
	for i := range in.Pairs {
		l := in.Pairs[i].Leaf
		if s := p.sums[l]; s > 0 {
			x := p.given[i] / s / p.split[i]
			// To the power of 1.5, as x*sqrt(x): above it the sweeps stop improving, from 3
			// on they diverge (measured).
			p.split[i] = max(p.split[i]*x*math.Sqrt(x), least)
		}
		norm[l] += p.split[i]
	}
	for i := range in.Pairs {
		p.split[i] /= norm[in.Pairs[i].Leaf]
	}
	return false
}

func (p *Planner) norm(n int) []float64 {
	p.norms = resize(p.norms, n)
	clear(p.norms)
	return p.norms
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Round makes whole amounts of shares by the largest remainder: the sum is the
// rounded sum, and no share that was above zero stays at zero for ever: rest
// carries what was rounded away to the next call.
func Round(shares []float64, unit float64, rest []float64) []int64 {
	out := make([]int64, len(shares))
	sum, whole := 0.0, int64(0)
	type remainder struct {
		part float64
		at   int
	}
	left := make([]remainder, 0, len(shares))
	for i, s := range shares {
		x := s / unit
		sum += x
		if rest != nil {
			x += rest[i]
		}
		out[i] = max(int64(math.Floor(x)), 0)
		whole += out[i]
		left = append(left, remainder{x - float64(out[i]), i})
	}
	slices.SortFunc(
		left,
		func(a, b remainder) int { return cmp.Or(cmp.Compare(b.part, a.part), cmp.Compare(a.at, b.at)) },
	)
	for n := int64(math.Round(sum)) - whole; n > 0 && len(left) > 0; n-- {
		i := left[0].at
		out[i]++
		left = append(left[1:], remainder{left[0].part - 1, i})
	}
	if rest != nil {
		for i, s := range shares {
			rest[i] += s/unit - float64(out[i])
		}
	}
	return out
}

// Share is an amount as a part of the federation by its dominant type.
func Share(r, total creel.Resource) float64 {
	s := r.Dominant(total)
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return 1
	}
	return s
}

// reason says in words what a leaf is entitled to and why not to more.
func reason(l *Leaf, want, entitled float64) string {
	switch {
	case want == 0:
		return "it wants nothing"
	case entitled >= l.Maximum:
		return "its maximum in the federation"
	case entitled >= want*(1-1e-9):
		return "all it wants"
	case entitled <= l.Guarantee:
		return "its guarantee"
	}
	return fmt.Sprintf("its guarantee and a part of what others leave, by weight %.4g", l.weight())
}
