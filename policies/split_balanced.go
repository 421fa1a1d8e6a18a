// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// balancedSplit is creel's own policy: home first, other members if needed. Every member with asks of an application
// costs a UAM there, a record in that ResourceManager and a heartbeat. So asks go to few members:
//
//  1. The member with the host or rack is asked for containers requested there.
//  2. Home is asked for as many containers as fit there now.
//  3. The rest goes to members in which the application already has a UAM. Members with recent grants come first,
//     ordered by free capacity.
//  4. The rest after that goes to as few new members as possible (span).
//  5. Containers that fit nowhere wait, at home and in the members where the application is by then.
//
// If the rebalancer has a plan and the queue wants more than its entitlement, another step comes before 2. Home is
// asked within the queue's unused entitlement there, then the members with the largest deficits (entitled less used)
// within their deficits. With any plan, waiting asks go to members with deficits, and beyond these in proportion to
// the entitlement. They follow the next plan (Group.From).
//
// Free capacity is the number of containers that fit besides all pending ones. It is computed from the last headroom
// in the member's answers, or from the resources that are free for the queue by the view.
type balancedSplit struct {
	weights Weights
	uamAt   int64 // least number of containers that is worth a UAM in a new member; 0 means 1
}

func (balancedSplit) name() string { return "balanced" }

func (b balancedSplit) given() Weights { return b.weights }

func (b balancedSplit) with(w Weights) splitRule { return balancedSplit{w, b.uamAt} }

func (balancedSplit) from(w Weights, _ float64, uamAt int64) splitRule {
	return balancedSplit{w, uamAt}
}

func (b balancedSplit) place(d *splitDecision, n int64, rnd *rand.Rand) string {
	d.rooms = make([]int64, len(d.reach))
	var parts []string
	tell := func(n int64, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
		}
	}
	local := d.placeLocal(n)
	tell(local, "at their places")
	n -= local
	from := d.from()
	keeps := from >= 0 && !d.reach[from].Stuck // waiting asks stay there if no place is better
	for _, i := range d.open {
		d.rooms[i] = max(0, d.room(i)-d.newHere(i))
		if (keeps || d.group.Soon) && i != from && d.slow(i) {
			d.rooms[i] = 0 // all waiting asks of the queue are placed again now, and would fill the member at once
		}
	}
	plan := planFor(d.view, d.queue, d.open, d.label)
	if plan.speaks() && plan.queue.Contended() && n > 0 {
		text, placed := b.byEntitlement(d, plan, n)
		if placed > 0 {
			parts = append(parts, text)
		}
		n -= placed
	}
	if slices.Contains(d.open, d.home) {
		k := d.give(d.home, n)
		tell(k, "at home")
		n -= k
	}
	before := n
	for _, i := range d.inside() {
		n -= d.give(i, n)
	}
	tell(before-n, "where the application is already")
	chosen, placed, stopped := b.span(d, n, rnd)
	n -= placed
	tell(placed, "span to %s (at most %d new ones)", chosen, d.bound())
	if stopped {
		tell(n, "wait, since too many UAMs have no grant so far (at most %d)", d.bound())
	} else {
		tell(n, "wait, fitting nowhere now")
	}
	d.waiting += n
	switch {
	case n == 0 || plan.speaks() && b.waitByEntitlement(d, plan, n, rnd):
	case keeps:
		d.shares[from] += n
	default:
		b.wait(d, n, stopped)
		if stopped && from >= 0 && d.reach[from].Unproven {
			d.waiting = 0 // move the asks even if they wait again: the UAM at from can be released then
		}
	}
	return strings.Join(parts, "; ")
}

// give assigns up to n containers to a member, within its free capacity, and returns the number assigned.
func (d *splitDecision) give(i int, n int64) int64 {
	k := min(n, d.rooms[i])
	d.shares[i] += k
	d.rooms[i] -= k
	return k
}

// fresh reports whether a member would cost the application a new UAM.
func (d *splitDecision) fresh(i int) bool {
	return i != d.home && !d.reach[i].UAM && d.shares[i] == 0
}

// bound returns the most UAMs without a grant that the group may have at a time. It is the square root, rounded up,
// of the number of containers wanted outside home. Without it, small free capacity in a hundred members would create
// a hundred UAMs. So would free capacity in views that the application cannot get, since waiting asks are placed
// again several times a second.
func (d *splitDecision) bound() int {
	return int(math.Ceil(math.Sqrt(float64(d.group.Count - d.shares[d.home]))))
}

