// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Portion is a child's configured part of one resource type.
type Portion struct {
	Unit        queues.Unit // Absolute, Percent or Weight
	Value       float64
	MaximumUnit queues.Unit // Unset, Absolute or Percent
	Maximum     float64
	Nothing     bool // a child without memory gets no other types
}

// Extent is a child's guarantee and maximum.
type Extent struct{ Least, Most int64 }

// Divide divides one resource type of a parent among children. The parent is guaranteed have of it and may use most;
// the cluster has total. Absolute amounts come first, scaled down if they exceed the total; percentages are of the
// remainder, weights of the rest. Within a unit the children are served in order, and no child gets more than its
// maximum or the rest.
func Divide(total, have, most int64, children []Portion, out []Extent) {
	var fixed, weights float64
	for _, c := range children {
		switch c.Unit {
		case queues.Absolute:
			fixed += c.Value
		case queues.Weight:
			weights += c.Value
		}
	}
	ofCluster, maxOfCluster := 0.0, 0.0
	if total > 0 {
		ofCluster, maxOfCluster = float64(have)/float64(total), float64(most)/float64(total)
	}
	left := float64(have)
	for _, unit := range [...]queues.Unit{queues.Absolute, queues.Percent, queues.Weight} {
		before, rest := left, 0.0
		if have > 0 {
			rest = left / float64(have)
		}
		for k := range children {
			c := &children[k]
			if c.Unit != unit {
				continue
			}
			var part float64
			switch unit {
			case queues.Absolute:
				scale := 1.0
				if fixed > float64(have) {
					scale = float64(float32(have) / float32(fixed))
				}
				part = math.Floor(scale * rest * c.Value)
			case queues.Percent:
				part = math.Floor(float64(total) * (ofCluster * rest * c.Value / 100))
			case queues.Weight:
				switch share := c.Value / weights; {
				case weights == 0:
				case share == 1:
					part = before
				default:
					part = math.Floor(float64(total)*(ofCluster*rest*share) + 0.5)
				}
			}
			limit := float64(most)
			switch c.MaximumUnit {
			case queues.Absolute:
				if c.Maximum > 0 {
					limit = min(limit, c.Maximum)
				}
			case queues.Percent:
				// As in Hadoop, part of a unit limits nothing: the child could never run a container.
				if part := math.Floor(float64(total) * (maxOfCluster * c.Maximum / 100)); part > 0 || c.Maximum == 0 {
					limit = min(limit, part)
				}
			}
			if c.Nothing {
				part = 0
			}
			part = min(part, limit, left)
			left -= part
			out[k] = Extent{int64(part), int64(limit)}
		}
	}
}

// As32Bits rounds percentages and weights to 32 bits, as Hadoop does.
func As32Bits(unit queues.Unit, value float64) float64 {
	if unit == queues.Absolute {
		return value
	}
	return float64(float32(value))
}
