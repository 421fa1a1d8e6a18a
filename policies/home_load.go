// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"

	"github.com/creelrm/creel"
)

// loadHome takes the member with the most available memory, less the memory sent there since its last heartbeat. This
// is Hadoop's LoadBasedRouterPolicy without its herd effect. A weight of 0 excludes a member; other weights have no
// effect.
type loadHome struct{ weights Weights }

func (loadHome) name() string { return "load" }

func (l loadHome) given() Weights { return l.weights }

func (loadHome) with(weights Weights) homeRule { return loadHome{weights} }

func (l loadHome) choose(d *homeDecision, _ *rand.Rand) (int, string) {
	d.excludeWeightless(l.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	d.sentSince()
	numbers := func(i int, n *Numbers) {
		n.Of, n.Free = "memory", creel.Resource{MemoryMB: d.status(i).Load.Metrics.AvailableMB}
		if p := d.status(i).Load.Labels.Find(d.label(i)); p != nil {
			n.Free.MemoryMB = p.Free().MemoryMB
		}
		sent := d.sentTo(i)
		n.Apps, n.Assumed = sent.Apps, sent.Size
	}
	for _, i := range d.in {
		var n Numbers
		numbers(i, &n)
		d.score[i] = float64(n.Free.MemoryMB - n.Assumed.MemoryMB)
	}
	d.numbers = numbers
	best := d.best(d.in)
	return best, fmt.Sprintf("it has the most available memory, %.0f MiB", d.score[best])
}
