// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
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

// standing is a member as balancedHome sees it.
type standing struct {
	net, total creel.Resource // free less what waits and what was sent; the size of the whole
	roomy      bool           // the AM fits into net
	slow       bool           // it starts slowly by the plan
}

func (b balancedHome) choose(d *homeDecision, rnd *rand.Rand) (int, string) {
	d.excludeWeightless(b.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	var federation creel.Resource
	anyRoom := false
	of := make([]standing, len(d.all))
	for _, i := range d.in {
		c, s := &d.all[i], &of[i]
		n := &c.Numbers
		label := d.label(i)
		n.Free, n.Pending, s.total, n.Of = room(d.view, d.status(i), d.sub.Queue, label)
		n.Apps, n.Assumed = d.assumed(i)
		if n.Of == "label" {
			n.Label = label
		}
		if counts := d.view.Plan.Counts(c.Member); label == "" && counts < 1 {
			s.slow, n.Starting = true, counts
		}
		federation = federation.Add(s.total)
		s.net = n.Free.Sub(n.Pending).Sub(n.Assumed)
		s.roomy = d.sub.Size.Fits(s.net) && !s.net.IsZero()
		anyRoom = anyRoom || s.roomy
	}
	for _, i := range d.in {
		c, s := &d.all[i], &of[i]
		c.Score = netScore(s.net, s.total, federation) * scale(s.net, b.weights.of(c.Member))
	}
	plan := planFor(d.view, d.sub.Queue, d.labelled())
	if anyRoom {
		d.exclude(func(i int) (Exclusion, string) {
			if !of[i].roomy {
				return ExcludedFull, ExcludedFull.Text() + " (" + d.all[i].Numbers.String() + ")"
			}
			return "", ""
		})
	}
	if slices.ContainsFunc(d.in, func(i int) bool { return of[i].roomy || !of[i].slow }) {
		d.exclude(func(i int) (Exclusion, string) {
			if !of[i].roomy && of[i].slow {
				return ExcludedStarting, ExcludedStarting.Text() + " (" + d.all[i].Numbers.String() + ")"
			}
			return "", ""
		})
	}
	by := ""
	if plan.speaks() {
		by = b.preferEntitled(d, plan)
	}
	if len(d.in) == 1 {
		return d.in[0], by + "it alone is left"
	}
	first := rnd.IntN(len(d.in))
	second := rnd.IntN(len(d.in) - 1)
	if second >= first {
		second++
	}
	drawn := []int{d.in[min(first, second)], d.in[max(first, second)]}
	best := d.best(drawn)
	other := drawn[0] + drawn[1] - best
	return best, by + "the better of two drawn, " + score(
		d.all[best].Score,
	) + " against " + score(
		d.all[other].Score,
	) + " of " + string(
		d.all[other].Member,
	)
}

// preferEntitled leaves out the members in which the queue has used what the plan
// entitles it to, as long as there is another, and scores the others by what is left.
// It returns how the reason begins, "" when no member is left that way.
func (b balancedHome) preferEntitled(d *homeDecision, plan planned) string {
	entitled, used, any := make([]float64, len(d.all)), make([]float64, len(d.all)), false
	least := part(d.sub.Size, plan.plan.Total)
	for _, i := range d.in {
		_, assumed := d.assumed(i)
		entitled[i], used[i] = plan.deficit(d.status(i), assumed)
		any = any || entitled[i]-used[i] > least
	}
	if !any {
		return ""
	}
	d.exclude(func(i int) (Exclusion, string) {
		if entitled[i]-used[i] > least {
			return "", ""
		}
		return ExcludedEntitlement, fmt.Sprintf(
			"by the plan the queue has used its entitlement there, %.1f%% of %.1f%% of the federation, "+
				"and not elsewhere",
			100*used[i],
			100*entitled[i],
		)
	})
	for _, i := range d.in {
		c := &d.all[i]
		c.Score = (entitled[i] - used[i]) * b.weights.of(c.Member)
		c.Numbers.Entitled, c.Numbers.Used = entitled[i], used[i]
	}
	return "by the plan the queue is entitled to more there; "
}

func score(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// netScore measures room by its scarcer type. Above zero it is the share of
// the federation, since absolute room is what a job can use; below zero it is
// in member sizes, since what waits there in proportion to its size is how
// long it will take.
func netScore(net, total, federation creel.Resource) float64 {
	if net.MemoryMB >= 0 && net.VCores >= 0 {
		return min(share(net.MemoryMB, federation.MemoryMB), share(net.VCores, federation.VCores))
	}
	return min(share(min(net.MemoryMB, 0), total.MemoryMB), share(min(net.VCores, 0), total.VCores))
}

func share(x, of int64) float64 {
	if of <= 0 {
		of = 1
	}
	return float64(x) / float64(of)
}

// scale keeps a larger weight better on both sides of zero.
func scale(net creel.Resource, weight float64) float64 {
	if net.MemoryMB < 0 || net.VCores < 0 {
		return 1 / weight
	}
	return weight
}
