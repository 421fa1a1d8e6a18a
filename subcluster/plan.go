// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Where the store keeps the plan (statestore.Documents).
const (
	PlanClass = "plan"
	PlanName  = "current"
)

// Plan is the rebalancer's published plan: each leaf queue's entitlement in the whole federation, and the part of
// that in each member. Shares are parts of the federation's dominant resource type. It is immutable once it is read.
type Plan struct {
	Version int64     `json:"-"` // of its document in the store
	At      time.Time `json:"-"` // store's clock when it was written

	Term int64 `json:"term"` // token of the leader's lease
	Tree int64 `json:"tree"` // version of the queue tree it follows
	// LeaseMS is how long it is followed after At, in milliseconds of the store's clock; 0: it is for people, no
	// process follows it.
	LeaseMS int64          `json:"lease_ms"`
	Total   creel.Resource `json:"total"`   // the whole of which the shares are parts
	Members []MemberSize   `json:"members"` // by id
	Queues  []QueuePlan    `json:"queues"`  // by path
	Error   PlanError      `json:"error"`
	// Starts are the sizes that members count with, of those that are away too, by id.
	Starts      []MemberStart `json:"starts,omitempty"`
	SlowStartMS int64         `json:"slow_start_ms,omitempty"` // time from nothing to all of a member's size
	Began       time.Time     `json:"began,omitzero"`          // store's clock at the first plan of all
	// Preemption is the amount that may be taken back for queues that have a budget, by path.
	Preemption []PreemptionBudget `json:"preemption,omitempty"`
	// Capacities means that members give queues their amount by the plan (MemberPlan.Capacity) before others there
	// get more than theirs, in place of the configured one.
	Capacities bool `json:"capacities,omitempty"`
	// Labels are the plans of nodes with a label, each a pool of its own, by label. Their
	// shares are parts of those nodes. They have no Labels of their own.
	Labels []LabelPlan `json:"labels,omitempty"`

	leaves map[string]int // index of the queue with that leaf name; -1 for several
}

// GivesCapacities reports whether queues are to have capacities by the plan on any nodes.
func (p *Plan) GivesCapacities() bool {
	return p.Capacities || slices.ContainsFunc(p.Labels, func(l LabelPlan) bool { return l.Capacities })
}

// LabelPlan is the plan of the nodes with a label.
type LabelPlan struct {
	Label string `json:"label"`
	Plan
}

// EachQueue calls yield for each queue, of nodes without a label first, with the label of its nodes, until it returns
// false.
func (p *Plan) EachQueue(yield func(q *QueuePlan, label string) bool) {
	for i := range p.Queues {
		if !yield(&p.Queues[i], "") {
			return
		}
	}
	for i := range p.Labels {
		for j := range p.Labels[i].Queues {
			if !yield(&p.Labels[i].Queues[j], p.Labels[i].Label) {
				return
			}
		}
	}
}

// EachBudget is EachQueue for preemption budgets.
func (p *Plan) EachBudget(yield func(b *PreemptionBudget, label string) bool) {
	for i := range p.Preemption {
		if !yield(&p.Preemption[i], "") {
			return
		}
	}
	for i := range p.Labels {
		for j := range p.Labels[i].Preemption {
			if !yield(&p.Labels[i].Preemption[j], p.Labels[i].Label) {
				return
			}
		}
	}
}

// EachSlow is EachQueue for members that count with a part of their size only.
func (p *Plan) EachSlow(yield func(s *MemberStart, label string) bool) {
	for i := range p.Starts {
		if s := &p.Starts[i]; s.Slow() && !yield(s, "") {
			return
		}
	}
	for i := range p.Labels {
		for j := range p.Labels[i].Starts {
			if s := &p.Labels[i].Starts[j]; s.Slow() && !yield(s, p.Labels[i].Label) {
				return
			}
		}
	}
}

// MemberSize is a member that a plan counts with.
type MemberSize struct {
	Member creel.SubclusterID `json:"member"`
	Share  float64            `json:"share"`
}

