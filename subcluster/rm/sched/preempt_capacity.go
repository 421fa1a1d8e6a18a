// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"math"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// ideal is a queue in the ideal assignment of CapacityScheduler's preemption. That is its amount if the cluster were
// divided again, guarantees first. It follows ProportionalCapacityPreemptionPolicy, with an exact level in place of its
// rounds.
type ideal struct {
	q         *Queue
	kids      []*ideal
	used      amounts.Vec
	want      amounts.Vec // use and demand, limited by maximum and user limits
	spare     amounts.Vec // above the guarantee, and preemptible
	untouched amounts.Vec // above the guarantee, and not preemptible
	reach     amounts.Vec // the most that its leaves can reach
	share     amounts.Vec // the ideal
}

// shortfall computes the leaves' shortages and excess relative to their ideal.
func (p *capacityPolicy) shortfall(r *round) {
	part, cfg := r.part, &r.p.cfg
	r.bounded = true
	total, _ := part.cluster.Total()
	for i := 0; i < part.sizes.Check; i++ {
		r.allowed.Set(i, int64(cfg.PerRound*float64(total.At(i))))
	}
	part.cluster.main.preempt.takenElsewhere(part, &r.taken)
	r.p.last = RoundResult{At: part.now, Allowed: r.allowed}
	if !r.anyBelow() {
		return // no use exceeds the ideal
	}
	root := r.idealOf(part.tree.root)
	root.share = part.total
	root.assign(part.sizes.Check)
	var leaves []*ideal
	var walk func(x *ideal)
	walk = func(x *ideal) {
		if x.q.leaf != nil {
			leaves = append(leaves, x)
		}
		for _, k := range x.kids {
			walk(k)
		}
	}
	walk(root)
	var due amounts.Vec
	for _, x := range leaves {
		r.needsOf(x)
		b := x.excess(part, cfg.IgnoredOver) // a queue short of one type may have excess of another
		if b == nil {
			continue
		}
		b.strict = cfg.ConservativeDRF
		r.over, r.budgets[x.q] = append(r.over, b), b
		due.Add(&b.even)
	}
	// A round takes only a fraction of the due amount. Of that it takes the configured fraction (Termination), because
	// other containers end by themselves.
	fraction := 1.0
	for i := 0; i < part.sizes.Check; i++ {
		if d := due.At(i); d > 0 {
			fraction = min(fraction, float64(r.allowed.At(i))/float64(d))
		}
	}
	for _, b := range r.over {
		for i := 0; i < part.sizes.Check; i++ {
			if b.types>>i&1 != 0 {
				b.soft.Set(i, int64(math.Ceil(float64(b.even.At(i))*fraction*cfg.Termination)))
			}
		}
	}
	r.p.last.Due = due
	r.sortQueues()
}

// takenElsewhere adds the amounts under notice in all partitions but one: a round's limit applies to the cluster.
func (p *Preemption) takenElsewhere(but *partition, sum *amounts.Vec) {
	for _, part := range append([]*partition{p.part}, p.part.others()...) {
		if part == but {
			continue
		}
		for _, c := range part.preempt.claims {
			for _, v := range c.victims {
				sum.Add(&v.Size.V)
			}
		}
	}
}

// anyBelow reports whether a leaf with asks is below its guarantee of some type or, with balancing, has asks at all.
func (r *round) anyBelow() bool {
	p, balance := r.part, r.p.cfg.Balance
	for _, q := range p.tree.all {
		if q.pendingCount > 0 && q.leaf != nil && (balance || !p.sizes.Fits(&q.sized().entitled, &q.used)) {
			return true
		}
	}
	return false
}

// needsOf records a leaf's shortage: up to its guarantee, and beyond it with balancing.
func (r *round) needsOf(x *ideal) {
	p := r.part
	var own, all amounts.Vec
	types := uint32(0)
	beyond := r.p.cfg.Balance && x.q.pendingCount > 0
	for i := 0; i < p.sizes.Check; i++ {
		all.Set(i, max(0, x.share.At(i)-x.used.At(i)))
		own.Set(i, min(all.At(i), max(0, x.q.entitled.At(i)-x.used.At(i))))
		if own.At(i) > 0 {
			types |= 1 << i
		}
		beyond = beyond && (all.At(i) > 0 || x.q.pending.At(i) == 0) // of each type that it asks for
	}
	if !own.IsZero() {
		r.needs = append(r.needs, need{queue: x.q, rule: RuleGuarantee, rest: own, types: types})
	}
	if beyond && !all.IsZero() {
		r.needs = append(r.needs, need{queue: x.q, rule: RuleBalance, rest: all})
	}
}

// sortQueues sorts needs: guarantees first, then by queue priority, then by the lowest use ratio. It sorts queues with
// excess by the highest use ratio.
func (r *round) sortQueues() {
	ratio := func(q *Queue) float64 { return useRank(q).ratio }
	slices.SortStableFunc(r.needs, func(a, b need) int {
		return cmp.Or(
			cmp.Compare(a.rule/RuleBalance, b.rule/RuleBalance), // guarantees come first
			cmp.Compare(b.queue.spec.Priority, a.queue.spec.Priority),
			cmp.Compare(ratio(a.queue), ratio(b.queue)), cmp.Compare(a.queue.serial, b.queue.serial),
		)
	})
	slices.SortStableFunc(r.over, func(a, b *budget) int {
		return cmp.Or(cmp.Compare(ratio(b.queue), ratio(a.queue)), cmp.Compare(a.queue.serial, b.queue.serial))
	})
}