// mayJoin reports whether the group may have one more new member.
func (d *splitDecision) mayJoin() bool {
	unproven := 0
	for _, i := range d.open {
		if r := d.reach[i]; i != d.home && (r.UAM && r.Unproven || !r.UAM && d.shares[i] > 0) {
			unproven++
		}
	}
	return unproven < d.bound()
}

// mayHave reports whether a member may get n containers. A new member may only if they are worth a UAM.
func (d *splitDecision) mayHave(i int, n int64) bool {
	return !d.fresh(i) || n >= d.worth && d.mayJoin()
}

// deficits returns the number of the group's containers that the queue should still get in each open member by the
// plan.
func (d *splitDecision) deficits(plan queuePlan) []int64 {
	out := make([]int64, len(d.reach))
	for _, i := range d.open {
		if m, ok := d.view.Member(d.reach[i].Member); ok {
			entitled, used := plan.deficit(m, creel.Resource{})
			out[i] = plan.containers(entitled-used, d.group.Size)
		}
	}
	return out
}

// byEntitlement assigns containers to members within the free capacity and the queue's entitlement. It returns a text
// about the assignment, and the number of containers.
func (b balancedSplit) byEntitlement(d *splitDecision, plan queuePlan, n int64) (string, int64) {
	limits := d.deficits(plan)
	for i := range limits {
		limits[i] = min(limits[i], d.rooms[i])
	}
	given := b.within(d, limits, n)
	var at []string
	for i, k := range given {
		if k > 0 {
			at = append(at, fmt.Sprintf("%d at %s", k, d.reach[i].Member))
		}
	}
	return fmt.Sprintf("by the plan, within the queue's entitlement (%.1f%% of %s): %s",
		100*plan.queue.Entitled, WholeOf(plan.label), strings.Join(at, ", ")), sum(given, nil)
}

// within assigns n containers within the members' limits: first to home, then to the members with the largest limits.
// New members must satisfy mayHave. It returns the numbers assigned.
func (b balancedSplit) within(d *splitDecision, limits []int64, n int64) []int64 {
	given := make([]int64, len(limits))
	order := slices.Clone(d.open)
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(btoi(y == d.home), btoi(x == d.home)), cmp.Compare(limits[y], limits[x]))
	})
	for _, i := range order {
		if k := min(n, limits[i]); k > 0 && d.mayHave(i, k) {
			given[i] = d.give(i, k)
			n -= k
		}
	}
	return given
}

// waitByEntitlement distributes n containers that fit nowhere. They go to the members in which the queue should have
// more waiting asks by the plan: home, members where the application is, and new members within mayHave. It reports
// whether there was such a member.
//
// If the asks already wait in a member, all applications place the queue's waiting asks again now, independently.
// Each application moves the same part of its asks: the part of all asks waiting there that must leave. If the queue
// has its entitlement, new asks wait as without a plan; the next plan places them again with the others.
//
// If a queue gets all its demand by the plan and still has waiting asks, these are newer than the plan. Then almost
// no entitlement is unused. Members get asks within their deficits only, and the rest waits as without a plan.
func (b balancedSplit) waitByEntitlement(d *splitDecision, plan queuePlan, n int64, rnd *rand.Rand) bool {
	at, part, deficits := d.from(), 1.0, d.deficits(plan)
	if at < 0 && sum(deficits, nil) == 0 {
		return false
	}
	lacks, waits := d.lacking(plan, deficits, at, n)
	weights, total, lack, order := make([]float64, len(lacks)), 0.0, 0.0, []int(nil)
	for _, i := range d.open {
		if i == at || lacks[i] <= 0 {
			continue
		}
		if at < 0 && d.reach[i].Stuck {
			return false // asks stay where the queue has an entitlement
		}
		weights[i] = lacks[i] * max(b.weights.of(d.reach[i].Member), 1e-9)
		total, lack, order = total+weights[i], lack+lacks[i], append(order, i)
	}
	if at >= 0 {
		part = min(-lacks[at], lack) / waits[at]
	}
	if total <= 0 || part <= 0 || at >= 0 && part < leastMoved {
		return false
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(weights[y], weights[x]) })
	placed, gone, lot := int64(0), 0.0, rnd.Float64()
	for _, i := range order {
		goes := float64(n) * part * weights[i] / total
		if !d.mayHave(i, int64(goes)) {
			continue
		}
		// Fractions of a container are rounded at random, so that over many applications each member gets its part.
		k := int64(gone+goes+lot) - int64(gone+lot)
		gone += goes
		if d.slow(i) || !plan.queue.Contended() {
			k = min(k, deficits[i])
		}
		k = min(k, n-placed)
		d.shares[i] += k
		placed += k
	}
	if at < 0 && plan.queue.Contended() && n >= d.worth {
		placed += b.leftovers(d, order, weights, n-placed, lot)
	}
	if placed == 0 {
		return false
	}
	if at >= 0 {
		d.shares[at] += n - placed
		d.waiting = n - placed // the others wait too, and should be placed again
		return true
	}
	if n > placed {
		b.wait(d, n-placed, false)
	}
	d.waiting = 0 // the move is final, although the asks wait there too
	return true
}

