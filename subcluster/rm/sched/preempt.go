// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
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
//     node, and the containers there that must end for it. There is no victim
//     without such an ask. Package preempt chooses them, in a snapshot
//     (preempt_snapshot.go, preempt_claim.go).
//  4. Claims that have waited Preemption.Wait have their victims killed.
//
// Resources that a victim leaves are reserved for the claim (preempt_keep.go). Outside rounds, other code uses this
// state only for held nodes.

// Preemption returns the preemption of all partitions.
func (s *Scheduler) Preemption() *Preemption { return &s.main.preempt }

func (p *Preemption) interval() int64 { return int64(max(p.cfg.Interval, 100*time.Millisecond)) }

// wait is the time from the notice to the kill.
func (p *Preemption) wait(by Rule) time.Duration {
	if by == preempt.Balance {
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

// round is one round. It copies what preempt.Round reads, and carries out its claims.
type round struct {
	*preempt.Round
	snapshot
	part *partition
	dry  bool // without notices
}

func (p *Preemption) newRound() *round {
	part := p.part
	return &round{
		Round: preempt.NewRound(&preempt.Terms{
			Sizes: &part.sizes, Total: part.total, Now: part.now, Wait: p.cfg.Wait, Balance: p.cfg.Balance,
			Suits: suits,
		}),
		snapshot: p.snapshot(),
		part:     part,
	}
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

// Why explains the choice of a victim.
func (v *Victim) Why() string { return v.choice.Why(time.Duration(v.By - v.Since)) }

// ForQueue returns the queue that gets the victim's resources.
func (v *Victim) ForQueue() creel.QueuePath { return v.claim.queue.path }
