// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// localityHome takes the member that has the host or rack the AM is wanted
// on, the nearest place first; without such a wish, or when nobody up has the
// place, it draws by weight: Hadoop's LocalityRouterPolicy. A strict wish that
// cannot be kept leaves nobody, and is never softened silently.
type localityHome struct{ weights Weights }

func (localityHome) name() string { return "locality" }

func (l localityHome) given() Weights { return l.weights }

func (localityHome) with(weights Weights) homeRule { return localityHome{weights} }

func (l localityHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	d.excludeWeightless(l.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	if d.sub.Where != nil {
		for _, place := range d.sub.Places {
			has := d.sub.Where(place)
			var here []int
			for _, i := range d.in {
				if slices.Contains(has, d.id(i)) {
					here = append(here, i)
				}
			}
			if len(here) == 0 {
				continue
			}
			for _, i := range here {
				d.score[i] = 1
			}
			d.numbers = func(i int, n *Numbers) {
				if d.score[i] > 0 {
					*n = words("has %s", place)
				}
			}
			return here[rnd.IntN(len(here))], fmt.Sprintf("it has %s, where the AM is wanted", place)
		}
	}
	if d.sub.Strict && len(d.sub.Places) > 0 {
		return -1, fmt.Sprintf("the AM must run on %q, and no member that is up has it", d.sub.Places)
	}
	i, because := weightedHome(l).choose(d, rnd)
	if len(d.sub.Places) > 0 {
		because = "no member that is up has the wanted places; " + because
	}
	return i, because
}
