// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
)

// uniformHome draws a member; all have the same chance. This is Hadoop's UniformRandomRouterPolicy.
type uniformHome struct{}

func (uniformHome) name() string { return "uniform" }

func (uniformHome) given() Weights { return nil }

func (uniformHome) with(Weights) homeRule { return nil } // name it "weighted"

func (uniformHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	for _, i := range d.in {
		d.score[i] = 1 / float64(len(d.in))
	}
	return d.in[rnd.IntN(len(d.in))], fmt.Sprintf("drawn from %d members", len(d.in))
}

// rejectHome rejects every submission: Hadoop's RejectRouterPolicy.
type rejectHome struct{}

func (rejectHome) name() string { return "reject" }

func (rejectHome) given() Weights { return nil }

func (rejectHome) with(Weights) homeRule { return rejectHome{} } // weights have no effect

func (rejectHome) choose(*homeDecision, *rand.Rand) (int, string) { return -1, "rejected" }
