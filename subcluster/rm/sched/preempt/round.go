// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// Round is one round of preemption.
type Round struct {
	Terms
	Needs []Need
	Over  []*Budget // in the order of loss

	bounded bool
	allowed amounts.Vec // when bounded: limit of the total under notice
	taken   amounts.Vec // the amount under notice
	under   []*Claim    // of earlier rounds
	made    []*Claim
	chosen  map[any]bool // owners of the containers that this round chose
	serves  *Queue       // queue of the current claims; nil within a leaf
	planned map[*leases.Spending]*amounts.Vec
	lent    bool // an offer is lent
}

// NewRound begins a round.
func NewRound(t *Terms) *Round { return &Round{Terms: *t, chosen: map[any]bool{}} }

// Bound limits the amount under notice. elsewhere is under notice by other rounds.
func (r *Round) Bound(allowed, elsewhere amounts.Vec) {
	r.bounded, r.allowed, r.taken = true, allowed, elsewhere
}

// Lose adds a budget, the budget of its queue.
func (r *Round) Lose(b *Budget) {
	b.Queue.budget = b
	r.Over = append(r.Over, b)
}

// Sort sorts needs: guarantees first, then by queue priority, then by the lowest use ratio. It sorts queues with excess
// by the highest use ratio.
func (r *Round) Sort() {
	slices.SortStableFunc(r.Needs, func(a, b Need) int {
		return cmp.Or(
			cmp.Compare(a.Rule/Balance, b.Rule/Balance), // guarantees come first
			cmp.Compare(b.Queue.Priority, a.Queue.Priority),
			cmp.Compare(a.Queue.Use, b.Queue.Use), cmp.Compare(a.Queue.Serial, b.Queue.Serial),
		)
	})
	slices.SortStableFunc(r.Over, func(a, b *Budget) int {
		return cmp.Or(cmp.Compare(b.Queue.Use, a.Queue.Use), cmp.Compare(a.Queue.Serial, b.Queue.Serial))
	})
}

// Made returns the claims of the round, in the order in which they were made.
func (r *Round) Made() []*Claim { return r.made }

// serve subtracts a claim from the shortages that it serves.
func (r *Round) serve(n *Need, size *amounts.Vec, count int32) {
	n.Rest.AddTimes(size, -int64(count))
	if n.Rule != Guarantee || !r.Balance {
		return
	}
	if beyond := r.needOf(n.Queue, Balance); beyond != nil { // measured from the same use
		beyond.Rest.AddTimes(size, -int64(count))
	}
}

// count adds a claim to the sums of takers and losers; -1 undoes it.
func (r *Round) count(c *Claim, sign int32) {
	for i := range c.Victims {
		v := &c.Victims[i]
		r.taken.AddTimes(&v.Size.V, int64(sign))
		v.App.Lost.AddTimes(&v.Size.V, int64(sign))
		v.App.User.Lost.AddTimes(&v.Size.V, int64(sign))
	}
	c.Ask.claimed += sign * c.Count
	c.Ask.App.User.claimed.AddTimes(&c.Size.V, int64(sign*c.Count))
}

// needOf returns the need of a leaf that a claim by a rule serves. FairScheduler's two rules are one need, under the
// rule that is due now.
func (r *Round) needOf(q *Queue, rule Rule) *Need {
	for i := range r.Needs {
		if r.Needs[i].Queue == q && (r.Needs[i].Rule == Balance) == (rule == Balance) {
			return &r.Needs[i]
		}
	}
	return nil
}

// due reports whether one more container of a size is within the shortage: every type in the size must be short.
func (n *Need) due(types int, size *amounts.Vec) bool {
	for i := range types {
		if size.At(i) > 0 && n.Rest.At(i) <= 0 {
			return false
		}
	}
	return true
}

// spares reports whether a container is never taken for an ask. An application loses nothing to its own asks, and a
// queue loses nothing to its own shortage.
func (n *Need) spares(k *candidate, w *Ask) bool {
	return k.App == w.App || !n.Rule.Within() && k.App.Queue == n.Queue
}

// takes reports whether a rule may ever take a container of a size from the budget. soon reports whether it may in this
// round.
func (b *Budget) takes(types int, size *amounts.Vec, rule Rule) (may, soon bool) {
	for i := range types {
		x := size.At(i)
		if b.Least>>i&1 != 0 && x > b.Hard.At(i) {
			return false, false
		}
		if b.Types>>i&1 == 0 {
			if b.Strict && x > 0 {
				return false, false
			}
			continue
		}
		if x > b.Hard.At(i) || rule == Balance && x > b.Even.At(i) {
			return false, false
		}
		may = may || x > 0
		soon = soon || x > 0 && b.Soft.At(i) > 0
	}
	return may, soon
}

func (b *Budget) take(size *amounts.Vec, sign int64) {
	b.reckon(size, sign)
	b.Soft.AddTimes(size, -sign)
}

// reckon is take for a tentative claim. Only the claim's first container is checked against this round's limit.
func (b *Budget) reckon(size *amounts.Vec, sign int64) {
	b.Hard.AddTimes(size, -sign)
	b.Even.AddTimes(size, -sign)
}

// Under counts a claim of an earlier round.
func (r *Round) Under(c *Claim) {
	r.count(c, 1)
	r.under = append(r.under, c)
}

// Renew counts a claim of an earlier round if its queue still has the need and its victims' queues the excess, and
// reports whether they have.
func (r *Round) Renew(c *Claim) bool {
	n := r.needOf(c.Queue, c.Rule)
	if n == nil || !n.due(r.Sizes.Check, &c.Size.V) || !r.takeAll(c.Victims, c.Rule) {
		return false
	}
	r.serve(n, &c.Size.V, c.Count)
	r.Under(c)
	return true
}

