// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

// planOf returns a plan over two members of the same size, with each queue's share of the first, as a part of that.
func planOf(given map[creel.QueuePath]float64) *subcluster.Plan {
	p := &subcluster.Plan{Capacities: true, Members: []subcluster.MemberSize{{Member: "sc-1", Share: 0.5}, {Member: "sc-2", Share: 0.5}}}
	for path, x := range given {
		p.Queues = append(p.Queues, subcluster.QueuePlan{
			Queue: path, Members: []subcluster.MemberPlan{{Member: "sc-1", Capacity: x / 2}},
		})
	}
	slices.SortFunc(p.Queues, func(a, b subcluster.QueuePlan) int {
		if a.Queue < b.Queue {
			return -1
		}
		return 1
	})
	return p
}

func sharesOf(list []QueueCapacity) string {
	text := ""
	for _, q := range list {
		text += fmt.Sprintf("%s=%.3f ", q.Queue, q.Share)
	}
	return text
}

func TestCapacitiesFollowPlanElseConfiguration(t *testing.T) {
	own := []MemberQueue{
		{"root.prod", 0.6, 1}, {"root.research", 0.4, 1}, {"root.research.a", 0.3, 1}, {"root.research.b", 0.1, 1},
	}
	for _, c := range []struct {
		name  string
		given map[creel.QueuePath]float64
		want  string
	}{
		{
			"nobody wants anything", map[creel.QueuePath]float64{},
			"root.prod=0.600 root.research=0.400 root.research.a=0.300 root.research.b=0.100 ",
		},
		{
			"one has its guarantee of the federation here", map[creel.QueuePath]float64{"root.prod": 0.9},
			"root.prod=0.900 root.research=0.100 root.research.a=0.075 root.research.b=0.025 ",
		},
		{
			"all of the member is given away", map[creel.QueuePath]float64{"root.prod": 1},
			"root.prod=0.980 root.research=0.020 root.research.a=0.015 root.research.b=0.005 ",
		},
		{
			"two are given more than is configured", map[creel.QueuePath]float64{
				"root.prod": 0.2, "root.research.a": 0.5, "root.research.b": 0.2,
			},
			"root.prod=0.300 root.research=0.700 root.research.a=0.500 root.research.b=0.200 ",
		},
	} {
		if got := sharesOf(MemberCapacities(planOf(c.given), "sc-1", own)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if got := MemberCapacities(planOf(nil), "sc-3", own); got != nil {
		t.Errorf("a member that the plan does not count with: %v", got)
	}
}

func TestOptedOutQueuesKeepTheirCapacity(t *testing.T) {
	p := planOf(map[creel.QueuePath]float64{"root.a": 0.9, "root.b": 0.1, "root.c": 0})
	p.Queues[1].Optout = true
	own := []MemberQueue{{"root.a", 0.3, 1}, {"root.b", 0.3, 1}, {"root.c", 0.4, 1}}
	got := MemberCapacities(p, "sc-1", own)
	if got[1].Share < 0.24 || got[1].Share > 0.3 || got[0].Share < 0.7 {
		t.Error(sharesOf(got))
	}
	p = planOf(map[creel.QueuePath]float64{"root.a": 0.6, "root.b": 0.4, "root.c": 0})
	p.Queues[1].Optout = true
	if got := sharesOf(MemberCapacities(p, "sc-1", own)); got != "root.a=0.600 root.b=0.300 root.c=0.100 " {
		t.Error(got)
	}
}

// drawQueues draws queues of a member, two levels deep, whose shares sum as percentages do.
func drawQueues(t *rapid.T) (own []MemberQueue, leaves []creel.QueuePath) {
	parts := func(label string, of float64) []float64 {
		n := rapid.IntRange(1, 4).Draw(t, label)
		w := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, label+" weights")
		sum := 0.0
		for i := range w {
			w[i] += 0.01
			sum += w[i]
		}
		for i := range w {
			w[i] *= of / sum
		}
		return w
	}
	for i, share := range parts("queues", 1) {
		q := MemberQueue{creel.QueuePath(fmt.Sprintf("root.q%d", i)), share, 1}
		if rapid.Bool().Draw(t, "bounded") {
			q.Maximum = rapid.Float64Range(share, 1).Draw(t, "maximum")
		}
		own = append(own, q)
		if rapid.Bool().Draw(t, "leaf") {
			leaves = append(leaves, q.Queue)
			continue
		}
		for j, share := range parts("below", share) {
			c := MemberQueue{q.Queue + creel.QueuePath(fmt.Sprintf(".c%d", j)), share, q.Maximum}
			own, leaves = append(own, c), append(leaves, c.Queue)
		}
	}
	return own, leaves
}

func TestSiblingCapacitiesFitTheirParent(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		own, leaves := drawQueues(t)
		given, sum := map[creel.QueuePath]float64{}, 0.0
		for _, q := range leaves {
			given[q] = rapid.Float64Range(0, 1).Draw(t, "given")
			sum += given[q]
		}
		if sum > 1 { // a plan is feasible
			for q := range given {
				given[q] /= sum
			}
		}
		got := MemberCapacities(planOf(given), "sc-1", own)
		checkSums(t, got)
		shares, bounded := map[creel.QueuePath]float64{}, false
		for _, q := range got {
			shares[q.Queue] = q.Share
		}
		root := 0.0
		for _, q := range own {
			bounded = bounded || q.Maximum < 1
			if shares[q.Queue] > q.Maximum+1e-9 {
				t.Fatalf("%s has %v, above its maximum %v", q.Queue, shares[q.Queue], q.Maximum)
			}
			if q.Queue.Parent() == creel.RootQueue {
				root += shares[q.Queue]
			}
		}
		if !bounded && math.Abs(root-1) > 1e-6 {
			t.Fatalf("the queues below root have %v of the member", root)
		}
		for q, x := range given {
			if !bounded && shares[q] < x*(1-keepsCapacity)-1e-9 {
				t.Fatalf("%s is given %v by the plan and has %v", q, x, shares[q])
			}
		}
		again := MemberCapacities(planOf(given), "sc-1", own)
		if sharesOf(again) != sharesOf(got) {
			t.Fatalf("the same plan gives %s and then %s", sharesOf(got), sharesOf(again))
		}
		// Whatever was in force before, the result is valid, within the step, and settles.
		before := MemberCapacities(planOf(map[creel.QueuePath]float64{leaves[0]: 1}), "sc-1", own)
		for n := 0; ; n++ {
			next := ShapeCapacities(before, got, 0.01, 0.25)
			checkSums(t, next)
			for i := range next {
				if math.Abs(next[i].Share-before[i].Share) > 0.25+1e-9 {
					t.Fatalf("%s moves from %v to %v at once", next[i].Queue, before[i].Share, next[i].Share)
				}
			}
			if slices.Equal(next, before) {
				break
			}
			if before = next; n > 5 {
				t.Fatal("capacities do not settle")
			}
		}
	})
}

