// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// PlanBounds limits the changes from one plan to the next.
type PlanBounds struct {
	DeadBand float64 // weights that differ by less stay [0.01]
	Step     float64 // the most by which a weight changes [0.1]; all at once if a member has shrunk
	// SlowStart is the time in which a member's counted size grows from zero to all; see Reading.SlowStart.
	SlowStart time.Duration
}

// Band returns DeadBand or its default.
func (s PlanBounds) Band() float64 {
	if s.DeadBand > 0 {
		return s.DeadBand
	}
	return 0.01
}

// MostStep returns Step or its default.
func (s PlanBounds) MostStep() float64 {
	if s.Step > 0 {
		return s.Step
	}
	return 0.1
}

// Publish turns a plan into its published form, and limits its changes from the previous one. before may be nil.
// Queues without demand have no parts in members.
func Publish(r *Reading, p Plan, before *subcluster.Plan, s PlanBounds) *subcluster.Plan {
	s.DeadBand, s.Step = s.Band(), s.MostStep()
	out := &subcluster.Plan{
		Tree: r.Tree.Version, Total: r.Total, Starts: r.Starts, SlowStartMS: r.slowStart.Milliseconds(),
		Began: r.began,
	}
	if before != nil && r.shrunk(before, sameSize) {
		s.Step = 1 // the shares of a member that is away, or has lost half, move at once
	}
	for m, id := range r.Members {
		out.Members = append(out.Members, subcluster.MemberSize{Member: id, Share: r.Sizes[m]})
	}
	at, lacking := 0, 0
	for l, path := range r.Queues {
		q := subcluster.QueuePlan{Queue: path, Entitled: p.Entitled[l], Wants: r.Leaves[l].Wants}
		weights, given := make([]float64, len(r.Members)), make([]float64, len(r.Members))
		sum := 0.0
		for ; at < len(r.Pairs) && int(r.Pairs[at].Leaf) == l; at++ {
			x := &r.Pairs[at]
			q.Uses += x.Use
			given[x.Member] = p.Given[at]
			sum += p.Given[at]
		}
		if sum > 0 {
			for m := range weights {
				weights[m] = given[m] / sum
			}
			if before != nil {
				shape(weights, before.Queue(path), r.Members, s)
			}
			normalise(weights)
			for m, id := range r.Members {
				if given[m] > 0 || weights[m] > 0 {
					q.Members = append(
						q.Members,
						subcluster.MemberPlan{Member: id, Given: given[m], Weight: weights[m]},
					)
				}
			}
		}
		q.Reason = reason(&r.Leaves[l], q.Wants, q.Entitled)
		if t := r.Tree.Find(path); t != nil && t.Optout {
			q.Optout, q.Reason = true, q.Reason+"; the queue tree opts it out of the plan"
		}
		if q.Entitled > 0 {
			short := max(0, q.Entitled-q.Uses) / q.Entitled
			out.Error.Worst = max(out.Error.Worst, short)
			out.Error.Mean += short
			lacking++
		}
		out.Queues = append(out.Queues, q)
	}
	if lacking > 0 {
		out.Error.Mean /= float64(lacking)
	}
	return out
}

// Changed reports whether the next plan should not wait for the interval. That is so if members or queues were added
// or removed, or if a member lost a tenth of its size. It is also so if a queue's demand or use differs by a
// hundredth of the federation.
func Changed(r *Reading, before *subcluster.Plan) bool {
	if before == nil || before.Tree != r.Tree.Version || len(before.Queues) != len(r.Queues) ||
		!slices.EqualFunc(before.Members, r.Members, func(a subcluster.MemberSize, id creel.SubclusterID) bool {
			return a.Member == id
		}) || r.shrunk(before, 0.1) {
		return true
	}
	uses := make([]float64, len(r.Queues))
	for i := range r.Pairs {
		uses[r.Pairs[i].Leaf] += r.Pairs[i].Use
	}
	for l, path := range r.Queues {
		q := &before.Queues[l]
		if q.Queue != path || math.Abs(q.Uses-uses[l]) > far ||
			math.Abs(min(1, q.Wants)-min(1, r.Leaves[l].Wants)) > far {
			return true
		}
	}
	return false
}

