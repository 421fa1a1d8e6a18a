// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// Preemption takes containers back from queues and users above their share, for those that wait below their share. Each
// partition has its own. It runs at a deadline:
//
//  1. A round, every Preemption.Interval, asks the policy for shortages and for
//     containers that may be taken (preempt_capacity.go, preempt_fair.go,
//     preempt_intra.go). If nothing waits it ends there.
//  2. Claims of former rounds are reviewed: claims no longer needed are dropped,
//     and their victims pardoned.
//  3. Due waiting asks make new claims: so many containers of one ask, on one
//     node, and the containers there that must end for it (preempt_choose.go).
//     There is no victim without such an ask.
//  4. Claims that have waited Preemption.Wait have their victims killed.
//
// Resources that a victim leaves are reserved for the claim (preempt_keep.go). Outside rounds, other code uses this
// state only for held nodes.

// Preemption returns the preemption of all partitions.
func (s *Scheduler) Preemption() *Preemption { return &s.main.preempt }

func (p *Preemption) interval() int64 { return int64(max(p.cfg.Interval, 100*time.Millisecond)) }

// wait is the time from the notice to the kill.
func (p *Preemption) wait(by Rule) time.Duration {
	if by == RuleBalance {
		return p.cfg.BalanceWait
	}
	return p.cfg.Wait
}

// Orders returns the orders about victims since the last call, in order. It is due after Tick, Reload and SetLabel,
// before anything else changes; the slice is overwritten later.
func (p *Preemption) Orders() []Order {
	out := p.ownOrders()
	for _, part := range p.part.others() {
		out = append(out, part.preempt.ownOrders()...)
	}
	return out
}

func (p *Preemption) ownOrders() []Order {
	out := p.orders
	p.orders = p.orders[:0]
	return out
}

func (p *Preemption) order(k OrderKind, v *Victim) { p.orders = append(p.orders, Order{k, v}) }

// round is the state of one round.
type round struct {
	part      *partition
	p         *Preemption
	needs     []need // in the order of service
	budgets   map[*Queue]*budget
	over      []*budget // of budgets, in the order of loss
	bounded   bool
	allowed   amounts.Vec // when bounded: limit of the total under notice
	taken     amounts.Vec // the amount under notice
	claimed   map[*Ask]int32
	byUser    map[*user]*amounts.Vec // the amount claimed for a user
	dry       bool                   // without notices
	leastWork bool                   // a queue with too much loses the least work
	lent      bool                   // a candidate is lent
	chosen    map[any]bool           // owners of containers that this round chose
	loss      map[*App]*amounts.Vec  // under notice, by the losing application
	userLoss  map[*user]*amounts.Vec
	made      []*claim                          // claims of this round
	serves    *Queue                            // queue of the current claims; nil within a leaf
	planned   map[*leases.Spending]*amounts.Vec // victims of this round's claims
}

// need is the due shortage and the asks of a leaf, or of an application within a leaf.
type need struct {
	queue *Queue
	app   *App // nil: the whole leaf
	rest  amounts.Vec
	rule  Rule
	types uint32 // types with a shortage; bit i for type i
}

// serve subtracts a claim from the shortages that it serves.
func (r *round) serve(n *need, size *amounts.Vec, count int32) {
	n.rest.AddTimes(size, -int64(count))
	if n.rule != RuleGuarantee || !r.p.cfg.Balance {
		return
	}
	if beyond := r.needOf(n.queue, RuleBalance); beyond != nil { // measured from the same use
		beyond.rest.AddTimes(size, -int64(count))
	}
}

// budget is the amount that may be taken from a leaf, or from an application or user of one.
type budget struct {
	queue  *Queue
	hard   amounts.Vec // limit of all rounds
	even   amounts.Vec // limit by RuleBalance: the excess over the ideal
	soft   amounts.Vec // limit of this round; the claim that reaches it may exceed it
	types  uint32      // types with excess; bit i for type i
	least  uint32      // types without excess, whose guarantee must not be touched either
	ams    amounts.Vec // limit for AMs in it
	strict bool        // other types must not be touched
}

