// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// priorityHome takes the active member with the greatest weight, of equal weights the first by id. This is Hadoop's
// PriorityRouterPolicy.
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
		d.score[i] = p.weights.of(d.id(i))
	}
	best := d.best(d.in)
	return best, fmt.Sprintf("it has the greatest weight, %g, of the active members", d.score[best])
}
