// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Intervals of preemption budgets, in seconds.
const (
	preemptionSeconds = 60 // where the document has none
	preemptionMost    = 86400
)

// readPreemption sets a queue's preemption budget from the document.
func (q *Queue) readPreemption(doc *limitsJSON) (err error) {
	if q.Preemption, q.PreemptionPercent, err = amounts(doc.Preemption, Unbounded); err != nil {
		return err
	}
	seconds := doc.PreemptionSeconds
	switch has := q.PreemptionBounded(); {
	case !has && seconds != 0:
		return errors.New("preemption_seconds without preemption")
	case !has:
		return nil
	case seconds == 0:
		seconds = preemptionSeconds
	case seconds < 1 || seconds > preemptionMost:
		return fmt.Errorf("preemption_seconds is %d, not from 1 to %d", seconds, preemptionMost)
	}
	q.PreemptionEvery = time.Duration(seconds) * time.Second
	return nil
}

// PreemptionBounded reports whether the queue has a preemption budget.
func (q *Queue) PreemptionBounded() bool { return !q.Preemption.IsZero() || q.PreemptionPercent > 0 }

// GivePreemption adds to a plan the amounts that members may take back from other queues for queues with a budget. A
// queue's shortfall in the federation is its entitlement less its use. The shortfall is distributed, within the
// budget, to the members where the queue is below its share of the plan, the largest difference first. So a queue
// with the same asks in two members gets resources back in only one of them. A queue that has its entitlement gets
// nothing back, even if a member alone would take resources for it.
//
// Intervals are counted from the epoch of the store's clock. Within an interval shares only rise, and their sum stays
// within the budget. A new leader keeps this rule if it has the previous plan. Shares count against the shortfall
// until the interval ends. An amount that a member took beyond its share counts as assigned. The share of a member
// not bound by the budget is the amount that it took. now is by the store's clock.
func GivePreemption(r *Reading, p Plan, out, before *subcluster.Plan, now time.Time) {
	out.Preemption = nil
	for i := range r.Tree.Queues {
		q := &r.Tree.Queues[i]
		if !q.PreemptionBounded() || q.Optout {
			continue
		}
		begins := now.Truncate(q.PreemptionEvery)
		b := subcluster.PreemptionBudget{
			Queue: q.Path, Most: q.Preemption, Begins: begins, Ends: begins.Add(q.PreemptionEvery),
		}
		was, unbound := map[creel.SubclusterID]creel.Resource{}, map[creel.SubclusterID]bool{}
		if x := before.PreemptionOf(q.Path); x != nil && x.Begins.Equal(b.Begins) && x.Ends.Equal(b.Ends) {
			for _, m := range x.Members {
				was[m.Member], unbound[m.Member] = m.Share, m.Unbound
			}
		}
		for id, all := range r.Preempted {
			for _, x := range all {
				switch {
				case x.Queue != q.Path || x.Label != "" || !x.Begins.Equal(begins):
				case x.Unbound:
					was[id], unbound[id] = named(x.Taken, b.Most), true
				default:
					was[id], unbound[id] = was[id].Max(named(x.Taken, b.Most)), false
				}
			}
		}
		lacks, by := r.lacks(p, q.Path)
		b.Lacks = portion(r.Total, lacks)
		b.Members = r.preemptionShares(&b, by, was, unbound)
		out.Preemption = append(out.Preemption, b)
	}
}

// lacks returns the shortfall of the leaves at or below a queue, in total and by member, as parts of the federation.
func (r *Reading) lacks(p Plan, q creel.QueuePath) (sum float64, by []float64) {
	by = make([]float64, len(r.Members))
	at := 0
	for l, path := range r.Queues {
		uses, short, begin := 0.0, 0.0, at
		for ; at < len(r.Pairs) && int(r.Pairs[at].Leaf) == l; at++ {
			uses += r.Pairs[at].Use
			short += max(0, p.Given[at]-r.Pairs[at].Use)
		}
		lacks := p.Entitled[l] - uses
		if path != q && !strings.HasPrefix(string(path), string(q)+".") || lacks <= 0 || short <= 0 {
			continue
		}
		// A leaf above its share in one member has a smaller total shortfall.
		scale := min(1, lacks/short)
		for i := begin; i < at; i++ {
			by[r.Pairs[i].Member] += scale * max(0, p.Given[i]-r.Pairs[i].Use)
		}
		sum += lacks
	}
	return sum, by
}

// portion returns a part of the federation, rounded up. A container may need more than this part of the type that is
// not dominant.
func portion(total creel.Resource, share float64) creel.Resource {
	const unit = 1_000_000
	return total.Scale(int64(math.Ceil(min(1, share)*unit)), unit)
}

// preemptionShares raises the members' shares of this interval, the member with the largest shortfall first, within
// the budget and the shortfall.
func (r *Reading) preemptionShares(
	b *subcluster.PreemptionBudget, by []float64, was map[creel.SubclusterID]creel.Resource,
	unbound map[creel.SubclusterID]bool,
) (out []subcluster.PreemptionMember) {
	left, short := named(b.Most, b.Most), named(b.Lacks, b.Most)
	for _, given := range was {
		left, short = left.Sub(given), short.Sub(given)
	}
	left = left.Min(short).Max(creel.Resource{})
	order := make([]int, len(by))
	for m := range order {
		order[m] = m
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case by[x] > by[y]:
			return -1
		case by[x] < by[y]:
			return 1
		}
		return x - y
	})
	shares := map[creel.SubclusterID]creel.Resource{}
	for id, given := range was {
		shares[id] = given // also for a member that is not in the view now: it may have used its share
	}
	for _, m := range order {
		id := r.Members[m]
		more := named(portion(r.Total, by[m]), b.Most).Sub(was[id]).Min(left).Max(creel.Resource{})
		if by[m] <= 0 || more.IsZero() || unbound[id] {
			continue
		}
		shares[id] = was[id].Add(more)
		left = left.Sub(more)
	}
	for id, share := range shares {
		out = append(out, subcluster.PreemptionMember{Member: id, Share: share, Unbound: unbound[id]})
	}
	slices.SortFunc(out, func(x, y subcluster.PreemptionMember) int {
		return strings.Compare(string(x.Member), string(y.Member))
	})
	return out
}

// named returns a resource with memory, vcores and the types that the budget names. The budget does not limit other
// types.
func named(r, budget creel.Resource) creel.Resource {
	out := creel.NewResource(r.MemoryMB, r.VCores)
	for _, a := range budget.Others {
		out = out.With(a.Name, r.Get(a.Name))
	}
	return out
}