func (p *Preemption) newRound() *round {
	return &round{
		part: p.part, p: p, budgets: map[*Queue]*budget{}, claimed: map[*Ask]int32{},
		byUser: map[*user]*amounts.Vec{}, chosen: map[any]bool{},
		loss: map[*App]*amounts.Vec{}, userLoss: map[*user]*amounts.Vec{},
	}
}

// count adds a claim to the sums of takers and losers; -1 undoes it.
func (r *round) count(c *claim, sign int32) {
	for _, v := range c.victims {
		r.taken.AddTimes(&v.Size.V, int64(sign))
		sumOf(r.loss, v.App).AddTimes(&v.Size.V, int64(sign))
		sumOf(r.userLoss, v.App.user).AddTimes(&v.Size.V, int64(sign))
	}
	r.claimed[c.ask] += sign * c.count
	sumOf(r.byUser, c.app.user).AddTimes(&c.size.V, int64(sign*c.count))
}

// sumOf returns the sum of a key for the caller to change. It adds a missing one.
func sumOf[K comparable](of map[K]*amounts.Vec, k K) *amounts.Vec {
	v := of[k]
	if v == nil {
		v = &amounts.Vec{}
		of[k] = v
	}
	return v
}

// needOf returns the need of a leaf that a claim by a rule serves. FairScheduler's two rules are one need, under the
// rule that is due now.
func (r *round) needOf(q *Queue, rule Rule) *need {
	for i := range r.needs {
		if r.needs[i].queue == q && r.needs[i].app == nil && (r.needs[i].rule == RuleBalance) == (rule == RuleBalance) {
			return &r.needs[i]
		}
	}
	return nil
}

// due reports whether one more container of a size is within the shortage: every type in the size must be short.
func (n *need) due(p *partition, size *amounts.Vec) bool {
	for i := 0; i < p.sizes.Check; i++ {
		if size.At(i) > 0 && n.rest.At(i) <= 0 {
			return false
		}
	}
	return true
}

// takes reports whether a rule may ever take a container of a size from the budget. soon reports whether it may in this
// round.
func (b *budget) takes(p *partition, size *amounts.Vec, rule Rule) (may, soon bool) {
	for i := 0; i < p.sizes.Check; i++ {
		x := size.At(i)
		if b.least>>i&1 != 0 && x > b.hard.At(i) {
			return false, false
		}
		if b.types>>i&1 == 0 {
			if b.strict && x > 0 {
				return false, false
			}
			continue
		}
		if x > b.hard.At(i) || rule == RuleBalance && x > b.even.At(i) {
			return false, false
		}
		may = may || x > 0
		soon = soon || x > 0 && b.soft.At(i) > 0
	}
	return may, soon
}

func (b *budget) take(size *amounts.Vec, sign int64) {
	b.reckon(size, sign)
	b.soft.AddTimes(size, -sign)
}

// reckon is take for a tentative claim. Only the claim's first container is checked against this round's limit.
func (b *budget) reckon(size *amounts.Vec, sign int64) {
	b.hard.AddTimes(size, -sign)
	b.even.AddTimes(size, -sign)
}

// takeAll charges the victims of an earlier round to their budgets, all or none.
func (r *round) takeAll(victims []*Victim, rule Rule) bool {
	for i, v := range victims {
		b := r.budgets[v.App.queue]
		may := false
		if b != nil && v.App.inQueue {
			may, _ = b.takes(r.part, &v.Size.V, rule)
		}
		if !may {
			for _, u := range victims[:i] {
				r.budgets[u.App.queue].take(&u.Size.V, -1)
			}
			return false
		}
		b.take(&v.Size.V, 1)
	}
	return true
}

// stillAsks reports whether the application still asks for containers of an ask.
func (a *App) stillAsks(w *Ask) bool {
	return a.waits && w.count > 0 && w.size != nil && slices.Contains(a.asks, w)
}

// Settings returns the settings in force, and whether preemption is on.
func (p *Preemption) Settings() (queues.Preemption, bool) {
	if !p.on {
		return queues.Preemption{}, false
	}
	return p.cfg, true
}

// Negotiates reports whether AMs may release other containers in place of the victims. Rounds compare amounts, so such
// a release pardons the victims.
func (p *Preemption) Negotiates() bool { return p.part.policy.within }

// ForQueue returns the queue that gets the victim's resources.
func (v *Victim) ForQueue() creel.QueuePath { return v.claim.queue.path }
