// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
)

// verdict is what stands in the way of an ask, if anything: cheap to make, so
// it is always made.
type verdict struct {
	limit Limit
	where *queue
}

// admit asks whether the limits let a have one container of s more: the
// maximum of each queue on the path, then the user limit of the leaf. Reserved
// amounts count as used, except the one given in own, which is about to become
// the container.
func (m *Machine) admit(a *app, s *size, own *size) verdict {
	if v := m.admitQueues(a, s, own); v.limit != LimitNone {
		return v
	}
	if m.tree.spec.Scheduler == queues.CapacityScheduler && !m.userAdmits(a.user) {
		return verdict{LimitUser, a.queue}
	}
	return verdict{}
}

// admitQueues asks the queues alone.
func (m *Machine) admitQueues(a *app, s *size, own *size) verdict {
	need := &s.v
	for q := a.queue; q.parent != nil; q = q.parent {
		if !q.sized().bounded {
			continue
		}
		if !m.within(q, need, own) {
			return verdict{LimitQueue, q}
		}
	}
	return verdict{}
}

func (m *Machine) within(q *queue, need *vec, own *size) bool {
	q.sized()
	if q.heldContainers == 0 {
		return m.t.fitsPlus(&q.used, need, &q.max) && (q.cap == nil || m.underCap(q, &q.used, need))
	}
	have := q.used
	have.add(&q.held)
	if own != nil {
		have.sub(&own.v)
	}
	return m.t.fitsPlus(&have, need, &q.max) && (q.cap == nil || m.underCap(q, &have, need))
}

// userAdmits is CapacityScheduler's rule: a user may get one container more as
// long as what they use is not above their limit.
func (m *Machine) userAdmits(u *user) bool {
	if u.weight == 1 && m.t.fits(&u.used, &u.q.sized().leaf.sure) {
		return true // whatever the others use
	}
	r := m.userRule(u)
	for i := 0; i < m.t.check; i++ {
		if u.used.at(i) > r.limit(i) {
			return false
		}
	}
	return true
}

// userLimit is what one user of a leaf may use now.
func (m *Machine) userLimit(u *user) vec {
	var v vec
	r := m.userRule(u)
	for i := 0; i < m.t.n; i++ {
		v.set(i, r.limit(i))
	}
	return v
}

// userRule is what the limit of a user is made of: what the active users use
// and one smallest container more, divided among them, so that they grow in
// step until the queue's maximum stops them; but at least the minimum percent of
// the queue's guarantee, or of what all its users use and one container more
// once they are above it; at most the guarantee times the user limit factor.
// For a user that wants nothing, all count as active. Amounts are rounded up to
// steps.
type userRule struct {
	m               *Machine
	q               *queue
	active          bool // the user wants something
	above           bool // the queue uses more than its guarantee
	weight, users   float64
	percent, factor float64
}

func (m *Machine) userRule(u *user) userRule {
	q := u.q.sized()
	l := q.leaf
	r := userRule{m: m, q: q, active: u.waitingApps > 0, weight: u.weight, percent: l.percent, factor: l.factor}
	r.users = max(l.allWeights, u.weight)
	if r.active {
		r.users = max(l.weights, u.weight)
	}
	for i := 0; i < m.t.check && !r.above; i++ {
		r.above = q.used.at(i) > max(q.guaranteed.at(i), m.least.at(i))
	}
	return r
}

// limit is that of one type.
func (r *userRule) limit(i int) int64 {
	least := r.m.least.at(i)
	base := max(r.q.guaranteed.at(i), least) // at least one container, so that tiny queues get on
	current := base
	if r.above {
		current = max(current, r.q.used.at(i)+least)
	}
	shared := current
	if r.active {
		shared = r.q.leaf.usedByActive.at(i) + least
	}
	x := max(float64(shared)/r.users, float64(current)*r.percent) * r.weight
	if r.factor >= 0 {
		x = min(x, float64(base)*r.factor*r.weight)
	} else {
		x = min(x, float64(r.q.max.at(i)))
	}
	y := int64(math.Ceil(x - 1e-6))
	if st := r.m.step.at(i); st > 1 {
		y = (y + st - 1) / st * st
	}
	return y
}

// queueLimit is what a leaf may use in all as things stand: its maximum, cut
// by what is left under each ancestor's.
func (m *Machine) queueLimit(q *queue) vec {
	if q.parent == nil {
		return m.total
	}
	q.sized()
	v := m.queueLimit(q.parent)
	v.sub(&q.parent.used)
	v.add(&q.used)
	for i := 0; i < m.t.n; i++ {
		v.set(i, max(v.at(i), 0))
	}
	v.min(&q.max)
	if q.cap != nil {
		m.limitByCap(q, &v)
	}
	return v
}

// headroom is what a could still get, as its master is told: what is left of
// the queue's and the user's limit.
func (m *Machine) headroom(a *app) vec {
	v := m.queueLimit(a.queue)
	v.sub(&a.queue.used)
	if m.tree.spec.Scheduler == queues.CapacityScheduler {
		r := m.userRule(a.user)
		for i := 0; i < m.t.n; i++ {
			v.set(i, min(v.at(i), r.limit(i)-a.user.used.at(i)))
		}
	}
	for i := 0; i < m.t.n; i++ {
		v.set(i, max(min(v.at(i), m.total.at(i)-m.tree.root.used.at(i)), 0))
	}
	return v
}

// masterLimit is what masters of a leaf may use together, and those of one
// user: a share of the larger of the queue's guarantee and its limit of the
// moment (CapacityScheduler), or of its fair share (FairScheduler).
func (m *Machine) masterLimit(q *queue, s shareSet) (all, one vec) {
	if q.maxAM < 0 {
		return vecMax, vecMax
	}
	base := q.sized().guaranteed
	if m.tree.spec.Scheduler == queues.FairScheduler {
		m.refreshShares(s)
		base = q.shares[s].share
		if base.isZero() {
			base = q.max
			base.min(&m.total)
		}
		return scaleUp(&base, q.maxAM, &vec{}, m.t.n), vecMax // in any units, not in steps
	}
	limit := m.queueLimit(q)
	for i := 0; i < m.t.n; i++ { // Hadoop's limit of the moment is in whole steps
		if s := m.step.at(i); s > 1 {
			limit.set(i, limit.at(i)/s*s)
		}
	}
	base.max(&limit)
	all = scaleUp(&base, q.maxAM, &m.step, m.t.n)
	users := max(q.leaf.weights, 1)
	part := max(float64(q.minUserPercent())/100, 1/users)
	if f := q.factor(); f > 0 {
		part *= f
	}
	one = scaleUp(&base, q.maxAM*part, &m.step, m.t.n)
	one.min(&all)
	return all, one
}

func scaleUp(v *vec, f float64, step *vec, n int) vec {
	var out vec
	for i := 0; i < n; i++ {
		x := int64(math.Ceil(float64(v.at(i))*f - 1e-6))
		if s := step.at(i); s > 1 {
			x = (x + s - 1) / s * s
		}
		out.set(i, x)
	}
	return out
}
