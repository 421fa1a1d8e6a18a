// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// weightedHome draws a member with a chance in proportion to its weight. This is Hadoop's WeightedRandomRouterPolicy.
// Chances refer to the members that are not excluded.
type weightedHome struct{ weights Weights }

func (weightedHome) name() string { return "weighted" }

func (w weightedHome) given() Weights { return w.weights }

func (weightedHome) with(weights Weights) homeRule { return weightedHome{weights} }

func (w weightedHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	d.excludeWeightless(w.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	weight, sum := func(i int) float64 { return w.weights.of(d.id(i)) }, 0.0
	for _, i := range d.in {
		sum += weight(i)
	}
	for _, i := range d.in {
		d.score[i] = weight(i) / sum
	}
	chosen := d.in[drawn(d.in, weight, rnd.Float64())]
	return chosen, fmt.Sprintf("drawn by weight, chance %.3f", d.score[chosen])
}
