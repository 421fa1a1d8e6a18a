// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"math"
	"math/big"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"pgregory.net/rapid"
)

// slowly divides by the documented rule, one child after another, in exact fractions: percentages divide the
// remainder after amounts, weights the rest. Each child gets the range of its part when rounding goes either way.
func slowly(total, have, most int64, children []Portion, got []Extent, check func(k int, low, high *big.Rat)) {
	exact := func(f float64) *big.Rat { return new(big.Rat).SetFloat64(f) }
	whole := func(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }
	sum := func(unit queues.Unit) *big.Rat {
		all := new(big.Rat)
		for _, c := range children {
			if c.Unit == unit {
				all.Add(all, exact(c.Value))
			}
		}
		return all
	}
	least := func(a, b *big.Rat) *big.Rat {
		if a.Cmp(b) < 0 {
			return a
		}
		return b
	}
	left := whole(have)
	for _, unit := range []queues.Unit{queues.Absolute, queues.Percent, queues.Weight} {
		base, all := new(big.Rat).Set(left), sum(unit)
		for k, c := range children {
			if c.Unit != unit {
				continue
			}
			part := exact(c.Value)
			switch {
			case unit == queues.Absolute && all.Cmp(whole(have)) > 0:
				part.Mul(part, whole(have)).Quo(part, all)
			case unit == queues.Percent:
				part.Mul(part, base).Quo(part, whole(100))
			case unit == queues.Weight && all.Sign() > 0:
				part.Mul(part, base).Quo(part, all)
			}
			if c.Nothing || total == 0 && unit != queues.Absolute {
				part = new(big.Rat)
			}
			limit := whole(got[k].Most)
			low := least(least(new(big.Rat).Sub(part, whole(1)), limit), left)
			high := least(least(new(big.Rat).Add(part, whole(1)), limit), left)
			check(k, low, high)
			left.Sub(left, whole(got[k].Least))
		}
	}
}

// A division matches the rule to less than a unit, and never exceeds the available amount or a maximum.
func TestDivisionMatchesSlowRule(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		total := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, 1<<40)).Draw(t, "total")
		most := rapid.Int64Range(0, total).Draw(t, "most")
		have := rapid.Int64Range(0, most).Draw(t, "have")
		children := make([]Portion, rapid.IntRange(1, 7).Draw(t, "children"))
		for k := range children {
			c := &children[k]
			c.Unit = rapid.SampledFrom([]queues.Unit{queues.Absolute, queues.Percent, queues.Weight}).Draw(t, "unit")
			switch c.Unit {
			case queues.Absolute:
				c.Value = float64(rapid.Int64Range(0, max(1, total)).Draw(t, "amount"))
			case queues.Percent:
				c.Value = As32Bits(queues.Percent, rapid.Float64Range(0, 130).Draw(t, "percent"))
			default:
				c.Value = As32Bits(queues.Weight, rapid.Float64Range(0, 9).Draw(t, "weight"))
			}
			c.MaximumUnit = rapid.SampledFrom([]queues.Unit{queues.Unset, queues.Absolute, queues.Percent}).Draw(t, "maximum unit")
			switch c.MaximumUnit {
			case queues.Absolute:
				c.Maximum = float64(rapid.Int64Range(0, total+1).Draw(t, "maximum"))
			case queues.Percent:
				c.Maximum = As32Bits(queues.Percent, rapid.Float64Range(0, 100).Draw(t, "maximum"))
			}
			c.Nothing = rapid.IntRange(0, 5).Draw(t, "nothing") == 0
		}
		got := make([]Extent, len(children))
		Divide(total, have, most, children, got)
		// A percentage below a unit is no limit. The rule reads it as a part of the whole cluster.
		unit := func(percent float64) bool {
			return total > 0 && math.Floor(float64(total)*(float64(most)/float64(total)*percent/100)) > 0
		}
		sum := int64(0)
		for k, e := range got {
			sum += e.Least
			limit := most
			if c := children[k]; c.MaximumUnit == queues.Absolute && c.Maximum > 0 {
				limit = min(limit, int64(c.Maximum))
			} else if c.MaximumUnit == queues.Percent && (unit(c.Maximum) || c.Maximum == 0) {
				limit = min(limit, int64(math.Ceil(float64(most)*c.Maximum/100)))
			}
			if e.Least < 0 || e.Least > e.Most || e.Most > limit || children[k].Nothing && e.Least > 0 {
				t.Fatalf("child %d of %+v: %+v, at most %d", k, children, e, limit)
			}
		}
		if sum > have {
			t.Fatalf("%d of %d are given away: %+v of %+v", sum, have, got, children)
		}
		slowly(total, have, most, children, got, func(k int, low, high *big.Rat) {
			part := new(big.Rat).SetInt64(got[k].Least)
			if children[k].Unit == queues.Absolute { // scaled by a number of 24 bits
				slack := new(big.Rat).SetFrac64(have>>22, 1)
				low.Sub(low, slack)
				high.Add(high, slack)
			}
			if part.Cmp(low) < 0 || part.Cmp(high) > 0 {
				t.Fatalf("child %d of %+v in %d of %d (most %d) has %d, not within %s and %s",
					k, children, have, total, most, got[k].Least, low.FloatString(3), high.FloatString(3))
			}
		})
	})
}
