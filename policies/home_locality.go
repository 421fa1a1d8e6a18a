// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// localityHome takes the member that has the host requested for the AM, or else the requested rack. Of several places
// the first named counts. A rack that all members have is ignored. Without a request, or if no active member has the
// place, it draws by weight, as Hadoop's LocalityRouterPolicy does. A strict request that cannot be met excludes all
// members, and is never relaxed silently.
type localityHome struct{ weights Weights }

func (localityHome) name() string { return "locality" }

func (l localityHome) given() Weights { return l.weights }

func (localityHome) with(weights Weights) homeRule { return localityHome{weights} }

func (l localityHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	d.excludeWeightless(l.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	known := false
	for _, place := range d.sub.nearestFirst() {
		here := d.having(place)
		if known = known || len(here) > 0; len(here) == 0 || isRack(place) && d.everywhere(place) {
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
		return here[rnd.IntN(len(here))], fmt.Sprintf("it has %s, requested for the AM", place)
	}
	if d.sub.Strict && len(d.sub.Places) > 0 && !known {
		return -1, fmt.Sprintf("the AM must run on %q, and no active member has it", d.sub.Places)
	}
	i, because := weightedHome(l).choose(d, rnd)
	if len(d.sub.Places) > 0 && !known {
		because = "no active member has the requested places; " + because
	}
	return i, because
}

// nearestFirst returns the submission's places, hosts before racks; none if they cannot be resolved.
func (s *Submission) nearestFirst() []string {
	if s.Where == nil {
		return nil
	}
	places := slices.Clone(s.Places)
	slices.SortStableFunc(places, func(a, b string) int { return cmp.Compare(btoi(isRack(a)), btoi(isRack(b))) })
	return places
}

// having returns the members in d.in that have a host or rack.
func (d *homeDecision) having(place string) (here []int) {
	has := d.sub.Where(place)
	for _, i := range d.in {
		if slices.Contains(has, d.id(i)) {
			here = append(here, i)
		}
	}
	return here
}

// everywhere reports whether all members have a rack.
func (d *homeDecision) everywhere(rack string) bool {
	has := d.sub.Where(rack)
	for i := range d.facts {
		if !slices.Contains(has, d.id(i)) {
			return false
		}
	}
	return true
}