// leftovers places n waiting containers that are too few for a UAM in each of the members in order. They go to the
// members where the application is by then, or else to one drawn by weight. It returns the number placed.
func (b balancedSplit) leftovers(
	d *splitDecision,
	order []int,
	weights []float64,
	n int64,
	lot float64,
) (placed int64) {
	order = slices.DeleteFunc(order, d.slow)
	in, fresh := make([]float64, len(weights)), true
	for _, i := range order {
		if !d.fresh(i) {
			in[i], fresh = weights[i], false
		}
	}
	if fresh && len(order) > 0 && d.mayJoin() {
		in[order[drawn(order, func(i int) float64 { return weights[i] }, lot)]] = 1
	}
	for i, more := range apportion(n, in, nil) {
		d.shares[i] += more
		placed += more
	}
	return placed
}

// drawn returns a position in of, drawn by weight. lot is a random number from 0 to 1.
func drawn(of []int, weight func(i int) float64, lot float64) int {
	total := 0.0
	for _, i := range of {
		total += weight(i)
	}
	draw := lot * total
	for at, i := range of {
		if draw -= weight(i); draw < 0 {
			return at
		}
	}
	return len(of) - 1
}

// leastMoved is the least part of a member's waiting asks that moves. Containers granted there during a move are
// released. Without this limit 1.7 to 2.0 % of all grants were released with tasks of a few seconds, and the
// shortfall of queues was no smaller (TestOverloadedQueuesGetTheirGuarantee).
const leastMoved = 0.1

// lacking returns for each open member the number of further asks of the queue that should wait there; it is negative
// if too many wait. The target is the plan's deficit there, and beyond it a part in proportion to the entitlement.
// The queue's containers complete in that proportion. Without waiting asks at that time, other queues would get the
// resources. In a member in slow start the target is the deficit alone. at is the member where the n asks wait,
// negative if they are new. waits has the number waiting in each member.
func (d *splitDecision) lacking(plan queuePlan, deficits []int64, at int, n int64) (lacks, waits []float64) {
	lacks, waits = make([]float64, len(d.reach)), make([]float64, len(d.reach))
	all, due, entitled := 0.0, 0.0, 0.0
	given := func(i int) float64 {
		if d.slow(i) {
			return 0
		}
		return plan.queue.Given(d.reach[i].Member)
	}
	if at < 0 {
		all = float64(n)
	}
	for _, i := range d.open {
		waits[i] = float64(d.waits(plan, i))
		if i == at {
			waits[i] = max(waits[i], float64(n))
		}
		all, due, entitled = all+waits[i], due+float64(deficits[i]), entitled+given(i)
	}
	for _, i := range d.open {
		lacks[i] = float64(deficits[i])*min(1, all/max(1, due)) - waits[i]
		if beyond := max(0, all-due); entitled > 0 {
			lacks[i] += beyond * given(i) / entitled
		}
		if at >= 0 && i != at && d.slow(i) {
			lacks[i] = min(0, lacks[i]) // placing all waiting asks of the queue would fill it at once
		}
	}
	return lacks, waits
}

// from returns the index of the member in which the asks already wait, -1 if there is none or it is not open.
func (d *splitDecision) from() int {
	if at := slices.IndexFunc(d.open, func(i int) bool { return d.reach[i].Member == d.group.From }); at >= 0 {
		return d.open[at]
	}
	return -1
}

// waits returns the number of containers of the group's size that the queue waits for in a member. It is the
// application's number, or the number in the member's last report for the whole queue, whichever is larger.
func (d *splitDecision) waits(plan queuePlan, i int) int64 {
	own, all := d.reach[i].Pending+d.newHere(i), int64(0)
	if m, ok := d.view.Member(d.reach[i].Member); ok {
		if load := plan.load(m); load != nil {
			all = plan.containers(part(load.Pending, plan.plan.Total), d.group.Size)
		}
	}
	return max(own, all)
}

