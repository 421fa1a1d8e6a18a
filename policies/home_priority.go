// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// priorityHome takes the member of the greatest weight that is up, of equal
// ones the first by id: Hadoop's PriorityRouterPolicy.
type priorityHome struct{ weights Weights }

func (priorityHome) name() string { return "priority" }

func (p priorityHome) given() Weights { return p.weights }

func (priorityHome) with(weights Weights) homeRule { return priorityHome{weights} }

func (p priorityHome) choose(d *homeDecision, _ *rand.Rand) (int, string) {
	d.excludeWeightless(p.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	for _, i := range d.in {
		d.all[i].Score = p.weights.of(d.all[i].Member)
	}
	best := d.best(d.in)
	return best, fmt.Sprintf("it has the greatest weight, %g, of those that are up", d.all[best].Score)
}

// best is the one of the highest score, of equal ones the first by id.
func (d *homeDecision) best(of []int) int {
	best := of[0]
	for _, i := range of[1:] {
		if d.all[i].Score > d.all[best].Score {
			best = i
		}
	}
	return best
}
