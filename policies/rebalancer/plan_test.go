// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

func sumsOf(in *Input, p Plan) (leaves, members []float64) {
	leaves, members = make([]float64, len(in.Leaves)), make([]float64, len(in.Members))
	for i, g := range p.Given {
		leaves[in.Pairs[i].Leaf] += g
		members[in.Pairs[i].Member] += g
	}
	return leaves, members
}

func drawInput(t *rapid.T) *Input {
	in := &Input{}
	for range rapid.IntRange(1, 4).Draw(t, "members") {
		in.Members = append(in.Members, float64(rapid.IntRange(1, 100).Draw(t, "capacity"))/100)
	}
	for l := range rapid.IntRange(1, 6).Draw(t, "leaves") {
		leaf := Leaf{
			Guarantee: float64(rapid.IntRange(0, 50).Draw(t, "guarantee")) / 100,
			Weight:    float64(rapid.IntRange(1, 10).Draw(t, "weight")),
			Maximum:   math.Inf(1),
		}
		if rapid.Bool().Draw(t, "bounded") {
			leaf.Maximum = leaf.Guarantee + float64(rapid.IntRange(1, 100).Draw(t, "maximum"))/100
		}
		in.Leaves = append(in.Leaves, leaf)
		for m := range in.Members {
			if d := rapid.IntRange(0, 100).Draw(t, "demand"); d > 0 {
				in.Pairs = append(in.Pairs, Pair{Leaf: int32(l), Member: int32(m), Demand: float64(d) / 100})
			}
		}
	}
	return in
}

func TestAPlanIsFeasibleAndWastesNothing(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p := (&Planner{}).Plan(in, nil)
		leaves, members := sumsOf(in, p)
		for m, s := range members {
			if s > in.Members[m]+1e-9 {
				t.Fatalf("member %d gives %v of %v", m, s, in.Members[m])
			}
		}
		for l, s := range leaves {
			if s > in.Leaves[l].Maximum+1e-9 {
				t.Fatalf("leaf %d has %v, above its maximum %v", l, s, in.Leaves[l].Maximum)
			}
		}
		for i, g := range p.Given {
			pair := in.Pairs[i]
			if g < 0 || g > pair.Demand+1e-9 {
				t.Fatalf("%+v is given %v", pair, g)
			}
			// Work conserving: a leaf with a shortfall has a full member, or a maximum.
			if g < pair.Demand-1e-6 && members[pair.Member] < in.Members[pair.Member]-1e-6 &&
				math.IsInf(in.Leaves[pair.Leaf].Maximum, 1) {
				t.Fatalf("%+v is given %v though its member is not full (%v)", pair, g, members[pair.Member])
			}
		}
	})
}

func TestEntitlementsKeepFloorsAndAreMonotoneInWeight(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p := (&Planner{}).Plan(in, nil)
		total, sum, wanted, floors := 0.0, 0.0, 0.0, 0.0
		for _, c := range in.Members {
			total += c
		}
		want := make([]float64, len(in.Leaves))
		for _, x := range in.Pairs {
			want[x.Leaf] += x.Demand
		}
		for l := range want {
			want[l] = min(want[l], in.Leaves[l].Maximum)
			wanted += want[l]
			floors += min(want[l], in.Leaves[l].Guarantee)
		}
		for l, e := range p.Entitled {
			sum += e
			if floor := min(want[l], in.Leaves[l].Guarantee) * min(1, total/max(floors, 1e-12)); e < floor-1e-9 {
				t.Fatalf("leaf %d is entitled to %v, below its guarantee %v", l, e, floor)
			}
			if e > want[l]+1e-9 {
				t.Fatalf("leaf %d is entitled to %v and wants %v", l, e, want[l])
			}
		}
		if math.Abs(sum-min(total, wanted)) > 1e-6 {
			t.Fatalf("entitlements sum to %v of %v, wanted are %v", sum, total, wanted)
		}
		l := rapid.IntRange(0, len(in.Leaves)-1).Draw(t, "heavier")
		before := p.Entitled[l]
		in.Leaves[l].Weight *= 2
		if after := (&Planner{}).Plan(in, nil).Entitled[l]; after < before-1e-9 {
			t.Fatalf("with twice its weight leaf %d is entitled to %v, before to %v", l, after, before)
		}
	})
}

