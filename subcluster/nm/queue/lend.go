// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
)

// A node that measures its use may run more containers than its size, while they use less than they were allocated.
// Hadoop's branch YARN-1011 has this; its releases do not.

// Lend records a look at the node's use. Until the next look, containers of this amount may start beyond the node's
// free resources; each start takes its size from it. Waiting guaranteed containers reclaim again: the last estimate of
// the freed amount may have been too high.
func (s *Scheduler) Lend(room overallocate.Amount) {
	s.lent, s.looks = room, true
	s.urgent = append(s.urgent[:0], s.guaranteed...)
}

// admits reports whether a container of a size may start now: within the node's size, or on lent resources.
func (s *Scheduler) admits(size creel.Resource) bool { return s.fits(size) || s.lends(size) }

// lends reports whether the node lends a size. Types of which nothing is measured are not lent.
func (s *Scheduler) lends(size creel.Resource) bool {
	if s.lent == (overallocate.Amount{}) || !overallocate.Of(size).Fits(s.lent) {
		return false
	}
	return creel.Resource{Others: s.used.Add(size).Others}.Fits(s.total)
}

// short is the use that must end until the node lends a waiting guaranteed container its size, after those ahead of
// it.
func (s *Scheduler) short(g *Item) overallocate.Amount {
	sum := overallocate.Amount{}.Sub(s.lent)
	for _, x := range s.guaranteed {
		sum = sum.Add(overallocate.Of(x.Size))
		if x == g {
			break
		}
	}
	for _, x := range s.running {
		if x.stopping {
			sum = sum.Sub(x.Use)
		}
	}
	return sum
}

// Running is the size of the containers that run.
func (s *Scheduler) Running() creel.Resource { return s.used }

// Reclaim ends or pauses running opportunistic containers, the last started first, until an amount of use is
// reclaimed. The use of containers that are about to stop counts as reclaimed. The decisions are in force; the slice is
// valid until the next call.
func (s *Scheduler) Reclaim(amount overallocate.Amount) []Decision {
	s.decisions = s.decisions[:0]
	var items []*Item
	var uses []overallocate.Amount
	for _, x := range slices.Backward(s.running) {
		switch {
		case x.stopping:
			amount = amount.Sub(x.Use)
		case x.Opportunistic:
			items, uses = append(items, x), append(uses, x.Use)
		}
	}
	for _, i := range overallocate.Choose(amount, uses) {
		items[i].stopping = true
		s.decisions = append(s.decisions, Decision{s.stop(), items[i]})
	}
	return s.decisions
}

// stop is the verb for containers that must make room.
func (s *Scheduler) stop() Verb {
	if s.cfg.Pause {
		return Pause
	}
	return Kill
}
