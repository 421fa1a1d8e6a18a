// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"math"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// drawTree draws an input over a tree of at most three levels below root.
func drawTree(t *rapid.T) *Input {
	in := drawInput(t)
	for i := range rapid.IntRange(1, 4).Draw(t, "parents") {
		p := Parent{
			Above:     int32(rapid.IntRange(0, i).Draw(t, "above")),
			Guarantee: float64(rapid.IntRange(0, 60).Draw(t, "guarantee")) / 100,
			Weight:    float64(rapid.IntRange(1, 10).Draw(t, "weight")),
			Maximum:   math.Inf(1),
		}
		if rapid.Bool().Draw(t, "bounded") {
			p.Maximum = float64(rapid.IntRange(1, 150).Draw(t, "maximum")) / 100
		}
		in.Parents = append(in.Parents, p)
	}
	for l := range in.Leaves {
		in.Leaves[l].Above = int32(rapid.IntRange(0, len(in.Parents)).Draw(t, "parent"))
	}
	return in
}

// exact returns the entitlements of a tree's leaves, slowly and obviously: at each queue the level is found by
// halving, over the queues right below it.
func exact(in *Input) []float64 {
	type queue struct {
		guarantee, weight, want float64
		kids                    []*queue
		leaf                    int
	}
	root := &queue{leaf: -1}
	parents := make([]*queue, len(in.Parents))
	leaves := make([]*queue, len(in.Leaves))
	at := func(above int32) *queue {
		if above == 0 {
			return root
		}
		return parents[above-1]
	}
	for i, p := range in.Parents {
		parents[i] = &queue{guarantee: p.Guarantee, weight: p.Weight, leaf: -1}
		at(p.Above).kids = append(at(p.Above).kids, parents[i])
	}
	for i, l := range in.Leaves {
		leaves[i] = &queue{guarantee: l.Guarantee, weight: l.Weight, leaf: i}
		at(l.Above).kids = append(at(l.Above).kids, leaves[i])
	}
	for _, p := range in.Pairs {
		leaves[p.Leaf].want += p.Demand
	}
	maximum := map[*queue]float64{}
	for i, l := range in.Leaves {
		maximum[leaves[i]] = l.Maximum
	}
	for i, p := range in.Parents {
		maximum[parents[i]] = p.Maximum
	}
	maximum[root] = 0
	for _, c := range in.Members {
		maximum[root] += c
	}
	floor := map[*queue]float64{}
	var wants func(q *queue)
	wants = func(q *queue) {
		below := 0.0
		for _, k := range q.kids {
			wants(k)
			q.want += k.want
			below += floor[k]
		}
		q.want = min(q.want, maximum[q])
		floor[q] = min(q.want, max(q.guarantee, below))
	}
	wants(root)
	out := make([]float64, len(in.Leaves))
	var divide func(q *queue, share float64)
	divide = func(q *queue, share float64) {
		if q.leaf >= 0 {
			out[q.leaf] = share
			return
		}
		floors := 0.0
		for _, k := range q.kids {
			floors += floor[k]
		}
		part := func(k *queue, level float64) float64 {
			least := floor[k]
			if floors > share {
				least *= share / floors
			}
			return min(k.want, max(least, k.weight*level))
		}
		low, high := 0.0, 1e6
		for range 200 {
			mid, sum := (low+high)/2, 0.0
			for _, k := range q.kids {
				sum += part(k, mid)
			}
			if sum <= share {
				low = mid
			} else {
				high = mid
			}
		}
		for _, k := range q.kids {
			divide(k, part(k, low))
		}
	}
	divide(root, min(root.want, maximum[root]))
	return out
}

// Guarantees, weights and maxima of parents limit their leaves' entitlements: the same as the slow answer on
// thousands of trees.
func TestTreeEntitlementsMatchExactSolution(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		in := drawTree(t)
		p := (&Planner{}).Plan(in, nil)
		for l, want := range exact(in) {
			if math.Abs(p.Entitled[l]-want) > 1e-6 {
				t.Fatalf("leaf %d is entitled to %v, exactly to %v", l, p.Entitled[l], want)
			}
		}
		given, _ := sumsOf(in, p)
		for i := range in.Parents {
			sum := 0.0
			for l := range in.Leaves {
				for above := in.Leaves[l].Above; above > 0; above = in.Parents[above-1].Above {
					if int(above) == i+1 {
						sum += given[l]
					}
				}
			}
			if sum > in.Parents[i].Maximum+1e-9 {
				t.Fatalf("below parent %d %v are given, above its maximum %v", i, sum, in.Parents[i].Maximum)
			}
		}
	})
}

// If waiting demand can go anywhere, a queue's shares in all members add up to its entitlement, and containers within
// an entitlement stay where they run.
func TestFlexibleDemandGetsItsEntitlement(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		in := &Input{}
		n := rapid.IntRange(1, 5).Draw(t, "members")
		room := make([]float64, n)
		for m := range n {
			room[m] = 1 / float64(n)
			in.Members = append(in.Members, room[m])
		}
		for l := range rapid.IntRange(1, 6).Draw(t, "leaves") {
			leaf := Leaf{Weight: float64(rapid.IntRange(1, 5).Draw(t, "weight")), Maximum: math.Inf(1)}
			pending := float64(rapid.IntRange(0, 100).Draw(t, "pending")) / 100
			leaf.Wants = pending
			for m := range n {
				use := room[m] * float64(rapid.IntRange(0, 100).Draw(t, "use")) / 100
				room[m] -= use
				leaf.Wants += use
				in.Pairs = append(in.Pairs, Pair{
					Leaf: int32(l), Member: int32(m), Use: use, Demand: min(use+pending, in.Members[m]),
				})
			}
			in.Leaves = append(in.Leaves, leaf)
		}
		p := (&Planner{}).Plan(in, nil)
		given, members := sumsOf(in, p)
		for m, s := range members {
			if s > in.Members[m]+1e-9 {
				t.Fatalf("member %d gives %v of %v", m, s, in.Members[m])
			}
		}
		for l, g := range given {
			if math.Abs(g-p.Entitled[l]) > 0.01*p.Entitled[l]+1e-6 {
				t.Fatalf("leaf %d is given %v and entitled to %v", l, g, p.Entitled[l])
			}
		}
	})
}
