// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// userAdmits: a user may get one container more as
// long as what they use is not above their limit.
func (p *capacityPolicy) userAdmits(s *Scheduler, u *user) bool {
	if u.weight == 1 && s.sizes.Fits(&u.used, &u.q.sized().leaf.assured) {
		return true // whatever the others use
	}
	r := s.userRule(u)
	for i := 0; i < s.sizes.Check; i++ {
		if u.used.At(i) > r.limit(i) {
			return false
		}
	}
	return true
}

// userLimit is what one user of a leaf may use now.
func (p *capacityPolicy) userLimit(s *Scheduler, u *user) (amounts.Vec, bool) {
	var v amounts.Vec
	r := s.userRule(u)
	for i := 0; i < s.sizes.N; i++ {
		v.Set(i, r.limit(i))
	}
	return v, true
}

// userRule is what the limit of a user is made of: what the active users use
// and one smallest container more, divided among them, so that they grow in
// step until the queue's maximum stops them; but at least the minimum percent of
// the queue's guarantee, or of what all its users use and one container more
// once they are above it; at most the guarantee times the user limit factor.
// For a user that wants nothing, all count as active. Amounts are rounded up to
// steps.
type userRule struct {
	s               *Scheduler
	q               *Queue
	active          bool // the user wants something
	above           bool // the queue uses more than its guarantee
	weight, users   float64
	percent, factor float64
}

func (s *Scheduler) userRule(u *user) userRule {
	q := u.q.sized()
	l := q.leaf
	r := userRule{s: s, q: q, active: u.waitingApps > 0, weight: u.weight, percent: l.percent, factor: l.factor}
	r.users = max(l.allWeights, u.weight)
	if r.active {
		r.users = max(l.weights, u.weight)
	}
	for i := 0; i < s.sizes.Check && !r.above; i++ {
		r.above = q.used.At(i) > max(q.guaranteed.At(i), s.sizes.Least.At(i))
	}
	return r
}

// limit is that of one type.
func (r *userRule) limit(i int) int64 {
	least := r.s.sizes.Least.At(i)
	base := max(r.q.guaranteed.At(i), least) // at least one container, so that tiny queues get on
	current := base
	if r.above {
		current = max(current, r.q.used.At(i)+least)
	}
	shared := current
	if r.active {
		shared = r.q.leaf.usedByActive.At(i) + least
	}
	x := max(float64(shared)/r.users, float64(current)*r.percent) * r.weight
	if r.factor >= 0 {
		x = min(x, float64(base)*r.factor*r.weight)
	} else {
		x = min(x, float64(r.q.max.At(i)))
	}
	y := int64(math.Ceil(x - 1e-6))
	if st := r.s.sizes.Step.At(i); st > 1 {
		y = (y + st - 1) / st * st
	}
	return y
}
