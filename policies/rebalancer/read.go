// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Reading is the input of a plan, and the names of the queues and members that its indexes refer to.
type Reading struct {
	Input
	Label   string               // of the pool's nodes; see ReadPools
	Queues  []creel.QueuePath    // of Input.Leaves
	Above   []creel.QueuePath    // of Input.Parents
	Members []creel.SubclusterID // of Input.Members
	Sizes   []float64            // of Input.Members, as parts of Total, before SlowStart reduces them
	Total   creel.Resource       // of all members: shares are parts of it
	Tree    *Tree
	// Preempted has the amounts that members report as taken back in intervals of budgets.
	Preempted map[creel.SubclusterID][]subcluster.PreemptionSpent

	Starts    []subcluster.MemberStart // of SlowStart, by id
	slowStart time.Duration
	began     time.Time // store's clock, of the first plan
}

// Read makes the input of a plan from a view: the leaf queues of active members that report queue metrics, and their
// parent queues. Members that report no queues are left out. It covers nodes without a label; ReadPools covers all
// labels. A queue's waiting demand counts once and may run in any of its members: proxies send waiting asks
// elsewhere, and routers choose homes for new applications. In a member only demand within user limits and the
// member's maxima counts as waiting (DemandOf).
func Read(view *subcluster.View, tree *Tree) *Reading {
	r := &Reading{Tree: tree, Preempted: map[creel.SubclusterID][]subcluster.PreemptionSpent{}}
	var status []*subcluster.Status
	for i := range view.Members {
		m := &view.Members[i]
		if m.State == subcluster.StateActive && len(m.Load.Queues) > 0 {
			status = append(status, m)
			r.Members = append(r.Members, m.ID)
			r.Total = r.Total.Add(m.Load.Metrics.Total())
			r.Preempted[m.ID] = m.Load.Preempted
		}
	}
	for _, m := range status {
		r.Input.Members = append(r.Input.Members, Share(m.Load.Metrics.Total(), r.Total))
	}
	r.Sizes = slices.Clone(r.Input.Members)
	guarantees := r.findQueues(status)
	for _, path := range r.Above {
		q := Parent{Above: r.above(path)}
		q.Guarantee, q.Weight, q.Maximum = r.promises(path, guarantees[path])
		r.Parents = append(r.Parents, q)
	}
	for l, path := range r.Queues {
		leaf := Leaf{Above: r.above(path)}
		leaf.Guarantee, leaf.Weight, leaf.Maximum = r.promises(path, guarantees[path])
		rows := rowsOf(path, status)
		pending := 0.0
		for _, x := range rows {
			if x.QueueLoad != nil {
				pending += Share(x.Pending, r.Total)
				leaf.Wants += Share(x.Used, r.Total)
			}
		}
		wanted := DemandOf(r.Tree.Find(path), rows)
		leaf.Wants += pending
		r.Leaves = append(r.Leaves, leaf)
		for m, x := range rows {
			if x.QueueLoad == nil {
				continue
			}
			use := Share(x.Used, r.Total)
			if want := min(use+pending, r.Input.Members[m]); want > 0 {
				r.Pairs = append(r.Pairs, Pair{
					Leaf: int32(l), Member: int32(m), Demand: want, Use: use, Waits: Share(wanted.Here[m], r.Total),
				})
			}
		}
	}
	return r
}

// rowsOf returns a queue's load in each member.
func rowsOf(path creel.QueuePath, status []*subcluster.Status) []MemberLoad {
	rows := make([]MemberLoad, len(status))
	for i, m := range status {
		rows[i] = MemberLoad{m.Load.Find(path), m.Load.Metrics.Total()}
	}
	return rows
}

// findQueues lists the members' leaf and parent queues, and returns for each the sum of the guarantees in the
// members' files.
func (r *Reading) findQueues(status []*subcluster.Status) map[creel.QueuePath]creel.Resource {
	guarantees, parents := map[creel.QueuePath]creel.Resource{}, map[creel.QueuePath]bool{}
	for _, m := range status {
		for i := range m.Load.Queues {
			q := &m.Load.Queues[i]
			if q.Label != "" || q.Queue == creel.RootQueue {
				continue
			}
			guarantees[q.Queue] = guarantees[q.Queue].Add(q.Capacity)
			for at := q.Queue.Parent(); at != "" && at != creel.RootQueue && !parents[at]; at = at.Parent() {
				parents[at] = true
			}
		}
	}
	for path := range parents {
		r.Above = append(r.Above, path)
	}
	for path := range guarantees {
		if !parents[path] {
			r.Queues = append(r.Queues, path)
		}
	}
	slices.Sort(r.Above) // a path sorts after its prefixes
	slices.Sort(r.Queues)
	return guarantees
}

// above is 1 + the index of a queue's parent, 0 for root.
func (r *Reading) above(path creel.QueuePath) int32 {
	i, ok := slices.BinarySearch(r.Above, path.Parent())
	if !ok {
		return 0
	}
	return int32(i + 1)
}

// promises returns the tree's settings of a queue. fromFiles is the sum of the guarantees in the members' files.
func (r *Reading) promises(path creel.QueuePath, fromFiles creel.Resource) (guarantee, weight, maximum float64) {
	guarantee, maximum = Share(fromFiles, r.Total), math.Inf(1)
	q := r.Tree.Find(path)
	if q == nil {
		return guarantee, 0, maximum
	}
	if !q.Guarantee.IsZero() {
		guarantee = Share(q.Guarantee, r.Total)
	}
	if q.Bounded() {
		maximum = Share(q.Maximum.Min(r.Total), r.Total)
		if q.Maximum.VCores >= r.Total.VCores {
			maximum = Share(creel.Resource{MemoryMB: q.Maximum.MemoryMB}, r.Total) // only memory binds
		}
	}
	return guarantee, q.Weight, maximum
}