// shape keeps weights near the weights of the previous plan, if it had any. If none differs by the dead band, all
// stay. Otherwise all move by the same part of their difference, so that none changes by more than the step and their
// sum stays.
func shape(weights []float64, before *subcluster.QueuePlan, members []creel.SubclusterID, s PlanBounds) {
	if before == nil || len(before.Members) == 0 {
		return
	}
	was, farthest := make([]float64, len(weights)), 0.0
	for m, id := range members {
		i, ok := slices.BinarySearchFunc(
			before.Members,
			id,
			func(b subcluster.MemberPlan, id creel.SubclusterID) int {
				return strings.Compare(string(b.Member), string(id))
			},
		)
		if ok {
			was[m] = before.Members[i].Weight
		}
		farthest = max(farthest, math.Abs(weights[m]-was[m]))
	}
	part := 1.0
	switch {
	case farthest < s.DeadBand:
		part = 0
	case farthest > s.Step:
		part = s.Step / farthest
	}
	for m := range weights {
		weights[m] = was[m] + part*(weights[m]-was[m])
	}
}

func normalise(weights []float64) {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for i := range weights {
		if sum > 0 {
			weights[i] /= sum
		} else {
			weights[i] = 1 / float64(len(weights))
		}
	}
}

// EscrowShares returns a queue's parts of its maximum by a plan, as whole amounts that sum to the maximum. The
// entitlement is split by the plan's weights, and the rest by the members' sizes. If all of it followed the weights,
// a member that gets new work would have to ask for each container: a plan reflects past demand. The result is nil
// for queues that do not follow the plan; their split is even.
func EscrowShares(
	p *subcluster.Plan,
	q *subcluster.QueuePlan,
	maximum creel.Resource,
) map[creel.SubclusterID]creel.Resource {
	if q.Optout {
		return nil
	}
	sizes, weights := make([]float64, len(p.Members)), make([]float64, len(p.Members))
	for i := range p.Members {
		sizes[i] = p.Members[i].Share
		for _, m := range q.Members {
			if m.Member == p.Members[i].Member {
				weights[i] = m.Weight
			}
		}
	}
	normalise(sizes)
	if len(q.Members) == 0 {
		copy(weights, sizes)
	}
	normalise(weights)
	planned := min(1, q.Entitled/tightest(maximum, p.Total))
	for i := range weights {
		weights[i] = planned*weights[i] + (1-planned)*sizes[i]
	}
	split := func(amount int64) []int64 {
		shares := make([]float64, len(weights))
		for i, w := range weights {
			shares[i] = w * float64(amount)
		}
		return Round(shares, 1, nil)
	}
	out := map[creel.SubclusterID]creel.Resource{}
	memory, cores := split(maximum.MemoryMB), make([]int64, len(weights))
	for i := range cores {
		cores[i] = maximum.VCores
	}
	if maximum.VCores < Unbounded {
		cores = split(maximum.VCores)
	}
	for i := range p.Members {
		// A zero share would mean an even share.
		out[p.Members[i].Member] = creel.NewResource(max(1, memory[i]), cores[i])
	}
	for _, a := range maximum.Others {
		for i, v := range split(a.Value) {
			id := p.Members[i].Member
			out[id] = out[id].With(a.Name, v)
		}
	}
	return out
}

// tightest returns the largest part, above 0, such that this part of the total is within the maximum in every type.
func tightest(maximum, total creel.Resource) float64 {
	most := 1.0
	of := func(maximum, total int64) {
		if total > 0 {
			most = min(most, float64(maximum)/float64(total))
		}
	}
	of(maximum.MemoryMB, total.MemoryMB)
	of(maximum.VCores, total.VCores)
	for _, a := range maximum.Others {
		of(a.Value, total.Get(a.Name))
	}
	return max(most, 1e-9)
}
