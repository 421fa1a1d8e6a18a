// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// Caps applies this subcluster's parts of the limits of queues and users in the federation. Package leases has them.
type Caps struct{ s *Scheduler }

// Caps returns the caps of all partitions.
func (s *Scheduler) Caps() Caps { return Caps{s} }

// Set sets a queue's cap, even for a queue or label that does not exist yet. Containers above it keep running.
// Schedule is due.
func (k Caps) Set(c leases.QueueCap) {
	old, to := k.s.main.leases.SetCap(c)
	if p := k.s.partition(c.Label); p != nil && to != nil {
		p.capChanged(old, to)
	}
}

// Clear removes a queue's cap on nodes of a label: it has no federation-wide maximum there any more.
func (k Caps) Clear(q creel.QueuePath, label string) {
	old := k.s.main.leases.ClearCap(q, label)
	if p := k.s.partition(label); p != nil && old != nil {
		p.capChanged(old, nil)
	}
}

// capChanged retries the asks that the old cap stopped. A longer lease of the same amount has no effect, unless the old
// lease had expired.
func (p *partition) capChanged(old, to *leases.Cap) {
	if old == nil || to == nil {
		p.resize()
		return
	}
	if q := p.tree.at(to.Queue); q != nil {
		q.bounds.setCap(to)
	}
	if !old.Lease.Same(&to.Lease, p.now) {
		p.loosen()
	}
}

// SetUsers sets caps of a queue's users, even for a queue that does not exist yet. Containers above them keep
// running. Schedule is due.
func (k Caps) SetUsers(c leases.UserCaps) {
	old, to := k.s.main.leases.SetUsers(c)
	if p := k.s.partition(c.Label); p != nil {
		p.userCapsChanged(c.Queue, old, to)
	}
}

// ClearUsers removes them: the queue's users have no federation-wide limit on nodes of the label any more.
func (k Caps) ClearUsers(q creel.QueuePath, label string) {
	old := k.s.main.leases.ClearUsers(q, label)
	if p := k.s.partition(label); p != nil && old != nil {
		p.userCapsChanged(q, old, nil)
	}
}

// userCapsChanged retries the users that the old caps stopped.
func (p *partition) userCapsChanged(path creel.QueuePath, old, to *leases.Users) {
	q := p.tree.at(path)
	if q == nil || q.leaf == nil {
		return
	}
	q.leaf.caps = to
	for _, u := range q.leaf.userList {
		if !u.limited {
			continue
		}
		was, had := old.Of(u.name)
		is, has := to.Of(u.name)
		if had != has || has && !was.Same(&is, p.now) {
			p.retries.touch(q)
			u.unlimit()
		}
	}
	p.lendAgain()
}
