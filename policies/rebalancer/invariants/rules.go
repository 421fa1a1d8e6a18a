// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/subcluster"
)

// Within checks a maximum or a user limit: all members together grant a queue, or a user, at most the limit.
func Within(granted, limit creel.Resource) error {
	if granted.Fits(limit) {
		return nil
	}
	return fmt.Errorf("all members together granted %s, above the federation's %s", granted, limit)
}

// Excess tracks a queue whose use may be above its maximum for a time: containers continue to run when a maximum is
// set or lowered. From then on use may only fall until it is below the maximum.
type Excess struct{ maximum, allowed creel.Resource }

// Limit returns the use allowed from now on, given the use found by a check.
func (o *Excess) Limit(used, maximum creel.Resource) creel.Resource {
	if !o.maximum.Equal(maximum) {
		o.maximum, o.allowed = maximum, used.Max(maximum)
	}
	limit := o.allowed
	o.allowed = maximum.Max(o.allowed.Min(used))
	return limit
}

// Children checks that the use of a queue's children sums to the queue's use.
func Children(used, children creel.Resource) error {
	if used.Equal(children) {
		return nil
	}
	return fmt.Errorf("it uses %s, and the queues below it sum to %s", used, children)
}

// Room checks that a reported headroom is not negative, and not above the free resources of a queue or of the whole.
func Room(told, has creel.Resource) error {
	if (creel.Resource{}).Fits(told) && told.Fits(has.Max(creel.Resource{})) {
		return nil
	}
	return fmt.Errorf("headroom is reported as %s, and only %s are free", told, has)
}

// Owed returns the lesser of a queue's guarantee and demand, and the queue's shortfall from that. Both are parts of
// the total by dominant share.
func Owed(guaranteed, wants, used, total creel.Resource) (owed, lacks float64) {
	owed = guaranteed.Min(wants).Dominant(total)
	return owed, max(0, owed-used.Dominant(total))
}

// CapsHeld checks that the amounts that count in a record sum to at most the maximum. They may sum to more if the
// maximum was lowered, or if use was higher when it was set. Then no part may rise, except one that is a member's own
// configured maximum. before is an earlier state of the record, nil if unknown.
func CapsHeld(before, now *escrow.Record) error {
	counted := now.Counted()
	if counted.Fits(now.Maximum) {
		return nil
	}
	// Without an earlier state from the same store with the same maximum, a higher sum may be legitimate.
	if before == nil || before.Source != now.Source || !before.Maximum.Equal(now.Maximum) {
		return nil
	}
	for i := range now.Holders {
		h := &now.Holders[i]
		b := holder(before, h.Member)
		if b == nil || b.Epoch != h.Epoch || h.Fixed || h.Cap.Fits(b.Cap) {
			continue // it was added with its use, or its part did not rise
		}
		return fmt.Errorf("members hold %s of a maximum of %s, and the part of %s rose from %s to %s",
			counted, now.Maximum, h.Member, b.Cap, h.Cap)
	}
	return nil
}

// LeaseKept checks that a member loses its part only by its own request, or when its lease has been over for linger.
// Each request raises the part's version. at is by the store's clock. With leaves, members may remove their part by
// their own request, as in the record of a user without demand there. So no part of such a record counts as missing.
// A member that returns gets a new part whose versions start again, and may have reached the earlier value. Then its
// later lease shows that it has asked.
func LeaseKept(before, now *escrow.Record, at time.Time, linger time.Duration, leaves bool) error {
	if before == nil || before.Source != now.Source {
		return nil
	}
	for i := range before.Holders {
		b := &before.Holders[i]
		over := b.Standing || !at.Before(b.Ends.Add(linger)) || b.Cap.IsZero() && b.Over.IsZero()
		h := holder(now, b.Member)
		switch {
		case over || leaves && (h == nil || !h.Ends.Equal(b.Ends)) ||
			h != nil && (h.Version != b.Version || h.Epoch != b.Epoch):
		case h == nil:
			return fmt.Errorf("the part of %s, %s, was dropped %s before its lease and %s were over", b.Member, b.Cap,
				b.Ends.Add(linger).Sub(at).Round(time.Millisecond), linger)
		case !h.Cap.Equal(b.Cap):
			return fmt.Errorf("the part of %s became %s from %s, and it has not asked", b.Member, h.Cap, b.Cap)
		}
	}
	return nil
}

func holder(r *escrow.Record, id creel.SubclusterID) *escrow.Holder {
	for i := range r.Holders {
		if r.Holders[i].Member == id {
			return &r.Holders[i]
		}
	}
	return nil
}

// SharesExact checks that the whole parts of a maximum sum to it, and that none is zero. Each part may be one above
// its exact value, since a part of zero becomes one.
func SharesExact(maximum creel.Resource, shares map[creel.SubclusterID]creel.Resource) error {
	var sum creel.Resource
	for id, s := range shares {
		if s.MemoryMB < 1 {
			return fmt.Errorf("the part of %s is zero", id)
		}
		sum = sum.Add(s)
	}
	off := func(sum, whole int64) bool {
		return whole < rebalancer.Unbounded && (sum < whole || sum > whole+int64(len(shares)))
	}
	if off(sum.MemoryMB, maximum.MemoryMB) || off(sum.VCores, maximum.VCores) {
		return fmt.Errorf("the parts of %s sum to %s", maximum, sum)
	}
	return nil
}

// Steps checks that no weight of a queue differs from the previous plan by more than the step. It does not compare
// plans if their members differ or have far fewer nodes.
func Steps(before, now *subcluster.Plan, queue *subcluster.QueuePlan, step float64) error {
	was := before.Queue(queue.Queue)
	if was == nil || len(was.Members) == 0 || len(queue.Members) == 0 || !sameMembers(before, now) {
		return nil
	}
	if id, d := farthest(was, queue); d > step+1e-6 {
		return fmt.Errorf("its weight in %s changed by %.4f in one plan, more than the step %.4f", id, d, step)
	}
	return nil
}

// farthest returns the member in which a queue's weight differs most between two plans.
func farthest(a, b *subcluster.QueuePlan) (id creel.SubclusterID, most float64) {
	weights := map[creel.SubclusterID]float64{}
	for _, m := range a.Members {
		weights[m.Member] = m.Weight
	}
	for _, m := range b.Members {
		weights[m.Member] -= m.Weight
	}
	for at, w := range weights {
		if d := math.Abs(w); d > most || d == most && at < id {
			id, most = at, d
		}
	}
	return id, most
}

// sameMembers reports whether two plans cover the same members with about the same sizes.
func sameMembers(a, b *subcluster.Plan) bool {
	if len(a.Members) != len(b.Members) || len(a.Starts) != len(b.Starts) {
		return false
	}
	for i := range a.Members {
		if a.Members[i].Member != b.Members[i].Member {
			return false
		}
	}
	for i := range a.Starts {
		x, y := &a.Starts[i], &b.Starts[i]
		if x.Member != y.Member || x.Away != y.Away || y.Size.Dominant(x.Size) < 0.8 || x.Size.Dominant(y.Size) < 0.8 {
			return false
		}
	}
	return true
}
