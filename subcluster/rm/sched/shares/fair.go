// SPDX-License-Identifier: Apache-2.0

package shares

// Claim is a child's claim to a part of one resource type.
type Claim struct {
	Weight      float64
	Least, Most int64
}

// At returns the child's part at a level: its weight times the level, within its bounds and in whole units.
func (c *Claim) At(level float64) int64 {
	return int64(min(max(c.Weight*level, float64(c.Least)), float64(c.Most)))
}

// Level finds the smallest level at which the parts add up to total. It halves as often as Hadoop's ComputeFairShares,
// so that the parts are equal to the last unit.
func Level(total int64, claims []Claim) float64 {
	sum := func(level float64) (all int64) {
		for i := range claims {
			all += claims[i].At(level)
		}
		return all
	}
	lo, hi := 0.0, 1.0
	for k := 0; sum(hi) < total && k < 64; k++ {
		hi *= 2
	}
	for range 25 {
		if mid := (lo + hi) / 2; sum(mid) < total {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
