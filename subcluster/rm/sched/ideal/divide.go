// SPDX-License-Identifier: Apache-2.0

package ideal

import (
	"cmp"
	"slices"
)

// Divide divides the cluster among the queues below the root, and sets the ideal of each.
func Divide(root *Queue, t *Terms) {
	root.measure(t)
	root.Ideal = t.Total
	root.assign(t.Sizes.Check)
}

// assign divides a queue's amount of the first types among its children, down to the leaves.
func (x *Queue) assign(types int) {
	if len(x.Children) == 0 {
		return
	}
	for i := range types {
		x.level(i)
	}
	for _, k := range x.Children {
		k.assign(types)
	}
}

// level divides one type. Each child gets its use within its guarantee, and its part that is not preemptible. The rest
// is divided in proportion to the guarantees, by priority first with priority-utilization. It is divided up to the
// guarantees, then beyond. A leaf's part ends at its demand. A leaf that has not exceeded its guarantee ends at the
// guarantee, unless the excess over guarantees is balanced. A parent's part ends with the parts of its leaves. So a
// leaf below its guarantee takes from other branches too, even if its parent is above its own.
func (x *Queue) level(i int) {
	least := func(k *Queue) int64 {
		return min(k.Used.At(i), k.Guarantee.At(i)+k.untouched.At(i))
	}
	most := func(k *Queue) int64 { return max(least(k), k.reach.At(i)) }
	left := x.Ideal.At(i)
	var byWeight, without []*Queue
	for _, k := range x.Children {
		k.Ideal.Set(i, least(k))
		left -= least(k)
		if k.Guarantee.At(i) > 0 {
			byWeight = append(byWeight, k)
		} else {
			without = append(without, k)
		}
	}
	own := func(k *Queue) float64 { return float64(k.Guarantee.At(i)) }
	even := func(*Queue) float64 { return 1 }
	if !x.priorities() {
		left = rise(byWeight, i, left, least, most, own)
		rise(without, i, left, least, most, even)
		return
	}
	now := func(k *Queue) int64 { return k.Ideal.At(i) }
	within := func(k *Queue) int64 { return max(now(k), min(most(k), k.Guarantee.At(i))) }
	left = riseByPriority(byWeight, i, left, now, within, own)
	left = riseByPriority(byWeight, i, left, now, most, own)
	riseByPriority(without, i, left, now, most, even)
}

// priorities reports whether the children's shares depend on their priorities.
func (x *Queue) priorities() bool {
	return x.ByPriority &&
		slices.ContainsFunc(x.Children, func(k *Queue) bool { return k.Priority != x.Children[0].Priority })
}

// riseByPriority is rise for the children of each priority, the highest first.
func riseByPriority(
	kids []*Queue, i int, left int64, least, most func(*Queue) int64, weight func(*Queue) float64,
) int64 {
	slices.SortStableFunc(kids, func(a, b *Queue) int { return cmp.Compare(b.Priority, a.Priority) })
	for len(kids) > 0 {
		end := 1
		for end < len(kids) && kids[end].Priority == kids[0].Priority {
			end++
		}
		left = rise(kids[:end], i, left, least, most, weight)
		kids = kids[end:]
	}
	return left
}

// rise raises children to one level of share over weight, between their least and most. It stops when left is used up,
// and returns the rest.
func rise(
	kids []*Queue, i int, left int64, least, most func(*Queue) int64, weight func(*Queue) float64,
) int64 {
	if left <= 0 || len(kids) == 0 {
		return max(left, 0)
	}
	at := func(k *Queue, level float64) int64 {
		v := min(weight(k)*level, float64(most(k)))
		return max(int64(v+1e-6), least(k))
	}
	needs := func(level float64) int64 {
		sum := int64(0)
		for _, k := range kids {
			sum += at(k, level) - least(k)
		}
		return sum
	}
	hi := 0.0
	for _, k := range kids {
		hi = max(hi, float64(most(k))/weight(k))
	}
	level := hi
	if needs(hi) > left {
		lo := 0.0
		for range 60 {
			if mid := (lo + hi) / 2; needs(mid) <= left {
				lo = mid
			} else {
				hi = mid
			}
		}
		level = lo
	}
	for _, k := range kids {
		v := at(k, level)
		left -= v - least(k)
		k.Ideal.Set(i, v)
	}
	return left
}
