// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// balancedSplit is ours: home first, span on need. Every member in which an
// application has asks costs a UAM there, a record in that ResourceManager and a
// heartbeat, so it goes to few:
//
//  1. What is wanted on a host or rack is asked where that is.
//  2. Home is asked for what fits there now.
//  3. What is over goes to members in which the application already has a UAM,
//     those with most room first.
//  4. What is over still goes to new members, as few as hold it (span).
//  5. What fits nowhere waits, at home and where the application is by then.
//
// Room is what fits beside everything that is pending there: the last headroom
// that the member answered, or what the view shows free for the queue.
type balancedSplit struct {
	weights Weights
	uamAt   int64 // a new member is worth its cost from so many containers on; 0 means 1
}

func (balancedSplit) name() string { return "balanced" }

func (balancedSplit) from(w Weights, _ float64, uamAt int64) splitRule {
	return balancedSplit{w, uamAt}
}

func (b balancedSplit) place(d *splitDecision, n int64, rnd *rand.Rand) string {
	var parts []string
	tell := func(n int64, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
		}
	}
	local := d.placeLocal(n)
	tell(local, "where their places are")
	n -= local
	rooms := make([]int64, len(d.reach))
	for _, i := range d.open {
		rooms[i] = max(0, d.room(i)-d.newHere(i))
	}
	give := func(i int, most int64) int64 {
		k := min(most, rooms[i])
		d.shares[i] += k
		rooms[i] -= k
		return k
	}
	if slices.Contains(d.open, d.home) {
		k := give(d.home, n)
		tell(k, "at home")
		n -= k
	}
	inside := b.inside(d, rooms)
	before := n
	for _, i := range inside {
		n -= give(i, n)
	}
	tell(before-n, "where the application is already")
	if n > 0 && n >= b.uamAt {
		chosen, most := b.span(d, rooms, n, rnd)
		before = n
		var names []string
		for _, i := range chosen {
			n -= give(i, n)
			names = append(names, string(d.reach[i].Member))
		}
		tell(
			before-n,
			"span to %s, at the cost of a UAM each (at most %d for so many)",
			strings.Join(names, ", "),
			most,
		)
	}
	tell(n, "wait, fitting nowhere now")
	d.waiting = n
	b.wait(d, n)
	return strings.Join(parts, "; ")
}

// inside are the open members other than home that cost nothing new, since the
// application has a UAM there or has just been given to them: those with most
// room first.
func (b balancedSplit) inside(d *splitDecision, rooms []int64) []int {
	var in []int
	for _, i := range d.open {
		if i != d.home && (d.reach[i].UAM || d.shares[i] > 0) {
			in = append(in, i)
		}
	}
	slices.SortStableFunc(in, func(x, y int) int { return cmp.Compare(rooms[y], rooms[x]) })
	return in
}

// span chooses the new members for n containers and tells how many there may be
// at most. One that holds all of them is enough: it is drawn by weighted room, so
// that many applications that decide on the same view do not all take the same.
// Where none does, the largest is filled and the search goes on. The bound, the
// root of n rounded up, keeps crumbs of room in a hundred members from making a
// hundred UAMs in one decision; asks that still wait are decided again, and may
// span further then.
func (b balancedSplit) span(d *splitDecision, rooms []int64, n int64, rnd *rand.Rand) (chosen []int, most int) {
	most = int(math.Ceil(math.Sqrt(float64(n))))
	var left []int
	for _, i := range d.open {
		if i != d.home && !d.reach[i].UAM && d.shares[i] == 0 && rooms[i] > 0 {
			left = append(left, i)
		}
	}
	worth := func(i int) float64 { return float64(rooms[i]) * b.weights.of(d.reach[i].Member) }
	for n > 0 && len(chosen) < most && len(left) > 0 {
		at, total := 0, 0.0
		for j, i := range left {
			if worth(i) > worth(left[at]) {
				at = j
			}
			if rooms[i] >= n {
				total += worth(i)
			}
		}
		for j, draw := 0, rnd.Float64()*total; total > 0 && j < len(left); j++ {
			if rooms[left[j]] < n {
				continue
			}
			at = j
			if draw -= worth(left[j]); draw < 0 {
				break
			}
		}
		chosen, n = append(chosen, left[at]), n-rooms[left[at]]
		left = slices.Delete(left, at, at+1)
	}
	return chosen, most
}

// wait shares n containers that fit nowhere over home and those in which the
// application is by now, where they wait the least: by size of the member over
// what is pending there.
func (b balancedSplit) wait(d *splitDecision, n int64) {
	weights := make([]float64, len(d.reach))
	for _, i := range d.open {
		if i == d.home || d.reach[i].UAM || d.shares[i] > 0 {
			weights[i] = d.size(i) * max(b.weights.of(d.reach[i].Member), 1e-9) /
				float64(1+d.reach[i].Pending+d.shares[i])
		}
	}
	for i, more := range apportion(n, weights, nil) {
		d.shares[i] += more
	}
}

// newHere is what this split has given a member and Pending does not count.
func (d *splitDecision) newHere(i int) int64 {
	held := int64(0)
	for _, h := range d.group.Held {
		if h.Member == d.reach[i].Member {
			held = h.Count
		}
	}
	return max(0, d.shares[i]-held)
}

// size of a member in containers of the group, at least 1.
func (d *splitDecision) size(i int) float64 {
	m, ok := d.view.Member(d.reach[i].Member)
	if !ok {
		return 1
	}
	return max(1, float64(fitting(m.Load.Metrics.Total(), d.group.Size)))
}
