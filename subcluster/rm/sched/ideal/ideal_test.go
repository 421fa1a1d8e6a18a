// SPDX-License-Identifier: Apache-2.0

package ideal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// terms are those of a cluster with an amount of memory and as many vcores.
func terms(t *testing.T, total int64) *Terms {
	t.Helper()
	types, err := amounts.NewTypes(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	one := creel.NewResource(1, 1)
	sizes, err := amounts.NewSizes(types, one, creel.NewResource(1000, 1000), one)
	if err != nil {
		t.Fatal(err)
	}
	return &Terms{Sizes: &sizes, Total: both(total)}
}

// both is an amount with as much memory as vcores.
func both(n int64) amounts.Vec { return amounts.Vec{Memory: n, VCores: n} }

// leaf has a guarantee, uses an amount and asks for more.
func leaf(guarantee, used, asks int64) *Queue {
	return &Queue{
		Guarantee: both(guarantee), Used: both(used), Most: both(1000),
		Asks: asks > 0, Pending: both(asks), Wanted: both(asks),
	}
}

// parent has the sums of its children.
func parent(children ...*Queue) *Queue {
	p := &Queue{Most: both(1000), Children: children}
	for _, k := range children {
		p.Guarantee.Add(&k.Guarantee)
		p.Used.Add(&k.Used)
	}
	return p
}

func TestLeavesTradeUpToTheirGuarantees(t *testing.T) {
	kept := leaf(50, 80, 0)
	kept.Kept = true
	for name, c := range map[string]struct {
		terms        func(*Terms)
		loser, taker *Queue
		ideals       [2]int64
		own, beyond  int64
		hard, even   int64
	}{
		"below its guarantee, the taker gets it": {
			nil, leaf(50, 80, 0), leaf(50, 20, 30), [2]int64{50, 50}, 30, 0, 30, 30,
		},
		"demand bounds the ideal": {
			nil, leaf(50, 80, 0), leaf(50, 20, 10), [2]int64{70, 30}, 10, 0, 30, 10,
		},
		"with its guarantee, the taker gets nothing": {
			nil, leaf(40, 60, 0), leaf(40, 40, 60), [2]int64{60, 40}, 0, 0, 0, 0,
		},
		"what is kept is not divided": {
			nil, kept, leaf(50, 20, 30), [2]int64{80, 20}, 0, 0, 0, 0,
		},
		"balanced, the rest is even": {
			func(t *Terms) { t.Balance = true }, leaf(40, 60, 0), leaf(40, 40, 60), [2]int64{50, 50}, 0, 10, 20, 10,
		},
		"a small excess is ignored": {
			func(t *Terms) { t.Ignored = 0.7 }, leaf(50, 80, 0), leaf(50, 20, 30), [2]int64{50, 50}, 30, 0, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := terms(t, 100)
			if c.terms != nil {
				c.terms(at)
			}
			Divide(parent(c.loser, c.taker), at)
			if got := [2]int64{c.loser.Ideal.Memory, c.taker.Ideal.Memory}; got != c.ideals {
				t.Errorf("the ideals are %v, want %v", got, c.ideals)
			}
			s := c.taker.Short(at)
			if s.Own.Memory != c.own || s.Beyond.Memory != max(c.beyond, 0) || (s.Types != 0) != (c.own > 0) {
				t.Errorf("the shortage is %+v, want %d and %d beyond", s, c.own, c.beyond)
			}
			e, has := c.loser.Excess(at)
			if e.Hard.Memory != c.hard || e.Even.Memory != c.even || has != (c.even > 0) {
				t.Errorf("the excess is %+v (%v), want %d, %d of it above the ideal", e, has, c.hard, c.even)
			}
		})
	}
}

// A leaf below its guarantee takes from another branch, even if its own parent is above its guarantee.
func TestLeafTakesFromOtherBranches(t *testing.T) {
	greedy, poor, other := leaf(25, 50, 0), leaf(25, 5, 20), leaf(50, 45, 0)
	Divide(parent(parent(greedy, poor), other), terms(t, 100))
	if poor.Ideal.Memory != 25 {
		t.Errorf("the leaf's ideal is %v, want its guarantee of 25", poor.Ideal)
	}
	if greedy.Ideal.Memory+poor.Ideal.Memory > 55 || other.Ideal.Memory != 45 {
		t.Errorf("the ideals are %v, %v and %v", greedy.Ideal, poor.Ideal, other.Ideal)
	}
}

