// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/creelrm/creel"
)

// balancedHome is ours. It leaves out who has no room while others have,
// scores the rest by what is free for the queue less what waits there and what
// was sent there since the last heartbeat, and takes the better of two drawn at
// random (power of two choices), so that routers that see the same view do not
// all run to the same member.
//
// With a plan of the rebalancer the members in which the queue has not used what it
// is entitled to go before the others, and the score is that deficit, less what was
// sent there since the last heartbeat. Room still comes first: nothing waits in one
// member for an entitlement while another has room, unless all are full.
type balancedHome struct{ weights Weights }

func (balancedHome) name() string { return "balanced" }

func (b balancedHome) given() Weights { return b.weights }

func (balancedHome) with(weights Weights) homeRule { return balancedHome{weights} }

// standing is a member as balancedHome sees it: what is free there less what waits and what was sent.
type standing struct {
	memory, cores int64 // MB, and cores
	roomy         bool  // the AM fits into what is left
}

func (b balancedHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	d.excludeWeightless(b.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	d.sentSince()
	of, rooms, federation, roomy := d.standing, d.known.rooms, d.sizeOfIn(), 0
	for _, i := range d.in {
		s := &of[i]
		if *s = d.stands(i); s.roomy {
			roomy++
		}
		d.score[i] = s.score(rooms[i].size, federation)
		if b.weights != nil {
			d.score[i] *= s.scale(b.weights.of(d.id(i)))
		}
	}
	plan := planFor(d.view, d.sub.Queue, d.in, d.label)
	switch {
	case roomy == len(d.in):
	case roomy > 0:
		d.exclude(func(i int) Exclusion {
			if !of[i].roomy {
				return ExcludedFull
			}
			return ""
		})
	case slices.ContainsFunc(d.in, func(i int) bool { return !rooms[i].slow }):
		d.exclude(func(i int) Exclusion {
			if rooms[i].slow {
				return ExcludedStarting
			}
			return ""
		})
	}
	by := ""
	if plan.speaks() {
		if by = b.preferEntitled(d, plan); by == "" {
			plan = planned{} // no score is made from it
		}
	}
	d.numbers = func(i int, n *Numbers) { d.balancedNumbers(plan, i, n) }
	if len(d.in) == 1 {
		return d.in[0], by + "it alone is left"
	}
	first := rnd.IntN(len(d.in))
	second := rnd.IntN(len(d.in) - 1)
	if second >= first {
		second++
	}
	drawn := [...]int{d.in[min(first, second)], d.in[max(first, second)]}
	best := d.best(drawn[:])
	other := drawn[0] + drawn[1] - best
	return best, by + "the better of two drawn, " + score(d.score[best]) + " against " + score(d.score[other]) +
		" of " + string(d.id(other))
}

// stands is how a member that is in stands.
func (d *homeDecision) stands(i int) standing {
	r, size := &d.known.rooms[i], &d.sub.Size
	if r.typed || len(size.Others) > 0 || d.sent != nil && len(d.sent[i].Size.Others) > 0 {
		net := d.facts[i].net.Sub(d.sentTo(i).Size)
		return standing{net.MemoryMB, net.VCores, size.Fits(net) && !net.IsZero()}
	}
	// The same of memory and cores alone, which is most of what the choice of a home costs.
	net := r.net
	if d.sent != nil {
		net.memory, net.cores = less(net.memory, d.sent[i].Size.MemoryMB), less(net.cores, d.sent[i].Size.VCores)
	}
	fits := size.MemoryMB <= net.memory && size.VCores <= net.cores
	return standing{net.memory, net.cores, fits && net != amount{}}
}

// less is a - b; what was sent counts applications, so below the limits of int64 it is the least.
func less(a, b int64) int64 {
	if d := a - b; (d > a) == (b < 0) {
		return d
	}
	return creel.Resource{MemoryMB: a}.Sub(creel.Resource{MemoryMB: b}).MemoryMB
}

// balancedNumbers writes what the score of a member was made from.
func (d *homeDecision) balancedNumbers(plan planned, i int, n *Numbers) {
	*n = d.known.numbers[i]
	sent := d.sentTo(i)
	n.Apps, n.Assumed = sent.Apps, sent.Size
	if plan.speaks() {
		n.Entitled, n.Used = plan.deficit(d.status(i), n.Assumed)
	}
}

// preferEntitled leaves out the members in which the queue has used what the plan
// entitles it to, as long as there is another, and scores the others by what is left.
// It returns how the reason begins, "" when no member is left that way.
func (b balancedHome) preferEntitled(d *homeDecision, plan planned) string {
	left, any := make([]float64, len(d.code)), false
	least := part(d.sub.Size, plan.plan.Total)
	for _, i := range d.in {
		entitled, used := plan.deficit(d.status(i), d.sentTo(i).Size)
		left[i] = entitled - used
		any = any || left[i] > least
	}
	if !any {
		return ""
	}
	d.exclude(func(i int) Exclusion {
		if left[i] > least {
			return ""
		}
		return ExcludedEntitlement
	})
	for _, i := range d.in {
		d.score[i] = left[i] * b.weights.of(d.id(i))
	}
	if plan.label != "" {
		return "by the plan the queue is entitled to more on nodes of label " + plan.label + " there; "
	}
	return "by the plan the queue is entitled to more there; "
}

func score(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// score measures room by its scarcer type. Above zero it is the share of
// the federation, since absolute room is what a job can use; below zero it is
// in member sizes, since what waits there in proportion to its size is how
// long it will take.
func (s *standing) score(size, federation amount) float64 {
	if s.memory >= 0 && s.cores >= 0 {
		return min(share(s.memory, federation.memory), share(s.cores, federation.cores))
	}
	return min(share(min(s.memory, 0), size.memory), share(min(s.cores, 0), size.cores))
}

func share(x, of int64) float64 {
	if of <= 0 {
		of = 1
	}
	return float64(x) / float64(of)
}

// scale keeps a larger weight better on both sides of zero.
func (s *standing) scale(weight float64) float64 {
	if s.memory < 0 || s.cores < 0 {
		return 1 / weight
	}
	return weight
}
