// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// MemberQueue is a queue of a member with its configured capacity and maximum, as parts of the member.
type MemberQueue struct {
	Queue          creel.QueuePath
	Share, Maximum float64
}

// QueueCapacity is the part of a member that a queue gets before other queues there exceed their capacities.
type QueueCapacity struct {
	Queue creel.QueuePath
	Share float64
}

// keepsCapacity is the part of its configured capacity that a queue keeps under any plan. Sudden demand starts with
// this part, and no capacity becomes zero.
const keepsCapacity = 0.05

// FollowsCapacities reports whether the capacities of members' queues follow plans over this tree. They do if the
// tree sets a guarantee or a weight of some queue. Otherwise each member's configuration applies.
func (t *Tree) FollowsCapacities() bool {
	return slices.ContainsFunc(t.Queues, func(q Queue) bool {
		return !q.Optout && (!q.Guarantee.IsZero() || q.GuaranteePercent > 0 || q.Weight > 0)
	})
}

// GiveCapacities adds to a plan each queue's capacity in each member. A queue gets its capacity before other queues
// in the member exceed theirs. The capacity is the queue's current use. If the queue is below its entitlement in the
// federation, its capacity is higher in members where it has waiting asks. The increase is limited to resources that
// are idle or used by queues above their entitlement. So members take resources back only for queues that wait in the
// same member. A shortfall counts once, in however many members the queue waits. The plan's shares (Given) direct
// work to members. As capacities they would make members free resources for work that waits elsewhere. The capacities
// of a member sum to at most its size.
func GiveCapacities(r *Reading, p Plan, out *subcluster.Plan) {
	out.Capacities = true
	lacks, beyond := slices.Clone(p.Entitled), make([]float64, len(r.Leaves))
	idle, capacity := slices.Clone(r.Input.Members), make([]float64, len(r.Pairs))
	byMember := make([][]int, len(r.Members))
	for i := range r.Pairs {
		x := &r.Pairs[i]
		capacity[i] = x.Use
		lacks[x.Leaf] -= x.Use
		idle[x.Member] -= x.Use
		byMember[x.Member] = append(byMember[x.Member], i)
	}
	for l := range lacks {
		beyond[l], lacks[l] = max(0, -lacks[l]), max(0, lacks[l])
		if out.Queues[l].Optout {
			beyond[l], lacks[l] = 0, 0
		}
	}
	for m, pairs := range byMember {
		from := slices.Clone(pairs) // queues furthest above their entitlement first
		slices.SortStableFunc(from, func(a, b int) int {
			return cmp.Compare(beyond[r.Pairs[b].Leaf], beyond[r.Pairs[a].Leaf])
		})
		for _, i := range pairs {
			x := &r.Pairs[i]
			need := min(lacks[x.Leaf], x.Waits)
			if need <= 0 {
				continue
			}
			got := min(need, max(0, idle[m]))
			idle[m] -= got
			for len(from) > 0 && got < need {
				other := from[0]
				gives := min(need-got, beyond[r.Pairs[other].Leaf], capacity[other])
				if gives <= 0 {
					from = from[1:]
					continue
				}
				capacity[other] -= gives
				beyond[r.Pairs[other].Leaf] -= gives
				got += gives
			}
			capacity[i] += got
			lacks[x.Leaf] -= got
		}
	}
	at := 0
	for l := range r.Queues {
		q := &out.Queues[l]
		for ; at < len(r.Pairs) && int(r.Pairs[at].Leaf) == l; at++ {
			if capacity[at] > 0 {
				q.SetCapacity(r.Members[r.Pairs[at].Member], capacity[at])
			}
		}
	}
}