// idealOf collects the use and demand of a queue and its descendants.
func (r *round) idealOf(q *Queue) *ideal {
	p := r.part
	q.sized()
	x := &ideal{q: q, used: q.used}
	if q.leaf != nil {
		x.want = q.used
		if q.pendingCount > 0 {
			want := r.wanted(q)
			x.want.Add(&want)
			if r.p.cfg.ReservedTwice || r.p.cfg.ReservedFirst {
				x.want.Add(&q.held)
			}
		}
		if !q.spec.PreemptionDisabled {
			x.spare = p.sizes.Above(&q.used, &q.entitled)
		}
	}
	for _, c := range q.children {
		if c.containers == 0 && c.pendingCount == 0 {
			continue
		}
		k := r.idealOf(c)
		x.kids = append(x.kids, k)
		x.want.Add(&k.want)
		x.spare.Add(&k.spare)
		x.reach.Add(&k.reach)
	}
	// A parent may lose as much as its children together, even if other children are protected.
	over := p.sizes.Above(&q.used, &q.entitled)
	x.spare.Min(&over)
	x.untouched = p.sizes.Above(&over, &x.spare)
	most := q.max
	if q.cap != nil {
		q.cap.Lease.Left(p.now, &most)
	}
	most.Max(&q.used) // its maximum may have shrunk
	x.want.Min(&most)
	if q.leaf != nil {
		x.reach = x.want
		if !r.p.cfg.Balance {
			// A queue loses nothing to one that has its guarantee.
			own := q.entitled
			own.Max(&q.used)
			x.reach.Min(&own)
		}
	}
	x.reach.Min(&x.want)
	return x
}

// wanted returns a leaf's asks, up to its user limits.
func (r *round) wanted(q *Queue) amounts.Vec {
	var sum amounts.Vec
	for _, u := range q.leaf.userList {
		if u.apps.Len() == 0 {
			continue
		}
		var want amounts.Vec
		for _, a := range u.apps.Items {
			want.Add(&a.pending)
		}
		if limit, has := u.potential(); has {
			limit = q.part.sizes.Above(&limit, &u.used)
			want.Min(&limit)
		}
		sum.Add(&want)
	}
	return sum
}

// potential returns the limit that a user may reach. User limits grow with the leaf's use, up to this part of its
// guarantee at least; with balancing, of its maximum.
func (u *user) potential() (amounts.Vec, bool) {
	p := u.q.part
	limit, has := p.policy.userLimit(p, u)
	if !has {
		return limit, false
	}
	q := u.q.sized()
	own := q.base()
	base := own
	if p.tree.spec.Preemption.Balance {
		base = &q.max
	}
	part := max(q.leaf.percent, u.weight/max(q.leaf.weights, u.weight)) * u.weight
	for i := 0; i < p.sizes.N; i++ {
		to := float64(base.At(i)) * part
		if f := q.leaf.factor; f >= 0 {
			to = min(to, float64(own.At(i))*f*u.weight)
		}
		limit.Set(i, max(limit.At(i), int64(to)))
	}
	if k, has := u.q.leaf.caps.Of(u.name); has {
		limit.Min(&k.Amount)
	}
	return limit, true
}

// mayHave reports whether a user may get more, beyond current use and the amount that claims add.
func (u *user) mayHave(claimed *amounts.Vec) bool {
	limit, has := u.potential()
	if !has {
		return true
	}
	for i := 0; i < u.q.part.sizes.Check; i++ {
		have := u.used.At(i)
		if claimed != nil {
			have += claimed.At(i)
		}
		if have > 0 && have >= limit.At(i) && limit.At(i) > 0 {
			return false
		}
	}
	return true
}

// assign divides a queue's amount of the first types among its children, down to the leaves.
func (x *ideal) assign(types int) {
	if len(x.kids) == 0 {
		return
	}
	for i := range types {
		x.level(i)
	}
	for _, k := range x.kids {
		k.assign(types)
	}
}

