// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"math"
	"slices"
)

// Input is the input of a plan: members' reports and the queue tree. It has only pairs of queue and member with
// demand or use. Amounts are parts of the federation by the dominant type (see Share), so that queues that need
// different types can be compared.
type Input struct {
	Members []float64 // capacity of each
	Parents []Parent  // queues with children except root; each comes after its own parent
	Leaves  []Leaf
	Pairs   []Pair // by leaf, then member
}

// Parent is a queue with queues below it.
type Parent struct {
	Above     int32   // 1 + its own parent's index in Input.Parents, 0 for root
	Guarantee float64 // of the federation; raised to the sum of its children's guarantees
	Weight    float64 // for the part beyond guarantees
	Maximum   float64 // math.Inf(1) for none
}

// Leaf is a queue without queues below it.
type Leaf struct {
	Above     int32   // 1 + its parent's index in Input.Parents, 0 for root
	Guarantee float64 // of the federation
	Weight    float64 // for the part beyond guarantees
	Maximum   float64 // math.Inf(1) for none
	// Wants is the leaf's total demand if its waiting demand can run in any of its members and so counts in each of
	// its pairs. 0: the total is the sum of its pairs' demands.
	Wants float64
}

// Pair is the use and demand of one leaf in one member.
type Pair struct {
	Leaf, Member int32
	Demand       float64 // use and pending that can run in this member
	Use          float64
	Waits        float64 // the leaf's demand that waits here; other members could run it too
}

// Plan has each leaf's entitlement, and its part in each member.
type Plan struct {
	Entitled []float64 // by leaf
	Given    []float64 // by pair
	Sweeps   int
}

// Options of a plan.
type Options struct {
	Sweeps int     // limit on the sweeps of stage 2 [100]
	Stop   float64 // stop when no leaf's sum changes by more than this part [0.0002]
}

// Planner computes plans and reuses its buffers. It is not safe for concurrent use.
type Planner struct {
	Options

	slots  []slot  // by member: sweeps run through them in order (BenchmarkPlan)
	starts []int32 // of each member in slots
	given  []float64
	sums   []float64
	before []float64
	norms  []float64
	most   []float64 // by leaf
	placed []float64
	level  []levelEntry
	basins []basin
}

// slot is a pair as sweeps see it.
type slot struct {
	pair, leaf int32
	demand     float64
	split      float64 // the part of its leaf's weight that counts in the member
	given      float64
}

// Plan computes a plan. warm is the starting point: Given of an earlier plan of the same pairs, or nil.
func (p *Planner) Plan(in *Input, warm []float64) Plan {
	if p.Sweeps <= 0 {
		p.Sweeps = 100
	}
	if p.Stop <= 0 {
		p.Stop = 0.0002
	}
	entitled := p.entitle(in)
	p.index(in)
	p.begin(in, entitled, warm)
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
	p.given = resize(p.given, len(in.Pairs))
	for i := range p.slots {
		p.given[p.slots[i].pair] = p.slots[i].given
	}
	p.bindParents(in)
	out.Given = slices.Clone(p.given)
	return out
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
	p.slots = resize(p.slots, len(in.Pairs))
	next := slices.Clone(p.starts)
	for i := range in.Pairs {
		x := &in.Pairs[i]
		p.slots[next[x.Member]] = slot{pair: int32(i), leaf: x.Leaf, demand: x.Demand}
		next[x.Member]++
	}
	p.most = resize(p.most, len(in.Leaves))
	for l := range in.Leaves {
		p.most[l] = in.Leaves[l].most()
	}
}

// begin splits each leaf's weight over its members: by the previous plan, else by place, else by demand.
func (p *Planner) begin(in *Input, entitled, warm []float64) {
	p.sums, p.before = resize(p.sums, len(in.Leaves)), resize(p.before, len(in.Leaves))
	clear(p.sums)
	clear(p.before)
	p.place(in, entitled)
	if len(warm) == len(in.Pairs) {
		for i, given := range warm {
			if given > 0 {
				p.placed[i] = given
			}
		}
	}
	for i := range in.Pairs {
		p.sums[in.Pairs[i].Leaf] += p.placed[i]
	}
	norm := p.norm(len(in.Leaves))
	for i := range p.slots {
		x := &p.slots[i]
		x.split = least
		if s := p.sums[x.leaf]; s > 0 {
			x.split = max(p.placed[x.pair]/s, least)
		}
		norm[x.leaf] += x.split
	}
	p.normalise()
}

