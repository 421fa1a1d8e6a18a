// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// weightedHome draws a member with a chance in proportion to its weight:
// Hadoop's WeightedRandomRouterPolicy. The weights of members that are out are
// shared by the others.
type weightedHome struct{ weights Weights }

func (weightedHome) name() string { return "weighted" }

func (w weightedHome) given() Weights { return w.weights }

func (weightedHome) with(weights Weights) homeRule { return weightedHome{weights} }

func (w weightedHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	d.excludeWeightless(w.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	var sum float64
	for _, i := range d.in {
		sum += w.weights.of(d.id(i))
	}
	at := rnd.Float64() * sum
	chosen := d.in[len(d.in)-1]
	for _, i := range d.in {
		weight := w.weights.of(d.id(i))
		d.score[i] = weight / sum
		if at >= 0 && at < weight {
			chosen = i
		}
		at -= weight
	}
	return chosen, fmt.Sprintf("drawn by weight, chance %.3f", d.score[chosen])
}