// slow reports whether the member is in slow start by the plan. Such a member gets asks that fit into its part, but
// no waiting asks.
func (d *splitDecision) slow(i int) bool {
	return d.view.Plan.In(d.label(i)).Counts(d.reach[i].Member) < 1
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// inside returns the open members other than home that cost no new UAM: the application has one there, or this split
// just added one. Members with recent grants come first, ordered by free capacity.
func (d *splitDecision) inside() []int {
	var in []int
	for _, i := range d.open {
		if i != d.home && !d.fresh(i) {
			in = append(in, i)
		}
	}
	slices.SortStableFunc(in, func(x, y int) int {
		return cmp.Or(
			cmp.Compare(btoi(d.reach[y].Delivers), btoi(d.reach[x].Delivers)), cmp.Compare(d.rooms[y], d.rooms[x]))
	})
	return in
}

// span assigns n containers to new members. It returns their names, the number placed, and whether it stopped at the
// bound. It draws each member, by weighted capacity, from the members that need no more further members than the
// largest one would. If a member can hold all n, it draws from all such members. If the largest holds a bit more than
// a seventh of n, it draws from all that hold a seventh. So the members are few, and applications that decide on the
// same view do not all take the same ones.
func (b balancedSplit) span(d *splitDecision, n int64, rnd *rand.Rand) (names string, placed int64, stopped bool) {
	left := slices.DeleteFunc(slices.Clone(d.open), func(i int) bool { return !d.fresh(i) || d.rooms[i] < d.worth })
	worth := func(i int) float64 { return float64(d.rooms[i]) * b.weights.of(d.reach[i].Member) }
	var chosen []string
	for n >= d.worth && len(left) > 0 {
		if !d.mayJoin() {
			stopped = true
			break
		}
		// Members where a recent UAM had no grant come last.
		pool := slices.DeleteFunc(slices.Clone(left), func(i int) bool { return d.reach[i].Unproven })
		if len(pool) == 0 {
			pool = left
		}
		largest := d.rooms[slices.MaxFunc(pool, func(x, y int) int { return cmp.Compare(worth(x), worth(y)) })]
		few := (n + largest - 1) / largest
		var enough []int
		for _, i := range pool {
			if d.rooms[i]*few >= n {
				enough = append(enough, i)
			}
		}
		next := enough[drawn(enough, worth, rnd.Float64())]
		k := d.give(next, n)
		n, placed = n-k, placed+k
		chosen = append(chosen, string(d.reach[next].Member))
		left = slices.DeleteFunc(left, func(i int) bool { return i == next })
	}
	return strings.Join(chosen, ", "), placed, stopped
}

// wait distributes n containers that fit nowhere over home and the members where the application is by now. Members
// with the shortest expected wait get most: the weight is the member's size over its pending resources. proven leaves
// out members without a grant so far. Without waiting asks these UAMs are released, and other members get a turn.
func (b balancedSplit) wait(d *splitDecision, n int64, proven bool) {
	weights := make([]float64, len(d.reach))
	for _, i := range d.open {
		if i == d.home || !d.slow(i) && !d.fresh(i) && !(proven && d.reach[i].Unproven) {
			weights[i] = d.size(i) * max(b.weights.of(d.reach[i].Member), 1e-9) /
				float64(1+d.reach[i].Pending+d.shares[i])
		}
	}
	for i, more := range apportion(n, weights, nil) {
		d.shares[i] += more
	}
}

// newHere returns the number of containers that this split assigned to a member and that Pending does not count.
func (d *splitDecision) newHere(i int) int64 {
	held := int64(0)
	for _, h := range d.group.Held {
		if h.Member == d.reach[i].Member {
			held = h.Count
		}
	}
	return max(0, d.shares[i]-held)
}

// size returns the size of a member in containers of the group, at least 1.
func (d *splitDecision) size(i int) float64 {
	m, ok := d.view.Member(d.reach[i].Member)
	if !ok {
		return 1
	}
	total, label := m.Load.Metrics.Total(), d.label(i)
	if p := m.Load.Labels.Find(label); p != nil {
		total = p.Total
	}
	return max(1, float64(Fitting(total, d.group.Size, d.memoryOnly(i)))*d.view.Plan.In(label).Counts(m.ID))
}