// Assume counts a claim of an earlier round, whether it is still needed or not.
func (r *Round) Assume(c *Claim) {
	if len(c.Victims) > 0 && r.takeAll(c.Victims, c.Rule) {
		if n := r.needOf(c.Queue, c.Rule); n != nil {
			r.serve(n, &c.Size.V, c.Count)
		}
	}
	r.Under(c)
}

// RenewWithin is Renew for a claim within a leaf. budget returns the amount that an application may lose to the claim,
// nil for nothing.
func (r *Round) RenewWithin(c *Claim, budget func(*App) *Budget) bool {
	for i := range c.Victims {
		v := &c.Victims[i]
		if v.App.Queue != c.Queue {
			return false
		}
		b := budget(v.App)
		if b == nil {
			return false
		}
		if may, _ := b.takes(r.Sizes.Check, &v.Size.V, c.Rule); !may {
			return false
		}
		b.take(&v.Size.V, 1)
	}
	r.Under(c)
	return true
}

// takeAll charges the victims of an earlier round to their budgets, all or none.
func (r *Round) takeAll(victims []Victim, rule Rule) bool {
	for i := range victims {
		v := &victims[i]
		may := false
		if q := v.App.Queue; q != nil && q.budget != nil {
			may, _ = q.budget.takes(r.Sizes.Check, &v.Size.V, rule)
		}
		if !may {
			for k := range victims[:i] {
				victims[k].App.Queue.budget.take(&victims[k].Size.V, -1)
			}
			return false
		}
		v.App.Queue.budget.take(&v.Size.V, 1)
	}
	return true
}

// Yields reports whether a reservation must yield to asks in need. It must if its queue has its guarantee of a type
// that the reservation needs.
func (r *Round) Yields(h *Hold) bool {
	if h.Queue.Kept {
		return false
	}
	n := r.needOf(h.Queue, Guarantee)
	if n == nil {
		return true
	}
	for i := range r.Sizes.Check {
		if h.Size.V.At(i) > 0 && n.Types>>i&1 == 0 {
			return true
		}
	}
	return false
}

// Wants reports whether an ask still waits for a container beyond the claims for it.
func (r *Round) Wants(n *Need, w *Ask) bool { return w.Count > w.claimed && r.mayClaim(n, w) }

// Fill serves an ask from a free amount, without victims, and returns the number of containers that fit.
func (r *Round) Fill(n *Need, w *Ask, free amounts.Vec) (count int32) {
	for count < w.Count-w.claimed && r.Sizes.Fits(&w.Size.V, &free) && n.due(r.Sizes.Check, &w.Size.V) {
		free.Sub(&w.Size.V)
		r.serve(n, &w.Size.V, 1)
		count++
	}
	r.claimed(w, count)
	return count
}

// claimed counts containers of an ask that are served.
func (r *Round) claimed(w *Ask, count int32) {
	w.claimed += count
	w.App.User.claimed.AddTimes(&w.Size.V, int64(count))
}

// mayClaim reports whether one more container of an ask is within the shortage and its user's limit.
func (r *Round) mayClaim(n *Need, w *Ask) bool {
	u := w.App.User
	return n.due(r.Sizes.Check, &w.Size.V) &&
		(n.Rule == AppPriority || !u.Limited || BelowLimit(r.Sizes.Check, &u.Used, &u.claimed, &u.Limit))
}

// BelowLimit reports whether a user may get more beyond use and claims: the last container may exceed the limit.
func BelowLimit(types int, used, claimed, limit *amounts.Vec) bool {
	for i := range types {
		have := used.At(i) + claimed.At(i)
		if have > 0 && have >= limit.At(i) && limit.At(i) > 0 {
			return false
		}
	}
	return true
}

// mayTake reports whether this much more may be under notice. The first claim is always permitted, because a small
// cluster's limit may be below one container. The federation's budgets apply to every claim.
func (r *Round) mayTake(v *amounts.Vec) bool {
	if !r.withinBudgets(r.serves, v) {
		return false
	}
	return !r.bounded || r.taken.IsZero() || r.Sizes.FitsPlus(&r.taken, v, &r.allowed)
}

// withinBudgets reports whether the federation's budgets permit this much more preemption for a queue.
func (r *Round) withinBudgets(q *Queue, v *amounts.Vec) bool {
	if q == nil {
		return true
	}
	for _, b := range q.Budgets {
		if !b.Admits(r.Sizes, r.Now, r.planned[b.Spent], v) {
			return false
		}
	}
	return true
}

// spend counts a claim against the budgets of its queue, in this round only: the caller charges them when it notifies
// the victims. A claim within a leaf costs other queues nothing.
func (r *Round) spend(c *Claim) {
	if c.Rule.Within() {
		return
	}
	for _, b := range c.Queue.Budgets {
		if r.planned == nil {
			r.planned = map[*leases.Spending]*amounts.Vec{}
		}
		sum := r.planned[b.Spent]
		if sum == nil {
			sum = &amounts.Vec{}
			r.planned[b.Spent] = sum
		}
		for i := range c.Victims {
			sum.Add(&c.Victims[i].Size.V)
		}
		c.Spent = append(c.Spent, b.Spent)
	}
}

// mayUse reports whether a node may be cleared for an ask. The node must suit the ask. It must not be reserved for
// another ask, unless that reservation yields.
func (r *Round) mayUse(w *Ask, n *Node) bool {
	return (n.Hold == nil || n.Hold == w.Hold || r.Yields(n.Hold)) && r.Suits(w, n)
}
