// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// sameSize is the part of its size by which a member may grow and still count with all of it at once.
const sameSize = 0.2

// SlowStart counts members that are new, were away or have got many nodes with a part of their size. The part grows
// to all of it within over; with 0 all members count with all of their size. A member always counts with at least its
// use. A member that is away loses its part as fast as it would have gained it, so that a short absence costs little.
// A member that loses nodes counts with the remaining ones at once. before is the previous plan, or nil. For the time
// over after the first plan all members count with all of their size, since members and nodes of a starting
// federation join one by one. Time is by the store's clock, and does not advance while the view is frozen.
func (r *Reading) SlowStart(view *subcluster.View, before *subcluster.Plan, over time.Duration) {
	r.began, r.slowStart = view.At, over
	if before != nil && !before.Began.IsZero() {
		r.began = before.Began
	}
	r.Starts = starts(view, before, over, view.At.Sub(r.began) >= over)
	uses := make([]float64, len(r.Members))
	for i := range r.Pairs {
		uses[r.Pairs[i].Member] += r.Pairs[i].Use
	}
	for m, id := range r.Members {
		if i, ok := findStart(r.Starts, id); ok {
			r.Input.Members[m] = min(r.Sizes[m], max(r.Sizes[m]*r.Starts[i].Counts, uses[m]))
		}
	}
	for i := range r.Pairs {
		x := &r.Pairs[i]
		x.Demand = max(x.Use, min(x.Demand, r.Input.Members[x.Member]))
	}
}

func findStart(starts []subcluster.MemberStart, id creel.SubclusterID) (int, bool) {
	return slices.BinarySearchFunc(starts, id, func(s subcluster.MemberStart, id creel.SubclusterID) int {
		return cmp.Compare(s.Member, id)
	})
}

// starts returns the slow-start records of the active members, and of the members that are away. If slow is false,
// active members count with all of their size.
func starts(
	view *subcluster.View,
	before *subcluster.Plan,
	over time.Duration,
	slow bool,
) (out []subcluster.MemberStart) {
	gained, known := 0.0, []subcluster.MemberStart(nil)
	if before != nil {
		known = before.Starts
		if passed := view.At.Sub(before.At); over > 0 && passed > 0 && view.Freeze == nil {
			gained = min(1, float64(passed)/float64(over))
		}
	}
	for i := range view.Members {
		m := &view.Members[i]
		s := subcluster.MemberStart{Member: m.ID, Size: m.Load.Metrics.Total(), Counts: 1}
		at, ok := findStart(known, m.ID)
		if m.State != subcluster.StateActive || s.Size.IsZero() {
			if ok && m.State != subcluster.StateDeregistered {
				s = known[at]
				s.Counts, s.Why, s.Away = max(0, s.Counts-gained), subcluster.StartsBack, true
				out = append(out, s)
			}
			continue
		}
		if over > 0 && slow && len(known) > 0 {
			was := subcluster.MemberStart{Counts: subcluster.LeastCounts, Size: s.Size, Why: subcluster.StartsNew}
			if ok {
				was = known[at]
			}
			s.Counts, s.Why = resume(was, s.Size, gained)
			s.Counts = max(s.Counts, subcluster.LeastCounts)
		}
		if s.Counts >= 1 {
			s.Counts, s.Why = 1, ""
		}
		s.LeftMS = int64((1 - s.Counts) * float64(over.Milliseconds()))
		out = append(out, s)
	}
	return out
}

// resume returns the part of its present size that a member counts with. It converts the part that counted of its
// previous size, and adds the part gained since.
func resume(
	was subcluster.MemberStart,
	size creel.Resource,
	gained float64,
) (counts float64, why subcluster.StartsWhy) {
	same := Share(was.Size, size) // of its present size
	switch counts = was.Counts * same; {
	case was.Away:
		return counts, subcluster.StartsBack
	case was.Why != "":
		return counts + gained, was.Why
	case same >= 1-sameSize:
		return 1, ""
	default:
		return counts, subcluster.StartsGrown
	}
}

// shrunk reports whether a member of the previous plan is away, or has lost more than part of its size.
func (r *Reading) shrunk(before *subcluster.Plan, part float64) bool {
	for i := range before.Starts {
		was := &before.Starts[i]
		if was.Away {
			continue
		}
		at, ok := findStart(r.Starts, was.Member)
		if !ok || r.Starts[at].Away || Share(r.Starts[at].Size, was.Size) < 1-part {
			return true
		}
	}
	return false
}