func checkSums(t *rapid.T, list []QueueCapacity) {
	has, sums := map[creel.QueuePath]float64{creel.RootQueue: 1}, map[creel.QueuePath]float64{}
	for _, q := range list {
		has[q.Queue] = q.Share
		sums[q.Queue.Parent()] += q.Share
	}
	for above, sum := range sums {
		if sum > has[above]+1e-9 {
			t.Fatalf("the queues below %s have %v, it has %v", above, sum, has[above])
		}
	}
}

func TestCapacitiesBringWaitingQueuesToEntitlement(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		members, leaves := rapid.IntRange(1, 4).Draw(t, "members"), rapid.IntRange(1, 5).Draw(t, "queues")
		r := &Reading{Tree: &Tree{}, Total: creel.NewResource(1<<20, 1<<10)}
		room := make([]float64, members)
		for m := range members {
			r.Members = append(r.Members, creel.SubclusterID(fmt.Sprint("sc-", m)))
			r.Input.Members = append(r.Input.Members, 1/float64(members))
			room[m] = 1 / float64(members)
		}
		r.Sizes = slices.Clone(r.Input.Members)
		for l := range leaves {
			r.Queues = append(r.Queues, creel.QueuePath(fmt.Sprint("root.q", l)))
			leaf := Leaf{Guarantee: 1 / float64(leaves), Maximum: math.Inf(1)}
			first, waits := len(r.Pairs), 0.0
			for m := range members {
				x := Pair{Leaf: int32(l), Member: int32(m), Use: rapid.Float64Range(0, 1).Draw(t, "use") * room[m]}
				x.Waits = rapid.SampledFrom([]float64{0, 0, 0.1, 0.5}).Draw(t, "waits")
				room[m] -= x.Use
				waits += x.Waits
				leaf.Wants += x.Use
				r.Pairs = append(r.Pairs, x)
			}
			leaf.Wants += waits
			for i := first; i < len(r.Pairs); i++ {
				r.Pairs[i].Demand = min(r.Pairs[i].Use+waits, r.Input.Members[r.Pairs[i].Member])
			}
			r.Leaves = append(r.Leaves, leaf)
		}
		p := (&Planner{}).Plan(&r.Input, nil)
		out := Publish(r, p, nil, PlanBounds{})
		GiveCapacities(r, p, out)
		sums := make([]float64, members)
		for l := range leaves {
			uses, has, waits := 0.0, 0.0, 0.0
			for m := range members {
				x, c := &r.Pairs[l*members+m], out.Queues[l].Capacity(r.Members[m])
				if c > x.Use+x.Waits+1e-9 {
					t.Fatalf("%s gets %v in %s, where it uses and waits for %v", r.Queues[l], c, r.Members[m], x.Use+x.Waits)
				}
				uses, has, waits, sums[m] = uses+x.Use, has+c, waits+x.Waits, sums[m]+c
			}
			if has > max(uses, p.Entitled[l])+1e-9 || has < min(uses, p.Entitled[l])-1e-9 {
				t.Fatalf("%s uses %v, is entitled to %v and gets %v", r.Queues[l], uses, p.Entitled[l], has)
			}
		}
		for m := range members {
			if sums[m] > r.Input.Members[m]+1e-9 {
				t.Fatalf("%s has %v and gives %v", r.Members[m], r.Input.Members[m], sums[m])
			}
			// No queue waits there below its entitlement while another there has more than its own.
			for l := range leaves {
				lack, over := p.Entitled[l], false
				for k := range members {
					lack -= out.Queues[l].Capacity(r.Members[k])
				}
				x := &r.Pairs[l*members+m]
				waits := x.Use + x.Waits - out.Queues[l].Capacity(r.Members[m])
				for o := range leaves {
					beyond := -p.Entitled[o]
					for k := range members {
						beyond += out.Queues[o].Capacity(r.Members[k])
					}
					over = over || min(beyond, out.Queues[o].Capacity(r.Members[m])) > 1e-6
				}
				if over && min(lack, waits) > 1e-6 {
					t.Fatalf("%s lacks %v and waits in %s, where others are above theirs", r.Queues[l], lack, r.Members[m])
				}
			}
		}
	})
}
