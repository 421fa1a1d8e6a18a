// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// UserWaits is a leaf user's use, waiting demand and local limit: by the leaf's limits, and by the user's cap in the
// federation.
type UserWaits struct {
	Name                string
	Used, Pending, Most amounts.Vec
}

// mostWaiting limits the reported users of a leaf: the federation handles as many hot users. Further users' demand is
// reported only for the queue.
const mostWaiting = 100

// UsersWait lists by name the users of a leaf with waiting asks that a limit delays. Their demand exceeds the most
// that the leaf's limits will ever permit here, or their cap in the federation. A user with a separate cap is also
// listed, with the use. each is the limit of every other user by the leaf's limits. UsersWait iterates over the users
// of the leaf and their waiting asks.
func (e Explainer) UsersWait(q *Queue) (each amounts.Vec, users []UserWaits) {
	if q.leaf == nil {
		return each, nil
	}
	p := q.part
	each = e.mostOfUser(q, 1)
	for _, u := range q.leaf.userList {
		x := UserWaits{Name: u.name, Used: u.used, Pending: u.demand()}
		hot := q.leaf.caps.Named(u.name)
		if x.Pending.IsZero() && (!hot || x.Used.IsZero()) {
			continue
		}
		x.Most = each
		if u.weight != 1 {
			x.Most = e.mostOfUser(q, u.weight)
		}
		if part, limited := u.cap(); limited {
			x.Most.Min(&part)
		}
		if hot || !p.sizes.FitsPlus(&x.Used, &x.Pending, &x.Most) {
			users = append(users, x)
		}
	}
	if len(users) > mostWaiting {
		slices.SortFunc(users, func(a, b UserWaits) int {
			return cmp.Or(p.sizes.Compare(&b.Pending, &a.Pending, &p.total), cmp.Compare(a.Name, b.Name))
		})
		users = users[:mostWaiting]
	}
	slices.SortFunc(users, func(a, b UserWaits) int { return cmp.Compare(a.Name, b.Name) })
	return each, users
}

// mostOfUser returns the highest limit that a user of a weight may reach in a leaf. Limits grow with the active
// users' use, up to the leaf's maximum or the factor of its guarantee. While a plan is in force, its amount replaces
// the guarantee there, and may rise to the maximum. One container may exceed the limit, as in userAdmits.
func (e Explainer) mostOfUser(q *Queue, weight float64) amounts.Vec {
	part := q.part
	most := q.sized().bounds.max
	for p := q.parent; p != nil; p = p.parent {
		most.Min(&p.sized().bounds.max)
	}
	most.Min(&part.total)
	of := q.base()
	if !part.policy.guarantees || q.leaf.factor < 0 || of.IsZero() {
		return most
	}
	if part.planned != nil {
		of = &most
	}
	limit := *part.larger(of, &part.sizes.Least)
	for i := 0; i < part.sizes.N; i++ {
		limit.Set(i, int64(float64(limit.At(i))*q.leaf.factor*weight+1e-6)+part.sizes.Least.At(i))
	}
	limit.Min(&most)
	return limit
}

// demand returns the sum of a user's outstanding asks, and of the AMs in line.
func (u *user) demand() (v amounts.Vec) {
	q := u.q
	for _, a := range u.apps.Items {
		v.Add(&a.pending)
	}
	line := u // applications are in line in the default partition, although their AMs may run here
	if q.part.label != "" {
		line = nil
		if d := q.part.cluster.main.tree.at(q.path); d != nil && d.leaf != nil {
			line = d.leaf.byName[u.name]
		}
	}
	for i := 0; line != nil && i < len(line.pending.Items); i++ {
		a := line.pending.Items[i]
		if a.amSize != nil && (a.amPart == nil && q.part.label == "" || a.amPart != nil && a.amPart.queue == q) {
			v.Add(&a.amSize.V)
		}
	}
	return v
}
