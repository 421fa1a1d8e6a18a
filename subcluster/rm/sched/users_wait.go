// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// UserWaits is what a user of a leaf uses and waits for, and may come to here at most: by the
// leaf's own limits, and the part here of what a user may use in the federation.
type UserWaits struct {
	Name                string
	Used, Pending, Most amounts.Vec
}

// mostWaiting is how many users of a leaf are told at most: the federation knows as many who
// are hot. What further users wait for is told of the queue alone.
const mostWaiting = 100

// UsersWait lists by name the users of a leaf of whose waiting asks a limit holds some back: those
// who want more than the leaf's own limits will ever give them here, or than their part here of what a
// user may use in the federation. Who has a part of their own is listed with what they use, too. Each
// is the most of anybody else by the leaf's own limits. It walks over the users of the leaf and what
// they wait for.
func (s *Scheduler) UsersWait(q *Queue) (each amounts.Vec, users []UserWaits) {
	if q.leaf == nil {
		return each, nil
	}
	s = q.s
	each = s.mostOfUser(q, 1)
	for _, u := range q.leaf.userList {
		x := UserWaits{Name: u.name, Used: u.used, Pending: s.pendingOf(q, u)}
		hot := false
		if q.leaf.caps != nil {
			_, hot = q.leaf.caps.users[u.name]
		}
		if x.Pending.IsZero() && (!hot || x.Used.IsZero()) {
			continue
		}
		x.Most = each
		if u.weight != 1 {
			x.Most = s.mostOfUser(q, u.weight)
		}
		if part, limited := s.userCap(u); limited {
			x.Most.Min(&part)
		}
		if hot || !s.sizes.FitsPlus(&x.Used, &x.Pending, &x.Most) {
			users = append(users, x)
		}
	}
	if len(users) > mostWaiting {
		slices.SortFunc(users, func(a, b UserWaits) int {
			return cmp.Or(s.sizes.Compare(&b.Pending, &a.Pending, &s.total), cmp.Compare(a.Name, b.Name))
		})
		users = users[:mostWaiting]
	}
	slices.SortFunc(users, func(a, b UserWaits) int { return cmp.Compare(a.Name, b.Name) })
	return each, users
}

// mostOfUser is what a user of a weight may ever come to in a leaf: limits grow with what the
// active users use, until the leaf's maximum or the factor of its guarantee stops them. While a plan is
// in force its amount takes the place of the guarantee in them, and may become as much as the maximum.
// One container is beyond the limit, as userAdmits has it.
func (s *Scheduler) mostOfUser(q *Queue, weight float64) amounts.Vec {
	most := q.sized().max
	for p := q.parent; p != nil; p = p.parent {
		most.Min(&p.sized().max)
	}
	most.Min(&s.total)
	of := q.base()
	if !s.policy.guarantees() || q.leaf.factor < 0 || of.IsZero() {
		return most
	}
	if s.planned != nil {
		of = &most
	}
	limit := *s.larger(of, &s.sizes.Least)
	for i := 0; i < s.sizes.N; i++ {
		limit.Set(i, int64(float64(limit.At(i))*q.leaf.factor*weight+1e-6)+s.sizes.Least.At(i))
	}
	limit.Min(&most)
	return limit
}

// pendingOf is what a user's applications ask for and have not got, and the AMs of those in line.
func (s *Scheduler) pendingOf(q *Queue, u *user) (v amounts.Vec) {
	for _, a := range u.apps.Items {
		v.Add(&a.pending)
	}
	line := u // applications are in line in the default partition, their AMs may be to run here
	if main := q.s.main; main != nil {
		line = nil
		if d := main.tree.byPath[q.path]; d != nil && d.leaf != nil {
			line = d.leaf.byName[u.name]
		}
	}
	for i := 0; line != nil && i < len(line.pending.Items); i++ {
		a := line.pending.Items[i]
		if a.amSize != nil && (a.amPart == nil && q.s.main == nil || a.amPart != nil && a.amPart.queue == q) {
			v.Add(&a.amSize.V)
		}
	}
	return v
}
