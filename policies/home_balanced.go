// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/creelrm/creel"
)

// balancedHome is creel's own policy. It leaves out members without free capacity while others have some. The score
// of a member is the resources free for the queue, less the pending resources and the resources sent there since the
// last heartbeat. It draws two members at random and takes the one with the better score (power of two choices). So
// routers with the same view do not all choose the same member.
//
// With a plan of the rebalancer, members in which the queue has not used its entitlement come first. The score is
// then the unused entitlement, less the resources sent there since the last heartbeat. Free capacity still takes
// precedence: no application waits in one member for an entitlement while another has free capacity.
type balancedHome struct{ weights Weights }

func (balancedHome) name() string { return "balanced" }

func (b balancedHome) given() Weights { return b.weights }

func (balancedHome) with(weights Weights) homeRule { return balancedHome{weights} }

// standing is balancedHome's state of a member: its free resources less the pending and the sent resources.
type standing struct {
	memory, cores int64 // MB, and cores
	roomy         bool  // the AM fits into these
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
			plan = queuePlan{} // the plan does not affect scores
		}
	}
	d.numbers = func(i int, n *Numbers) { d.balancedNumbers(plan, i, n) }
	if len(d.in) == 1 {
		return d.in[0], by + "only member left"
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

// stands computes the standing of a member that is not excluded.
func (d *homeDecision) stands(i int) standing {
	r, size := &d.known.rooms[i], &d.sub.Size
	if r.typed || len(size.Others) > 0 || d.sent != nil && len(d.sent[i].Size.Others) > 0 {
		net := d.facts[i].net.Sub(d.sentTo(i).Size)
		return standing{net.MemoryMB, net.VCores, size.Fits(net) && !net.IsZero()}
	}
	// The same for memory and cores alone. This case is separate since it is most of the cost of choosing a home.
	net := r.net
	if d.sent != nil {
		net.memory, net.cores = less(net.memory, d.sent[i].Size.MemoryMB), less(net.cores, d.sent[i].Size.VCores)
	}
	fits := size.MemoryMB <= net.memory && size.VCores <= net.cores
	return standing{net.memory, net.cores, fits && net != amount{}}
}

// less returns a - b, or the least int64 if that overflows. b may be large, since it sums all sent applications.
func less(a, b int64) int64 {
	if d := a - b; (d > a) == (b < 0) {
		return d
	}
	return creel.Resource{MemoryMB: a}.Sub(creel.Resource{MemoryMB: b}).MemoryMB
}

// balancedNumbers writes the numbers behind a member's score.
func (d *homeDecision) balancedNumbers(plan queuePlan, i int, n *Numbers) {
	*n = d.known.numbers[i]
	sent := d.sentTo(i)
	n.Apps, n.Assumed = sent.Apps, sent.Size
	if plan.speaks() {
		n.Entitled, n.Used = plan.deficit(d.status(i), n.Assumed)
	}
}

// preferEntitled leaves out the members in which the queue has used its entitlement by the plan, and scores the
// others by the unused entitlement. It returns the start of the reason. If no member would remain, it changes nothing
// and returns "".
func (b balancedHome) preferEntitled(d *homeDecision, plan queuePlan) string {
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

// score measures free resources by their scarcer type. A positive score is a share of the federation, since a job
// uses absolute resources. A negative score is a share of the member, since the waiting time depends on the pending
// resources in proportion to the member's size.
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

// scale returns the factor for a weight, so that a larger weight improves positive and negative scores.
func (s *standing) scale(weight float64) float64 {
	if s.memory < 0 || s.cores < 0 {
		return 1 / weight
	}
	return weight
}