// Constant demand leads to constant shares after some rounds: from the twentieth on less than 2 % of the total moves
// in a round (algorithms of the global policy, invariant 9, wants less than 1 % after a few). Leaves with a maximum
// are slow: its parts follow the split, and the split follows the amounts that the parts let through.
func TestConstantDemandKeepsShares(t *testing.T) {
	const rounds, bound = 20, 0.02
	propertytest.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p := &Planner{Options: Options{Sweeps: 60, Stop: 1e-4}}
		plan := p.Plan(in, nil)
		for range rounds - 1 {
			plan = p.Plan(in, plan.Given)
		}
		for round := rounds; round < rounds+4; round++ {
			next := p.Plan(in, plan.Given)
			before, given := sumsOf(in, plan)
			after, _ := sumsOf(in, next)
			moved, total := 0.0, 0.0
			for l := range before {
				moved += math.Abs(before[l] - after[l])
			}
			for _, g := range given {
				total += g
			}
			if moved > bound*total {
				t.Fatalf("round %d: %v of %v moved though nothing changed", round, moved, total)
			}
			if !slices.Equal(plan.Entitled, next.Entitled) {
				t.Fatal("entitlements moved though nothing changed")
			}
			plan = next
		}
	})
}

func TestRoundingKeepsSumWithoutStarvation(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var shares []float64
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			shares = append(shares, float64(rapid.IntRange(0, 300).Draw(t, "share"))/100)
		}
		sum := 0.0
		for _, s := range shares {
			sum += s
		}
		total := int64(0)
		for _, x := range Round(shares, 1, nil) {
			total += x
		}
		if total != int64(math.Round(sum)) {
			t.Fatalf("%v rounds to a sum of %d", shares, total)
		}
		rest, got := make([]float64, len(shares)), make([]int64, len(shares))
		for range 400 {
			for i, x := range Round(shares, 1, rest) {
				got[i] += x
			}
		}
		if sum >= 1 {
			for i, s := range shares {
				if s > 0 && got[i] == 0 {
					t.Fatalf("%v of %v stays at nothing for ever", s, shares)
				}
			}
		}
	})
}

// oracle is the exact aggregate max-min of a/w by slow progressive filling: raise the level in small steps, freeze
// leaves that cannot grow by any re-routing (max flow).
func oracle(in *Input, weight []float64) []float64 {
	n, m := len(in.Leaves), len(in.Members)
	frozen := make([]float64, n)
	isFrozen := make([]bool, n)
	feasible := func(a []float64) bool {
		sum := 0.0
		for _, x := range a {
			sum += x
		}
		return flow(in, a, n, m) >= sum-1e-7
	}
	at := func(level float64) []float64 {
		a := slices.Clone(frozen)
		for l := range a {
			if !isFrozen[l] {
				a[l] = weight[l] * level
			}
		}
		return a
	}
	for left := n; left > 0; {
		low, high := 0.0, 1e4
		for range 60 {
			if mid := (low + high) / 2; feasible(at(mid)) {
				low = mid
			} else {
				high = mid
			}
		}
		level, progress := at(low), false
		for l := range level {
			if isFrozen[l] {
				continue
			}
			a := slices.Clone(level)
			a[l] += 1e-4
			if !feasible(a) {
				isFrozen[l], frozen[l], progress = true, level[l], true
				left--
			}
		}
		if !progress {
			break
		}
	}
	return frozen
}

// flow is the most that can be sent from leaves (at most a) over pairs (at most
// their demand) to members (at most their capacity), by augmenting paths.
func flow(in *Input, a []float64, n, m int) float64 {
	size := n + m + 2
	c := make([][]float64, size)
	for i := range c {
		c[i] = make([]float64, size)
	}
	for l := range a {
		c[0][1+l] = a[l]
	}
	for _, p := range in.Pairs {
		c[1+p.Leaf][1+n+int(p.Member)] = p.Demand
	}
	for i, x := range in.Members {
		c[1+n+i][size-1] = x
	}
	total := 0.0
	for {
		from := make([]int, size)
		for i := range from {
			from[i] = -1
		}
		queue := []int{0}
		for len(queue) > 0 && from[size-1] < 0 {
			u := queue[0]
			queue = queue[1:]
			for v := range c[u] {
				if v != 0 && from[v] < 0 && c[u][v] > 1e-10 {
					from[v] = u
					queue = append(queue, v)
				}
			}
		}
		if from[size-1] < 0 {
			return total
		}
		f := math.Inf(1)
		for v := size - 1; v != 0; v = from[v] {
			f = min(f, c[from[v]][v])
		}
		for v := size - 1; v != 0; v = from[v] {
			c[from[v]][v] -= f
			c[v][from[v]] += f
		}
		total += f
	}
}