// MemberStart is how much of a member homes and splits count with.
type MemberStart struct {
	Member creel.SubclusterID `json:"member"`
	Size   creel.Resource     `json:"size"`              // its size when it was last seen
	Counts float64            `json:"counts"`            // the part of Size that counts; 1: all
	Why    StartsWhy          `json:"why,omitempty"`     // why not all
	LeftMS int64              `json:"left_ms,omitempty"` // until all of it counts
	Away   bool               `json:"away,omitempty"`    // it takes no applications now
}

// StartsWhy is the reason why a member does not count with all of its size.
type StartsWhy string

// Why members start slowly.
const (
	StartsNew   StartsWhy = "it is new"
	StartsBack  StartsWhy = "it was away"
	StartsGrown StartsWhy = "it has got many nodes"
)

// Slow reports whether the member counts with a part of its size only.
func (s *MemberStart) Slow() bool { return !s.Away && s.Counts < 1 }

// Text describes a member's start for people, on nodes of a label, "" for those without one.
func (s *MemberStart) Text(label string) string {
	size := "size"
	if label != "" {
		size = "nodes of label " + label
	}
	return fmt.Sprintf("%s counts with %.0f%% of its %s: %s; all of it in %s", s.Member, 100*s.Counts, size, s.Why,
		(time.Duration(s.LeftMS) * time.Millisecond).Round(time.Second))
}

// QueuePlan is one leaf queue's part of a plan.
type QueuePlan struct {
	Queue    creel.QueuePath `json:"queue"`
	Wants    float64         `json:"wants"`
	Uses     float64         `json:"uses"`
	Entitled float64         `json:"entitled"`
	Reason   string          `json:"reason"`
	// Optout: by the queue tree, routers, proxies and escrow do not follow the plan for this queue.
	Optout bool `json:"optout,omitempty"`
	// Members are those in which it has a part, by id; none for a queue that wants nothing.
	Members []MemberPlan `json:"members,omitempty"`
}

// MemberPlan is the part of a queue's entitlement in one member. The weights of a queue with demand sum to 1.
type MemberPlan struct {
	Member creel.SubclusterID `json:"member"`
	Given  float64            `json:"given"`
	Weight float64            `json:"weight"`
	// Capacity is the queue's amount there before others get more than theirs: its usage, and its asks waiting there
	// within its remaining entitlement, as far as others have to give way or resources are idle. The same unit as
	// Given, and only in plans with Capacities.
	Capacity float64 `json:"capacity,omitempty"`
}

// PlanError is the distance of use from entitlement when the plan was made.
type PlanError struct {
	Mean  float64 `json:"mean"`
	Worst float64 `json:"worst"`
}

// ParsePlan reads a plan as the store has it, whole or in part (Plan.Cut).
func ParsePlan(data []byte, version int64, at time.Time) (*Plan, error) {
	p := &Plan{}
	if err := p.decode(data); err != nil {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the rebalancer's plan cannot be read",
			Why:  err.Error(),
			Try:  "run rebalancers of the same version as routers and proxies; until then all decide without a plan",
		}
	}
	p.Stamp(version, at)
	p.index()
	for i := range p.Labels {
		p.Labels[i].index()
	}
	return p, nil
}

// Stamp sets the version of the plan's document in the store, and when it was written.
func (p *Plan) Stamp(version int64, at time.Time) {
	p.Version, p.At = version, at
	for i := range p.Labels {
		p.Labels[i].Version, p.Labels[i].At = version, at
	}
}

// Under sets the term of the leader's lease under which the plan is made, and how long it holds.
func (p *Plan) Under(term int64, lease time.Duration) {
	p.Term, p.LeaseMS = term, lease.Milliseconds()
	for i := range p.Labels {
		p.Labels[i].Term, p.Labels[i].LeaseMS = p.Term, p.LeaseMS
	}
}

// index builds the index of queues by their leaf name.
func (p *Plan) index() {
	p.leaves = make(map[string]int, len(p.Queues))
	for i := range p.Queues {
		name := p.Queues[i].Queue.Leaf()
		if _, twice := p.leaves[name]; twice {
			i = -1
		}
		p.leaves[name] = i
	}
}

