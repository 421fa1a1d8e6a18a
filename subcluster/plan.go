// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Class and name of the plan in the store (statestore.Documents).
const (
	PlanClass = "plan"
	PlanName  = "current"
)

// Plan is the rebalancer's published plan: each leaf queue's entitlement in the whole federation, and its division
// over the members. Shares are fractions of the federation's dominant resource type. It is immutable after it is
// read.
type Plan struct {
	Version int64     `json:"-"` // of its document in the store
	At      time.Time `json:"-"` // store's clock at its write

	Term int64 `json:"term"` // token of the leader's lease
	Tree int64 `json:"tree"` // version of the queue tree it follows
	// LeaseMS is the time for which processes follow it after At, in milliseconds of the store's clock; 0: it is only
	// displayed.
	LeaseMS int64          `json:"lease_ms"`
	Total   creel.Resource `json:"total"`   // the amount that shares are fractions of
	Members []MemberSize   `json:"members"` // by id
	Queues  []QueuePlan    `json:"queues"`  // by path
	Error   PlanError      `json:"error"`
	// Starts are the sizes that decisions use for members, including absent ones, by id.
	Starts      []MemberStart `json:"starts,omitempty"`
	SlowStartMS int64         `json:"slow_start_ms,omitempty"` // time for a counted size to grow from 0 to all
	Began       time.Time     `json:"began,omitzero"`          // store's clock at the very first plan
	// Preemption is the amount that may be preempted for queues with a budget, by path.
	Preemption []PreemptionBudget `json:"preemption,omitempty"`
	// Capacities means that members use the plan's amounts (MemberPlan.Capacity) instead of the configured
	// capacities. A queue gets its amount before others there get more than theirs.
	Capacities bool `json:"capacities,omitempty"`
	// Labels are the plans of nodes with a label, by label; each label is a separate pool. Their shares are fractions
	// of those nodes. They have no Labels.
	Labels []LabelPlan `json:"labels,omitempty"`

	leaves map[string]int // index of the queue with that leaf name; -1 for several
}

// GivesCapacities reports whether the plan sets queues' capacities on any nodes.
func (p *Plan) GivesCapacities() bool {
	return p.Capacities || slices.ContainsFunc(p.Labels, func(l LabelPlan) bool { return l.Capacities })
}

// LabelPlan is the plan of the nodes with a label.
type LabelPlan struct {
	Label string `json:"label"`
	Plan
}

// EachQueue calls yield for each queue with its nodes' label, nodes without a label first, until it returns false.
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

// EachSlow is EachQueue for members whose size counts only in part.
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

// MemberSize is a member that a plan includes.
type MemberSize struct {
	Member creel.SubclusterID `json:"member"`
	Share  float64            `json:"share"`
}

// MemberStart is the part of a member's size that homes and splits use.
type MemberStart struct {
	Member creel.SubclusterID `json:"member"`
	Size   creel.Resource     `json:"size"`              // its last seen size
	Counts float64            `json:"counts"`            // the part of Size that counts; 1: all
	Why    StartsWhy          `json:"why,omitempty"`     // why less than all
	LeftMS int64              `json:"left_ms,omitempty"` // until all of it counts
	Away   bool               `json:"away,omitempty"`    // it takes no applications now
}

// StartsWhy is the reason why not all of a member's size counts.
type StartsWhy string

// Why members start slowly.
const (
	StartsNew   StartsWhy = "it is new"
	StartsBack  StartsWhy = "it was away"
	StartsGrown StartsWhy = "it has got many nodes"
)

// Slow reports whether only a part of the member's size counts.
func (s *MemberStart) Slow() bool { return !s.Away && s.Counts < 1 }

// Text describes a member's start in a sentence, on nodes of a label, "" for nodes without one.
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
	// Optout: the queue tree excludes this queue from the plan for routers, proxies and escrow.
	Optout bool `json:"optout,omitempty"`
	// Members are the members in which it has a part, by id; none for a queue that wants nothing.
	Members []MemberPlan `json:"members,omitempty"`
}

// MemberPlan is the part of a queue's entitlement in one member. The weights of a queue with demand sum to 1.
type MemberPlan struct {
	Member creel.SubclusterID `json:"member"`
	Given  float64            `json:"given"`
	Weight float64            `json:"weight"`
	// Capacity is the queue's amount there before others get more than theirs. It covers the queue's usage and,
	// within its remaining entitlement, its waiting asks there, as far as others must give way or resources are idle.
	// It has the unit of Given, and is set only in plans with Capacities.
	Capacity float64 `json:"capacity,omitempty"`
}

// PlanError is the distance between use and entitlement at the time of the plan.
type PlanError struct {
	Mean  float64 `json:"mean"`
	Worst float64 `json:"worst"`
}

// ParsePlan parses a stored plan, whole or in parts (Plan.Cut).
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

// Stamp sets the version of the plan's document in the store, and the time of its write.
func (p *Plan) Stamp(version int64, at time.Time) {
	p.Version, p.At = version, at
	for i := range p.Labels {
		p.Labels[i].Version, p.Labels[i].At = version, at
	}
}

// Under sets the term and duration of the leader's lease.
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

// In is the plan of the nodes with a label, for nodes without one ("") p itself; nil if there is none, or on a nil
// plan.
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

// Ends is the end of the plan's lease, by the store's clock.
func (p *Plan) Ends() time.Time { return p.At.Add(time.Duration(p.LeaseMS) * time.Millisecond) }

// inForce returns the plan if its lease has not expired at now, by the store's clock.
func (p *Plan) inForce(now time.Time) *Plan {
	if p == nil || !now.Before(p.Ends()) {
		return nil
	}
	return p
}

// Queue returns the plan of a queue, by its full path or by its leaf alone, which clients may send; nil if there is
// none, or on a nil plan.
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

// Knows reports whether the plan includes a member.
func (p *Plan) Knows(id creel.SubclusterID) bool {
	_, ok := slices.BinarySearchFunc(p.Members, id, func(e MemberSize, id creel.SubclusterID) int {
		return strings.Compare(string(e.Member), string(id))
	})
	return ok
}

// LeastCounts is the smallest part of its size that counts for a member.
const LeastCounts = 0.1

// Counts is the part of a member's size that homes and splits use: 1, unless it starts slowly; 1 on a nil plan. A
// member that the plan does not include is new.
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
		return 1 // the federation is starting
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

// SetCapacity sets that amount.
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