func TestSweepsComeNearTheExactAnswer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var errors []float64
	for range 300 {
		in := &Input{}
		for range 2 + rnd.IntN(4) {
			in.Members = append(in.Members, 0.5+rnd.Float64())
		}
		for l := range 2 + rnd.IntN(8) {
			in.Leaves = append(in.Leaves, Leaf{Weight: 1 + rnd.Float64()*3, Maximum: math.Inf(1)})
			for m := range in.Members {
				if rnd.IntN(3) == 0 {
					in.Pairs = append(in.Pairs, Pair{Leaf: int32(l), Member: int32(m), Demand: rnd.ExpFloat64()})
				}
			}
		}
		// The same weights as the sweeps use: entitlements of stage 1.
		p := (&Planner{Options: Options{Sweeps: 80, Stop: 1e-5}}).Plan(in, nil)
		want := maxMin(in, positiveOnes(p.Entitled))
		got, _ := sumsOf(in, p)
		for l := range got {
			if want[l] > 1e-3 {
				errors = append(errors, math.Abs(got[l]-want[l])/want[l])
			}
		}
	}
	slices.Sort(errors)
	mean := 0.0
	for _, e := range errors {
		mean += e / float64(len(errors))
	}
	p99 := errors[len(errors)*99/100]
	t.Logf(
		"%d queues: error %.3f%% on average, %.2f%% at p99, %.2f%% at worst",
		len(errors),
		100*mean,
		100*p99,
		100*errors[len(errors)-1],
	)
	if mean > 0.001 || p99 > 0.01 {
		t.Error("the sweeps are too far from the exact answer")
	}
}

func positiveOnes(a []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] = max(out[i], 1e-9)
	}
	return out
}

func benchInput(members, leaves, pairs int) *Input {
	rnd := rand.New(rand.NewPCG(1, 2))
	in := &Input{}
	for range members {
		in.Members = append(in.Members, 1/float64(members))
	}
	each := pairs / leaves
	for l := range leaves {
		in.Leaves = append(
			in.Leaves,
			Leaf{Guarantee: 0.5 / float64(leaves), Weight: 1 + rnd.Float64(), Maximum: math.Inf(1)},
		)
		at := rnd.Perm(members)[:each]
		slices.Sort(at)
		for _, m := range at {
			in.Pairs = append(
				in.Pairs,
				Pair{Leaf: int32(l), Member: int32(m), Demand: rnd.ExpFloat64() * 2 / float64(pairs)},
			)
		}
	}
	return in
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct{ members, leaves, pairs int }{{100, 10_000, 50_000}, {100, 10_000, 1_000_000}} {
		in := benchInput(c.members, c.leaves, c.pairs)
		b.Run(
			fmt.Sprintf("cold/members=%d/queues=%d/pairs=%d", c.members, c.leaves, len(in.Pairs)),
			func(b *testing.B) {
				p := &Planner{}
				for b.Loop() {
					b.ReportMetric(float64(p.Plan(in, nil).Sweeps), "sweeps")
				}
			},
		)
		b.Run(
			fmt.Sprintf("warm/members=%d/queues=%d/pairs=%d", c.members, c.leaves, len(in.Pairs)),
			func(b *testing.B) {
				p := &Planner{Options: Options{Sweeps: 5}}
				warm := p.Plan(in, nil).Given
				rnd := rand.New(rand.NewPCG(3, 4))
				for b.Loop() {
					for range len(in.Pairs) / 50 {
						in.Pairs[rnd.IntN(len(in.Pairs))].Demand *= 0.9 + 0.2*rnd.Float64()
					}
					b.ReportMetric(float64(p.Plan(in, warm).Sweeps), "sweeps")
				}
			},
		)
	}
}