// In is the plan of the nodes with a label, of those without one ("") p itself; nil if there
// is none, or on a nil plan.
func (p *Plan) In(label string) *Plan {
	if p == nil || label == "" {
		return p
	}
	i, ok := slices.BinarySearchFunc(p.Labels, label, func(e LabelPlan, label string) int {
		return strings.Compare(e.Label, label)
	})
	if !ok {
		return nil
	}
	return &p.Labels[i].Plan
}

// Ends is when the plan's lease is over, by the store's clock.
func (p *Plan) Ends() time.Time { return p.At.Add(time.Duration(p.LeaseMS) * time.Millisecond) }

// inForce is the plan if its lease is not over at a moment of the store's clock.
func (p *Plan) inForce(now time.Time) *Plan {
	if p == nil || !now.Before(p.Ends()) {
		return nil
	}
	return p
}

// Queue returns the plan of a queue, by its full path or, as clients may send it, by its leaf alone; nil for nothing,
// or on a nil plan.
func (p *Plan) Queue(q creel.QueuePath) *QueuePlan {
	if p == nil {
		return nil
	}
	if !q.IsFull() {
		if i, ok := p.leaves[string(q)]; ok && i >= 0 {
			return &p.Queues[i]
		}
		return nil
	}
	i, ok := slices.BinarySearchFunc(p.Queues, q, func(e QueuePlan, q creel.QueuePath) int {
		return strings.Compare(string(e.Queue), string(q))
	})
	if !ok {
		return nil
	}
	return &p.Queues[i]
}

// Knows reports whether the plan counts with a member.
func (p *Plan) Knows(id creel.SubclusterID) bool {
	_, ok := slices.BinarySearchFunc(p.Members, id, func(e MemberSize, id creel.SubclusterID) int {
		return strings.Compare(string(e.Member), string(id))
	})
	return ok
}

// LeastCounts is the least part of its size that a member counts with.
const LeastCounts = 0.1

// Counts is the part of a member's size that homes and splits count with: 1, also on a
// nil plan, unless it starts slowly. One that the plan does not know is new.
func (p *Plan) Counts(id creel.SubclusterID) float64 {
	slowStart := time.Duration(p.slowStartMS()) * time.Millisecond
	if slowStart == 0 {
		return 1
	}
	i, ok := slices.BinarySearchFunc(p.Starts, id, func(e MemberStart, id creel.SubclusterID) int {
		return strings.Compare(string(e.Member), string(id))
	})
	switch {
	case ok:
		return max(LeastCounts, p.Starts[i].Counts)
	case p.At.Sub(p.Began) < slowStart:
		return 1 // the federation starts
	}
	return LeastCounts
}

func (p *Plan) slowStartMS() int64 {
	if p == nil {
		return 0
	}
	return p.SlowStartMS
}

// Given returns the part of the queue's entitlement in a member, as a share of the federation.
func (q *QueuePlan) Given(id creel.SubclusterID) float64 {
	i, ok := slices.BinarySearchFunc(q.Members, id, func(e MemberPlan, id creel.SubclusterID) int {
		return strings.Compare(string(e.Member), string(id))
	})
	if !ok {
		return 0
	}
	return q.Members[i].Given
}

// Capacity returns the queue's amount in a member before others get more than theirs.
func (q *QueuePlan) Capacity(id creel.SubclusterID) float64 {
	i, ok := slices.BinarySearchFunc(q.Members, id, func(e MemberPlan, id creel.SubclusterID) int {
		return strings.Compare(string(e.Member), string(id))
	})
	if !ok {
		return 0
	}
	return q.Members[i].Capacity
}

// SetCapacity sets it.
func (q *QueuePlan) SetCapacity(id creel.SubclusterID, capacity float64) {
	i, ok := slices.BinarySearchFunc(q.Members, id, func(e MemberPlan, id creel.SubclusterID) int {
		return strings.Compare(string(e.Member), string(id))
	})
	if !ok {
		q.Members = slices.Insert(q.Members, i, MemberPlan{Member: id})
	}
	q.Members[i].Capacity = capacity
}

// Contended reports whether the queue wants more than it is entitled to.
func (q *QueuePlan) Contended() bool { return q.Entitled < q.Wants*(1-1e-6) }
