// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// localitySplit asks the member that has the wanted host or rack, and spreads
// what is wanted anywhere by weight and headroom: Hadoop's
// LocalityMulticastAMRMProxyPolicy. alpha is how much of the weight comes from
// headroom, 0..1; the rest comes from the document's weights. Rounding is by
// largest remainder and members keep what they hold, so an ask that is sent
// again does not move.
type localitySplit struct {
	weights Weights
	alpha   float64
}

func (localitySplit) name() string { return "locality" }

func (localitySplit) from(w Weights, alpha float64, _ int64) splitRule {
	return localitySplit{w, alpha}
}

func (l localitySplit) place(d *splitDecision, n int64, _ *rand.Rand) string {
	local := d.placeLocal(n)
	n -= local
	if n == 0 {
		return fmt.Sprintf("all %d are asked where their places are", local)
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
		"%d are asked where their places are, %d spread by weight (headroom counts %g)",
		local,
		n,
		l.alpha,
	)
}

// placeLocal places up to n containers where their places are, as far as the
// members do not hold them already, and tells how many. Hosts come first, then
// racks; of members that have a place home first, as far as there is room, for all
// others cost a UAM. Members in which the group has waited too long are left out,
// unless only its places will do.
func (d *splitDecision) placeLocal(n int64) int64 {
	if len(d.group.Places) == 0 {
		return 0
	}
	var placed int64
	for _, wanted := range [][]int64{d.hosts, d.racks} {
		caps := make([]int64, len(d.reach))
		weights := make([]float64, len(d.reach))
		for _, i := range d.worthwhile() {
			caps[i] = max(0, wanted[i]-d.shares[i])
		}
		if h := d.home; caps[h] > 0 {
			k := min(caps[h], n-placed, max(0, d.room(h)-d.newHere(h)))
			d.shares[h] += k
			caps[h] -= k
			placed += k
		}
		for i := range caps {
			weights[i] = float64(caps[i])
		}
		for i, more := range apportion(n-placed, weights, caps) {
			d.shares[i] += more
			placed += more
		}
	}
	return placed
}