// normalise scales the splits of each leaf, which sum to norms, to the sum 1.
func (p *Planner) normalise() {
	for l, n := range p.norms {
		p.norms[l] = 1 / n
	}
	for i := range p.slots {
		p.slots[i].split *= p.norms[p.slots[i].leaf]
	}
}

// place splits entitlements over members for leaves whose waiting demand can run in any member. Running containers
// stay, within the leaf's entitlement. The rest of the entitlement goes to the remaining capacity, in proportion. If
// every leaf is in every member this is exact: entitlements sum to no more than the total, so the parts fit. Leaves
// with demand in particular members start with that demand.
func (p *Planner) place(in *Input, entitled []float64) {
	p.placed = resize(p.placed, len(in.Pairs))
	uses, rooms, room := make([]float64, len(in.Leaves)), slices.Clone(in.Members), make([]float64, len(in.Leaves))
	for i := range in.Pairs {
		uses[in.Pairs[i].Leaf] += in.Pairs[i].Use
	}
	for i := range in.Pairs {
		x := &in.Pairs[i]
		p.placed[i] = x.Use
		if u := uses[x.Leaf]; u > entitled[x.Leaf] {
			p.placed[i] *= entitled[x.Leaf] / u
		}
		rooms[x.Member] -= p.placed[i]
	}
	for i := range in.Pairs {
		x := &in.Pairs[i]
		room[x.Leaf] += max(0, rooms[x.Member])
	}
	for i := range in.Pairs {
		x := &in.Pairs[i]
		switch need := entitled[x.Leaf] - uses[x.Leaf]; {
		case in.Leaves[x.Leaf].Wants == 0:
			p.placed[i] = x.Demand
		case need > 0 && room[x.Leaf] > 0:
			p.placed[i] += need * max(0, rooms[x.Member]) / room[x.Leaf]
		}
	}
}

// least is the smallest part of its weight that a leaf keeps in a member. From zero a split could never grow again.
const least = 1e-7

// fill is stage 2 for one member: it divides the member's capacity by the leaves' present split weights. The result
// is feasible after each call.
func (p *Planner) fill(in *Input, entitled []float64, m int) {
	slots := p.slots[p.starts[m]:p.starts[m+1]]
	p.basins = resize(p.basins, len(slots))
	for j := range slots {
		x := &slots[j]
		p.basins[j] = basin{
			width: max(entitled[x.leaf]*x.split, 1e-12),
			// The parts of a maximum sum to the maximum, so the leaf's total cannot exceed it.
			ceiling: min(x.demand, p.most[x.leaf]*x.split),
		}
	}
	level := fillLevel(p.basins, in.Members[m])
	for j := range slots {
		slots[j].given = min(p.basins[j].ceiling, p.basins[j].width*level)
	}
}

// basin is a levelEntry without a floor. It has about half the size, since a plan spends most of its time here
// (BenchmarkPlan).
type basin struct{ ceiling, width float64 }

// fillLevel is waterLevel for basins. Their content is concave in the level, so Newton's steps from below never pass
// the answer. They end when no further basin is full.
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

// settle sums the leaves' shares and moves their weights towards the members where they received shares. It reports
// whether the sums have converged.
func (p *Planner) settle(in *Input) bool {
	clear(p.sums)
	for i := range p.slots {
		p.sums[p.slots[i].leaf] += p.slots[i].given
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
	for i := range p.slots {
		x := &p.slots[i]
		if s := p.sums[x.leaf]; s > 0 {
			part := x.given / (s * x.split)
			// To the power of 1.5, as x*sqrt(x): above it the sweeps stop improving, from 3
			// on they diverge (measured).
			x.split = max(x.split*part*math.Sqrt(part), least)
		}
		norm[x.leaf] += x.split
	}
	p.normalise()
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
