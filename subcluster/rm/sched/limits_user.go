// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// userAdmits reports whether a user may get one more container: yes, as long as the use is not above the user's
// limit. It compares dominant shares, as Hadoop compares whole amounts.
func (p *capacityPolicy) userAdmits(part *partition, u *user) bool {
	if l := u.q.sized().leaf; u.weight == 1 && (part.sizes.Fits(&u.used, &l.assured) || u.wellWithin()) {
		return true
	}
	limit := u.limit()
	return part.sizes.Compare(&u.used, &limit, &part.total) <= 0
}

// wellWithin reports whether a user of weight 1 is certainly below the limit, by dominant shares alone: below an
// equal part of the active users' use, and below the leaf's bound. It avoids the computation of the whole limit in a
// queue above its guarantee.
func (u *user) wellWithin() bool {
	p, l := u.q.part, u.q.leaf
	if u.waitingApps == 0 {
		return false
	}
	have, shared := p.sizes.Dominant(&u.used, &p.total), l.usedByActive
	shared.Add(&p.sizes.Least)
	return have < l.bound && have < p.sizes.Dominant(&shared, &p.total)/max(l.weights, 1)
}

// userLimit returns the current limit of one user of a leaf.
func (p *capacityPolicy) userLimit(part *partition, u *user) (amounts.Vec, bool) {
	return u.limit(), true
}

// limit divides the active users' use plus one smallest container among them, so that they grow in step until
// the queue's maximum stops them. The limit is at least the minimum percent of the queue's guarantee; above the
// guarantee, of the use of all users plus one container. It is at most the guarantee times the user limit factor. For
// a user without demand, all users count as active. Of two amounts, the larger is the one with the larger dominant
// share, with all its types. In every type, the users' total use is the sum of their dominant shares. Hadoop computes
// it the same way, so a user may have more of a type than an equal part. Amounts are rounded up to steps.
func (u *user) limit() amounts.Vec {
	q := u.q.sized()
	p := q.part
	l, least, n := q.leaf, &p.sizes.Least, p.sizes.N
	of := q.base()
	base := *p.larger(of, least) // at least one container, so that tiny queues can run something
	current := base
	if used := q.usedByUsers(); p.sizes.Compare(&used, &base, &p.total) >= 0 {
		current = used
		current.Add(least)
	}
	shared, users := current, max(l.allWeights, u.weight)
	if u.waitingApps > 0 {
		shared, users = l.usedByActive, max(l.weights, u.weight)
		shared.Add(least)
	}
	var part, most amounts.Vec
	for i := 0; i < n; i++ {
		shared.Set(i, int64(math.Ceil(float64(shared.At(i))/users-1e-6)))
		part.Set(i, (int64(float64(current.At(i))*l.percent*100+1e-6)+99)/100)
		most.Set(i, int64(float64(base.At(i))*l.factor+1e-6))
	}
	if l.factor < 0 || of.IsZero() {
		for i := 0; i < n; i++ {
			most.Set(i, q.bounds.max.At(i)/max(p.sizes.Step.At(i), 1)*max(p.sizes.Step.At(i), 1))
		}
	}
	limit := *p.larger(&shared, &part)
	if p.sizes.Compare(&limit, &most, &p.total) >= 0 {
		limit = most
	}
	for i := 0; i < n; i++ {
		x, st := limit.At(i), max(p.sizes.Step.At(i), 1)
		x = (x + st - 1) / st * st
		if u.weight != 1 {
			x = int64(float64(x)*u.weight+1e-6) / st * st
		}
		limit.Set(i, x)
	}
	return limit
}
