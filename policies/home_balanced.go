// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand/v2"
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
	var federation creel.Resource // memory and cores of all that are in
	roomy, anySlow, anyFast := 0, false, false
	of := d.standing
	sent := d.sentSince()
	for _, i := range d.in {
		s, f := &of[i], &d.facts[i]
		net := f.net
		if sent != nil {
			net = net.Sub(sent[i].size)
		}
		s.memory, s.cores = net.MemoryMB, net.VCores
		s.roomy = d.sub.Size.Fits(net) && !net.IsZero()
		federation = federation.Add(creel.Resource{MemoryMB: f.size.memory, VCores: f.size.cores})
		anySlow, anyFast = anySlow || f.slow, anyFast || !f.slow
		if s.roomy {
			roomy++
		}
	}
	for _, i := range d.in {
		s := &of[i]
		d.score[i] = s.score(d.facts[i].size, federation)
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
	case anySlow && anyFast:
		d.exclude(func(i int) Exclusion {
			if d.facts[i].slow {
				return ExcludedStarting
			}
			return ""
		})
	}
	by := ""
	if plan.speaks() {
		if by = b.preferEntitled(d, sent, plan); by == "" {
			plan = planned{} // no score is made from it
		}
	}
	d.numbers = func(i int, n *Numbers) { d.balancedNumbers(sent, plan, i, n) }
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

// balancedNumbers writes what the score of a member was made from.
func (d *homeDecision) balancedNumbers(sent sentTo, plan planned, i int, n *Numbers) {
	*n = d.known.numbers[i]
	n.Apps, n.Assumed = sent.at(i).apps, sent.at(i).size
	if plan.speaks() {
		n.Entitled, n.Used = plan.deficit(d.status(i), n.Assumed)
	}
}

// preferEntitled leaves out the members in which the queue has used what the plan
// entitles it to, as long as there is another, and scores the others by what is left.
// It returns how the reason begins, "" when no member is left that way.
func (b balancedHome) preferEntitled(d *homeDecision, sent sentTo, plan planned) string {
	left, any := make([]float64, len(d.code)), false
	least := part(d.sub.Size, plan.plan.Total)
	for _, i := range d.in {
		entitled, used := plan.deficit(d.status(i), sent.at(i).size)
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
func (s *standing) score(size amount, federation creel.Resource) float64 {
	if s.memory >= 0 && s.cores >= 0 {
		return min(share(s.memory, federation.MemoryMB), share(s.cores, federation.VCores))
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
