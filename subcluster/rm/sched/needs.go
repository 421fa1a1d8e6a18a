// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// Needs returns the amounts for the escrow of a queue's maximum. uses is the queue's use and reservations; needs also
// has the waiting asks of its applications. Applications in line count with their AMs. The AM share is a share of the
// cap, so with a cap that excluded them they would never start. An amount that the queue could not get here even with
// all nodes is not needed. The escrow would reserve it here, and another member could not use it.
func (e Explainer) Needs(q *Queue) (uses, needs amounts.Vec) {
	uses = q.reserved.and(&q.used)
	needs = uses
	needs.Add(&q.pending)
	needs.Add(&q.apps.inLine)
	e.boundNeeds(q, &uses, &needs)
	return uses, needs
}

// boundNeeds reduces needs to the maxima of the queue and its ancestors, but never below uses.
func (e Explainer) boundNeeds(q *Queue, uses, needs *amounts.Vec) {
	for ; q != nil; q = q.parent {
		needs.Min(&q.sized().bounds.max)
	}
	needs.Max(uses)
}

// UserNeed is a leaf user's use and demand.
type UserNeed struct {
	Name        string
	Uses, Needs amounts.Vec // Needs includes the waiting asks of the user's applications, and their AMs in line
}

// UserNeeds lists the users of a leaf with use or demand.
func (e Explainer) UserNeeds(q *Queue) (out []UserNeed) {
	if q.leaf == nil {
		return nil
	}
	for _, u := range q.leaf.userList {
		n := UserNeed{Name: u.name, Uses: u.used, Needs: u.demand()}
		n.Needs.Add(&u.used)
		e.boundNeeds(q, &n.Uses, &n.Needs)
		if !n.Needs.IsZero() {
			out = append(out, n)
		}
	}
	return out
}