func TestHigherPriorityRisesFirst(t *testing.T) {
	for byPriority, want := range map[bool][2]int64{true: {60, 20}, false: {40, 40}} {
		high, low, idle := leaf(20, 20, 40), leaf(20, 60, 0), leaf(60, 20, 0)
		high.Priority = 2
		root, at := parent(low, high, idle), terms(t, 100)
		root.ByPriority, at.Balance = byPriority, true
		Divide(root, at)
		if got := [2]int64{high.Ideal.Memory, low.Ideal.Memory}; got != want {
			t.Errorf("by priority %v: the ideals are %v, want %v", byPriority, got, want)
		}
	}
}

// A queue with excess of one type, which is not its largest guaranteed one, keeps its guarantees of the others.
func TestExcessSparesOtherGuarantees(t *testing.T) {
	loser := &Queue{
		Guarantee: amounts.Vec{Memory: 60, VCores: 20}, Used: amounts.Vec{Memory: 65, VCores: 90}, Most: both(1000),
	}
	at := terms(t, 100)
	Divide(parent(loser, leaf(30, 5, 40)), at)
	e, _ := loser.Excess(at)
	if e.Types != 1<<1 || e.Hard.VCores != 70 || e.Even.VCores != 20 {
		t.Fatalf("the excess is %+v, want 70 vcores, 20 of them above the ideal", e)
	}
	if e.Least != 1<<0 || e.Hard.Memory != 5 {
		t.Errorf("the excess is %+v, want at most the 5 of memory above the guarantee", e)
	}
}

func TestRandomTreesKeepThePromises(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		at := terms(t, 1000)
		at.Balance, at.Ignored = rnd.IntN(2) == 0, float64(rnd.IntN(3))/10
		root := tree(rnd, 1000, 3)
		Divide(root, at)
		keepsPromises(t, fmt.Sprintf("seed %d", seed), root, at)
	}
}

// tree is a random tree whose children divide a guarantee.
func tree(rnd *rand.Rand, guarantee int64, depth int) *Queue {
	n := 1 + rnd.IntN(4)
	var list []*Queue
	for range n {
		g := guarantee / int64(n)
		if depth > 1 && rnd.IntN(2) == 0 {
			list = append(list, tree(rnd, g, depth-1))
			continue
		}
		q := leaf(g, rnd.Int64N(2*g+1), rnd.Int64N(200)*rnd.Int64N(2))
		q.Kept, q.Priority = rnd.IntN(5) == 0, int32(rnd.IntN(3))
		list = append(list, q)
	}
	p := parent(list...)
	p.ByPriority = rnd.IntN(2) == 0
	return p
}

func keepsPromises(t *testing.T, where string, x *Queue, at *Terms) {
	t.Helper()
	for i := range at.Sizes.Check {
		sum, kept := int64(0), int64(0)
		for _, k := range x.Children {
			least := min(k.Used.At(i), k.Guarantee.At(i)+k.untouched.At(i))
			if k.Ideal.At(i) < least {
				t.Errorf("%s: an ideal of %v is below the use of %v within %v", where, k.Ideal, k.Used, k.Guarantee)
			}
			sum, kept = sum+k.Ideal.At(i), kept+least
		}
		if len(x.Children) > 0 && sum > max(x.Ideal.At(i), kept) {
			t.Errorf("%s: children have %d of type %d together, their parent %d", where, sum, i, x.Ideal.At(i))
		}
	}
	if e, has := x.Excess(at); has && len(x.Children) == 0 {
		for i := range at.Sizes.Check {
			if e.Types>>i&1 != 0 && x.Used.At(i)-e.Hard.At(i) < x.Guarantee.At(i) {
				t.Errorf("%s: an excess of %v takes %v below %v", where, e.Hard, x.Used, x.Guarantee)
			}
		}
		if x.Kept {
			t.Errorf("%s: a leaf that loses nothing has an excess of %v", where, e.Hard)
		}
	}
	for _, k := range x.Children {
		keepsPromises(t, where, k, at)
	}
}
