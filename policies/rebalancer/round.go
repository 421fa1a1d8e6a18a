// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"math"
	"slices"

	"github.com/creelrm/creel"
)

// Round turns shares into whole amounts by the largest remainder. The amounts sum to the rounded sum of the shares.
// rest carries the rounded-off parts to the next call, so that no share above zero stays at zero for ever.
func Round(shares []float64, unit float64, rest []float64) []int64 {
	out := make([]int64, len(shares))
	sum, whole := 0.0, int64(0)
	type remainder struct {
		part float64
		at   int
	}
	left := make([]remainder, 0, len(shares))
	for i, s := range shares {
		x := s / unit
		sum += x
		if rest != nil {
			x += rest[i]
		}
		out[i] = max(int64(math.Floor(x)), 0)
		whole += out[i]
		left = append(left, remainder{x - float64(out[i]), i})
	}
	slices.SortFunc(
		left,
		func(a, b remainder) int { return cmp.Or(cmp.Compare(b.part, a.part), cmp.Compare(a.at, b.at)) },
	)
	for n := int64(math.Round(sum)) - whole; n > 0 && len(left) > 0; n-- {
		i := left[0].at
		out[i]++
		left = append(left[1:], remainder{left[0].part - 1, i})
	}
	if rest != nil {
		for i, s := range shares {
			rest[i] += s/unit - float64(out[i])
		}
	}
	return out
}

// Share returns an amount as a part of the federation by its dominant type.
func Share(r, total creel.Resource) float64 {
	s := r.Dominant(total)
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return 1
	}
	return s
}
