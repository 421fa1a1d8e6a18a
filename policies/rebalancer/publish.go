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

// Published is a plan as it stands in the store.
type Published struct {
	Term   int64         `json:"term"` // token of the leader's lease
	Tree   int64         `json:"tree"` // version of the queue tree it follows
	Queues []QueuePlan   `json:"queues"`
	Error  ErrorOfQueues `json:"error"`
}

// QueuePlan is one leaf queue's part. Shares are of the whole federation's
// dominant type.
type QueuePlan struct {
	Queue    creel.QueuePath `json:"queue"`
	Wants    float64         `json:"wants"`
	Uses     float64         `json:"uses"`
	Entitled float64         `json:"entitled"`
	Reason   string          `json:"reason"`
	Members  []MemberPlan    `json:"members"`
}

// MemberPlan is what of a queue's entitlement is in one member. The weights of a
// queue sum to 1.
type MemberPlan struct {
	Member creel.SubclusterID `json:"member"`
	Given  float64            `json:"given"`
	Weight float64            `json:"weight"`
}

// ErrorOfQueues tells how far use is from entitlement.
type ErrorOfQueues struct {
	Mean  float64 `json:"mean"`
	Worst float64 `json:"worst"`
}

// Find gives a queue's plan, nil without one.
func (p *Published) Find(q creel.QueuePath) *QueuePlan {
	i, ok := slices.BinarySearchFunc(
		p.Queues,
		q,
		func(e QueuePlan, q creel.QueuePath) int { return cmp.Compare(e.Queue, q) },
	)
	if !ok {
		return nil
	}
	return &p.Queues[i]
}

// Shaping bounds how a plan may differ from the one before.
type Shaping struct {
	DeadBand float64 // weights that differ by less stay [0.01]
	Step     float64 // the most by which a weight changes [0.1]
}

// Read makes the input of a plan from a view: the leaf queues of active members
// with creel's queue figures. Members without (Hadoop's) are left out, and so
// are labels.
func Read(
	view *subcluster.View,
	tree *Tree,
) (in *Input, queues []creel.QueuePath, members []creel.SubclusterID, total creel.Resource) {
	in = &Input{}
	var status []*subcluster.Status
	for i := range view.Members {
		m := &view.Members[i]
		if m.State == subcluster.StateActive && len(m.Load.Queues) > 0 {
			status = append(status, m)
			members = append(members, m.ID)
			total = total.Add(m.Load.Metrics.Total())
		}
	}
	leaves := map[creel.QueuePath]creel.Resource{} // guarantee, summed
	for _, m := range status {
		in.Members = append(in.Members, Share(m.Load.Metrics.Total(), total))
		q := m.Load.Queues
		for i := range q {
			parent := i+1 < len(q) && strings.HasPrefix(string(q[i+1].Queue), string(q[i].Queue)+".")
			if q[i].Label == "" && !parent {
				leaves[q[i].Queue] = leaves[q[i].Queue].Add(q[i].Capacity)
			}
		}
	}
	for path := range leaves {
		queues = append(queues, path)
	}
	slices.Sort(queues)
	for l, path := range queues {
		leaf := Leaf{Guarantee: Share(leaves[path], total), Maximum: math.Inf(1)}
		if q := tree.Find(path); q != nil {
			if !q.Guarantee.IsZero() {
				leaf.Guarantee = Share(q.Guarantee, total)
			}
			leaf.Weight = q.Weight
			if q.Bounded() {
				leaf.Maximum = Share(q.Maximum.Min(total), total)
				if free := (creel.Resource{MemoryMB: q.Maximum.MemoryMB}); q.Maximum.VCores >= total.VCores {
					leaf.Maximum = Share(free, total) // only memory binds
				}
			}
		}
		in.Leaves = append(in.Leaves, leaf)
		for m, s := range status {
			load := s.Load.Find(path)
			if load == nil {
				continue
			}
			use := Share(load.Used, total)
			if want := min(Share(load.Used.Add(load.Pending), total), in.Members[m]); want > 0 {
				in.Pairs = append(in.Pairs, Pair{Leaf: int32(l), Member: int32(m), Demand: want, Use: use})
			}
		}
	}
	return in, queues, members, total
}

// Publish makes what is published of a plan, shaped by the one before, which may
// be nil.
func Publish(
	in *Input,
	p Plan,
	queues []creel.QueuePath,
	members []creel.SubclusterID,
	before *Published,
	s Shaping,
) Published {
	if s.DeadBand <= 0 {
		s.DeadBand = 0.01
	}
	if s.Step <= 0 {
		s.Step = 0.1
	}
	var out Published
	at, lacking := 0, 0
	for l, path := range queues {
		q := QueuePlan{Queue: path, Entitled: p.Entitled[l]}
		weights := make([]float64, len(members))
		given := make([]float64, len(members))
		sum := 0.0
		for ; at < len(in.Pairs) && int(in.Pairs[at].Leaf) == l; at++ {
			x := &in.Pairs[at]
			q.Wants += x.Demand
			q.Uses += x.Use
			given[x.Member] = p.Given[at]
			sum += p.Given[at]
		}
		for m := range members {
			if weights[m] = in.Members[m]; sum > 0 {
				weights[m] = given[m] / sum
			}
		}
		if before != nil {
			shape(weights, before.Find(path), members, s)
		}
		normalise(weights)
		for m, id := range members {
			q.Members = append(q.Members, MemberPlan{id, given[m], weights[m]})
		}
		q.Reason = reason(&in.Leaves[l], q.Wants, q.Entitled)
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

// shape keeps weights near those of the plan before.
func shape(weights []float64, before *QueuePlan, members []creel.SubclusterID, s Shaping) {
	if before == nil {
		return
	}
	for m, id := range members {
		for _, b := range before.Members {
			if b.Member != id {
				continue
			}
			switch d := weights[m] - b.Weight; {
			case math.Abs(d) < s.DeadBand:
				weights[m] = b.Weight
			case math.Abs(d) > s.Step:
				weights[m] = b.Weight + math.Copysign(s.Step, d)
			}
		}
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

// EscrowShares are a queue's parts of its maximum by the plan, in whole amounts
// that sum to it.
func (q *QueuePlan) EscrowShares(maximum creel.Resource) map[creel.SubclusterID]creel.Resource {
	weights := make([]float64, len(q.Members))
	for i := range q.Members {
		weights[i] = q.Members[i].Weight
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
	for i := range q.Members {
		out[q.Members[i].Member] = creel.NewResource(memory[i], cores[i])
	}
	for _, a := range maximum.Others {
		for i, v := range split(a.Value) {
			id := q.Members[i].Member
			out[id] = out[id].With(a.Name, v)
		}
	}
	return out
}
