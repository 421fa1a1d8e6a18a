// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"

	"github.com/creelrm/creel"
)

// loadHome takes the member with the most available memory, less what was sent
// there since its last heartbeat: Hadoop's LoadBasedRouterPolicy, without its herd.
// A weight of 0 excludes; other weights do not matter.
type loadHome struct{ weights Weights }

func (loadHome) name() string { return "load" }

func (l loadHome) given() Weights { return l.weights }

func (loadHome) with(weights Weights) homeRule { return loadHome{weights} }

func (l loadHome) choose(d *homeDecision, _ *rand.Rand) (int, string) {
	d.excludeWeightless(l.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	for _, i := range d.in {
		apps, assumed := d.assumed(i)
		available := d.status(i).Load.Metrics.AvailableMB
		if p := d.status(i).Load.Labels.Find(d.label(i)); p != nil {
			available = p.Free().MemoryMB
		}
		d.all[i].Score = float64(available - assumed.MemoryMB)
		d.all[i].Numbers = Numbers{
			Of: "memory", Free: creel.Resource{MemoryMB: available}, Assumed: assumed, Apps: apps,
		}
	}
	best := d.best(d.in)
	return best, fmt.Sprintf("it has the most available memory, %.0f MB", d.all[best].Score)
}