// MemberCapacities returns the guaranteed capacities of a member's queues by a plan, sorted by path. Each queue gets
// the plan's capacity. The rest of the member goes to the queues furthest below their configured capacity first.
// Queues that do not follow the plan keep their configured capacity. own lists the member's queues below root. A
// queue with children gets the sum of its children's capacities, and no queue exceeds its maximum. So siblings never
// sum to more than their parent, and sum to all of it if their configuration does. The result is nil if the plan does
// not cover the member.
func MemberCapacities(p *subcluster.Plan, id creel.SubclusterID, own []MemberQueue) []QueueCapacity {
	size := 0.0
	for _, m := range p.Members {
		if m.Member == id {
			size = m.Share
		}
	}
	if size <= 0 || len(own) == 0 {
		return nil
	}
	own = slices.Clone(own)
	slices.SortFunc(own, func(a, b MemberQueue) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
	at := make(map[creel.QueuePath]int, len(own))
	above := map[creel.QueuePath]bool{}
	for i := range own {
		at[own[i].Queue] = i
		above[own[i].Queue.Parent()] = true
	}
	var leaves []int
	var entries []levelEntry
	floors, all := 0.0, 0.0
	for i := range own {
		q := &own[i]
		if above[q.Queue] {
			continue
		}
		e := levelEntry{floor: keepsCapacity * q.Share, ceiling: min(1, q.Maximum), weight: max(q.Share, 1e-9)}
		if x := p.Queue(q.Queue); x != nil && x.Optout {
			e.floor, e.ceiling = q.Share, q.Share
		} else if x != nil {
			e.floor = max(e.floor, x.Capacity(id)/size)
		}
		e.floor = min(e.floor, e.ceiling)
		leaves, entries = append(leaves, i), append(entries, e)
		floors, all = floors+e.floor, all+q.Share
	}
	if floors > 1 { // queues that keep theirs leave the others less than the plan's capacity
		for i := range entries {
			entries[i].floor /= floors
		}
		floors = 1
	}
	// Each queue is filled to its configured capacity at most, even if these sum to less than the member.
	level := min(1, waterLevel(entries, max(floors, min(1, all))))
	shares := make([]float64, len(own))
	for i, leaf := range leaves {
		shares[leaf] = entries[i].at(level)
		for q := own[leaf].Queue.Parent(); q != creel.RootQueue && q != ""; q = q.Parent() {
			if j, ok := at[q]; ok {
				shares[j] += shares[leaf]
			}
		}
	}
	for i := range own { // from the top
		if most := min(1, own[i].Maximum); above[own[i].Queue] && shares[i] > most {
			shrink(own, shares, at, i, most/shares[i])
		}
	}
	out := make([]QueueCapacity, len(own))
	for i := range own {
		out[i] = QueueCapacity{own[i].Queue, shares[i]}
	}
	return out
}

// shrink reduces a queue and all its descendants, and subtracts the difference from its ancestors.
func shrink(own []MemberQueue, shares []float64, at map[creel.QueuePath]int, i int, by float64) {
	lost := shares[i] * (1 - by)
	for q := own[i].Queue.Parent(); q != creel.RootQueue && q != ""; q = q.Parent() {
		if j, ok := at[q]; ok {
			shares[j] -= lost
		}
	}
	below := string(own[i].Queue) + "."
	for j := range own {
		if j == i || strings.HasPrefix(string(own[j].Queue), below) {
			shares[j] *= by
		}
	}
}

// ShapeCapacities keeps the previous capacities of a member if none would change by more than the dead band.
// Otherwise it moves them by at most step. A linear limit on sums that both lists meet also applies to the result. If
// queues were added or removed since, all start with the plan's capacities.
func ShapeCapacities(before, to []QueueCapacity, deadBand, step float64) []QueueCapacity {
	if len(before) != len(to) {
		return to
	}
	furthest := 0.0
	for i := range to {
		if to[i].Queue != before[i].Queue {
			return to
		}
		furthest = max(furthest, math.Abs(to[i].Share-before[i].Share))
	}
	if furthest <= deadBand {
		return before
	}
	part := min(1, step/furthest)
	out := make([]QueueCapacity, len(to))
	for i := range to {
		out[i] = QueueCapacity{to[i].Queue, before[i].Share + part*(to[i].Share-before[i].Share)}
	}
	return out
}
