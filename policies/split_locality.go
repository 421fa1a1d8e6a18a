// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// localitySplit asks the member that has the requested host or rack, and spreads requests for any place by weight and
// headroom. This is Hadoop's LocalityMulticastAMRMProxyPolicy. alpha, 0..1, is the part of the weight that comes from
// headroom; the rest comes from the document's weights. Rounding is by largest remainder and members keep their asks,
// so a repeated ask does not move.
type localitySplit struct {
	weights Weights
	alpha   float64
}

func (localitySplit) name() string { return "locality" }

func (l localitySplit) given() Weights { return l.weights }

func (l localitySplit) with(w Weights) splitRule { return localitySplit{w, l.alpha} }

func (localitySplit) from(w Weights, alpha float64, _ int64) splitRule {
	return localitySplit{w, alpha}
}

func (l localitySplit) place(d *splitDecision, n int64, _ *rand.Rand) string {
	local := d.placeLocal(n)
	n -= local
	if n == 0 {
		return fmt.Sprintf("all %d are asked at their places", local)
	}
	var weightSum, headSum float64
	heads := make([]float64, len(d.reach))
	for _, i := range d.open {
		weightSum += l.weights.of(d.reach[i].Member)
		heads[i] = float64(d.room(i))
		headSum += heads[i]
	}
	weights := make([]float64, len(d.reach))
	for _, i := range d.open {
		byWeight := 1 / float64(len(d.open))
		if weightSum > 0 {
			byWeight = l.weights.of(d.reach[i].Member) / weightSum
		}
		byHead := byWeight
		if headSum > 0 {
			byHead = heads[i] / headSum
		}
		weights[i] = l.alpha*byHead + (1-l.alpha)*byWeight
	}
	for i, more := range apportion(n, weights, nil) {
		d.shares[i] += more
	}
	return fmt.Sprintf(
		"%d are asked at their places, %d spread by weight (headroom counts %g)",
		local,
		n,
		l.alpha,
	)
}

// placeLocal places up to n containers at members that have their places, less the asks that these members already
// have. It returns the number placed. Hosts come before racks, and members with free capacity come first. The rest
// waits at the members with its places.
func (d *splitDecision) placeLocal(n int64) (placed int64) {
	if len(d.group.Places) == 0 {
		return 0
	}
	for _, wanted := range [][]int64{d.hosts, d.racks} {
		placed += d.placeOn(wanted, n-placed, false)
		placed += d.placeOn(wanted, n-placed, true)
	}
	return placed
}

// placeOn places up to n containers and returns the number placed. wanted has the number of containers requested on
// places of each member. beyond: free capacity is no limit. Data may have replicas in several members, so few members
// are enough: home, then members where the application is, then the member with the most free capacity.
func (d *splitDecision) placeOn(wanted []int64, n int64, beyond bool) (placed int64) {
	lacks := make([]int64, len(d.reach))
	for _, i := range d.worthwhile() {
		lacks[i] = max(0, wanted[i]-d.shares[i])
	}
	give := func(i int, k int64) {
		d.shares[i] += k
		lacks[i] -= k
		placed += k
	}
	if from := d.from(); beyond && from >= 0 {
		k := min(lacks[from], n) // these stay: elsewhere they would wait too
		give(from, k)
		d.waiting += k
	}
	if beyond {
		inside := make([]float64, len(d.reach))
		for i, k := range lacks {
			if k > 0 && !d.fresh(i) {
				inside[i] = float64(k)
			}
		}
		for i, k := range apportion(n-placed, inside, slices.Clone(lacks)) {
			give(i, k)
		}
	}
	for placed < n {
		best, most := -1, int64(0)
		for i := range lacks {
			k := min(lacks[i], n-placed)
			if k > 0 && !beyond {
				k = min(k, d.room(i)-d.newHere(i))
			}
			if k <= 0 || d.fresh(i) && k < d.worth && !d.group.Strict {
				continue
			}
			if best < 0 || cmp.Or(
				cmp.Compare(btoi(i == d.home), btoi(best == d.home)),
				cmp.Compare(btoi(d.fresh(best)), btoi(d.fresh(i))),
				cmp.Compare(k, most)) > 0 {
				best, most = i, k
			}
		}
		if best < 0 {
			break
		}
		give(best, most)
	}
	return placed
}