// level divides one type. Each child gets its use within its guarantee, and its part that is not preemptible. The rest
// is divided in proportion to the guarantees, by priority first with priority-utilization. It is divided up to the
// guarantees, then beyond. A leaf's part ends at its demand. A leaf that has not exceeded its guarantee ends at the
// guarantee, unless the excess over guarantees is balanced. A parent's part ends with the parts of its leaves. So a
// leaf below its guarantee takes from other branches too, even if its parent is above its own.
func (x *ideal) level(i int) {
	least := func(k *ideal) int64 {
		return min(k.used.At(i), k.q.entitled.At(i)+k.untouched.At(i))
	}
	most := func(k *ideal) int64 { return max(least(k), k.reach.At(i)) }
	left := x.share.At(i)
	var byWeight, without []*ideal
	for _, k := range x.kids {
		k.share.Set(i, least(k))
		left -= least(k)
		if k.q.entitled.At(i) > 0 {
			byWeight = append(byWeight, k)
		} else {
			without = append(without, k)
		}
	}
	own := func(k *ideal) float64 { return float64(k.q.entitled.At(i)) }
	even := func(*ideal) float64 { return 1 }
	if !x.priorities() {
		left = rise(byWeight, i, left, least, most, own)
		rise(without, i, left, least, most, even)
		return
	}
	now := func(k *ideal) int64 { return k.share.At(i) }
	within := func(k *ideal) int64 { return max(now(k), min(most(k), k.q.entitled.At(i))) }
	left = riseByPriority(byWeight, i, left, now, within, own)
	left = riseByPriority(byWeight, i, left, now, most, own)
	riseByPriority(without, i, left, now, most, even)
}

// priorities reports whether the children's shares depend on their priorities.
func (x *ideal) priorities() bool {
	return x.q.ordering.priorities &&
		slices.ContainsFunc(x.kids, func(k *ideal) bool { return k.q.spec.Priority != x.kids[0].q.spec.Priority })
}

// riseByPriority is rise for the children of each priority, the highest first.
func riseByPriority(
	kids []*ideal, i int, left int64, least, most func(*ideal) int64, weight func(*ideal) float64,
) int64 {
	slices.SortStableFunc(kids, func(a, b *ideal) int { return cmp.Compare(b.q.spec.Priority, a.q.spec.Priority) })
	for len(kids) > 0 {
		end := 1
		for end < len(kids) && kids[end].q.spec.Priority == kids[0].q.spec.Priority {
			end++
		}
		left = rise(kids[:end], i, left, least, most, weight)
		kids = kids[end:]
	}
	return left
}

// rise raises children to one level of share over weight, between their least and most. It stops when left is used up,
// and returns the rest.
func rise(
	kids []*ideal, i int, left int64, least, most func(*ideal) int64, weight func(*ideal) float64,
) int64 {
	if left <= 0 || len(kids) == 0 {
		return max(left, 0)
	}
	at := func(k *ideal, level float64) int64 {
		v := min(weight(k)*level, float64(most(k)))
		return max(int64(v+1e-6), least(k))
	}
	needs := func(level float64) int64 {
		sum := int64(0)
		for _, k := range kids {
			sum += at(k, level) - least(k)
		}
		return sum
	}
	hi := 0.0
	for _, k := range kids {
		hi = max(hi, float64(most(k))/weight(k))
	}
	level := hi
	if needs(hi) > left {
		lo := 0.0
		for range 60 {
			if mid := (lo + hi) / 2; needs(mid) <= left {
				lo = mid
			} else {
				hi = mid
			}
		}
		level = lo
	}
	for _, k := range kids {
		v := at(k, level)
		left -= v - least(k)
		k.share.Set(i, v)
	}
	return left
}

// excess returns the amount that may be taken from a leaf, if it is far enough above its guarantee; otherwise nil. It
// is the excess over the ideal, plus the part of the last container below the ideal. Without that part, large
// containers of another queue would delay a queue's guarantee. The leaf keeps its guaranteed share of the cluster: of
// types in excess it loses nothing of its guarantee. If its largest guaranteed type is not in excess, it also keeps the
// guarantees of other types. Otherwise these are ignored, as in Hadoop. If they counted, a queue with few vcores and
// much memory would deny another queue its memory for good.
func (x *ideal) excess(p *partition, ignored float64) *budget {
	g := &x.q.entitled
	if x.q.spec.PreemptionDisabled {
		return nil
	}
	zone := *g
	for i := 0; i < p.sizes.N; i++ {
		zone.Set(i, int64(float64(g.At(i))*(1+ignored)))
	}
	if p.sizes.Dominant(&x.used, &p.total) <= p.sizes.Dominant(&zone, &p.total) {
		return nil
	}
	b := &budget{queue: x.q}
	keeps := false
	for i := 0; i < p.sizes.Check; i++ {
		if v := x.used.At(i) - max(x.share.At(i), g.At(i)); v > 0 {
			b.hard.Set(i, x.used.At(i)-g.At(i))
			b.even.Set(i, v)
			b.types |= 1 << i
			// The guarantee is rounded to whole units of each type.
			keeps = keeps || float64(g.At(i)+1) >= p.sizes.Dominant(g, &p.total)*float64(p.total.At(i))
		}
	}
	if b.types == 0 {
		return nil
	}
	for i := 0; i < p.sizes.Check && !keeps; i++ {
		if v := x.used.At(i) - g.At(i); v >= 0 && b.types>>i&1 == 0 {
			b.hard.Set(i, v)
			b.least |= 1 << i
		}
	}
	// AMs are kept up to the AM share of the queue's guarantee.
	if l := x.q.leaf; x.q.maxAM >= 0 {
		keep := scaleUp(g, x.q.maxAM, &amounts.Vec{}, p.sizes.N)
		b.ams = p.sizes.Above(&l.amUsed, &keep)
	}
	return b
}
