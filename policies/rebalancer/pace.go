// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// PacedBudget is a member's share of a preemption budget, with times by the member's clock.
type PacedBudget struct {
	subcluster.QueueOn
	Share  creel.Resource
	Begins time.Time // identifies the interval, by the store's clock
	Ends   time.Time // of the interval
	Until  time.Time // of the plan's lease
}

// Pace applies preemption budgets in a member whose ResourceManager accepts only a limit for each round of
// preemption. Such a ResourceManager reports only the total taken since its start, for all queues together. So
// everything taken while a queue with a budget was short counts against that budget. While such a queue is short, a
// round may take back the rest of its share, for any queue. Pace must run more often than rounds.
type Pace struct {
	begun bool
	taken creel.Resource // at the last look
	spent map[subcluster.QueueOn]*intervalSpent
	last  creel.Resource // limit of one round
	short time.Time      // last time a queue with a budget in force was short
}

type intervalSpent struct {
	begins time.Time
	taken  creel.Resource
	short  bool // at the last look
}

// paceLinger is the time that a bound stays after the last queue was short. A change makes the ResourceManager reload
// all its queues.
const paceLinger = 30 * time.Second

// Look counts taken resources, and returns the limit of one round from now on. If bound is false, only the member's
// own settings limit rounds. taken is the amount taken back since the ResourceManager started, and queues are from
// the same reading. now is by the clock of Ends and Until.
func (p *Pace) Look(
	now time.Time, budgets []PacedBudget, queues []subcluster.QueueLoad, taken creel.Resource,
) (most creel.Resource, bound bool) {
	more := taken.Sub(p.taken)
	if !p.taken.Fits(taken) { // the ResourceManager restarted
		more = taken
	}
	if !p.begun {
		more = creel.Resource{}
	}
	p.begun, p.taken = true, taken
	was := p.spent
	p.spent = make(map[subcluster.QueueOn]*intervalSpent, len(budgets))
	inForce, short := false, false
	for i := range budgets {
		b := &budgets[i]
		s := was[b.QueueOn]
		if s == nil || !s.begins.Equal(b.Begins) {
			s = &intervalSpent{begins: b.Begins, short: s != nil && s.short}
		}
		is := shortOf(b.QueueOn, queues)
		if is || s.short {
			s.taken = s.taken.Add(more)
		}
		s.short, p.spent[b.QueueOn] = is, s
		if !now.Before(b.Until) {
			continue
		}
		inForce = true
		if !is {
			continue
		}
		left := b.Share.Sub(s.taken).Max(creel.Resource{})
		if !now.Before(b.Ends) {
			left = creel.Resource{}
		}
		if short {
			left = left.Min(most)
		}
		most, short = left, true
	}
	switch {
	case short:
		p.last, p.short = most, now
	case !inForce || p.short.IsZero() || now.Sub(p.short) >= paceLinger:
		p.short = time.Time{}
		return creel.Resource{}, false
	}
	return p.last, true
}

// Spent returns the amounts taken in the interval of each budget, in the order given.
func (p *Pace) Spent(budgets []PacedBudget, unbound bool) []subcluster.PreemptionSpent {
	var out []subcluster.PreemptionSpent
	for _, b := range budgets {
		if s := p.spent[b.QueueOn]; s != nil {
			out = append(out, subcluster.PreemptionSpent{
				Queue: b.Queue, Label: b.Label, Begins: s.begins, Taken: s.taken, Unbound: unbound,
			})
		}
	}
	return out
}

// shortOf reports whether a queue, or a descendant, waits while it has less than its guarantee on nodes of a label.
func shortOf(of subcluster.QueueOn, queues []subcluster.QueueLoad) bool {
	for i := range queues {
		x := &queues[i]
		if x.Label == of.Label && (x.Queue == of.Queue || strings.HasPrefix(string(x.Queue), string(of.Queue)+".")) &&
			!x.Pending.IsZero() && !x.Capacity.Fits(x.Used) {
			return true
		}
	}
	return false
}
