// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// QueueCap is this subcluster's part of a queue's federation-wide maximum.
type QueueCap = leases.QueueCap

// SetQueueCap sets a cap, even for a queue that does not exist yet. Containers above it keep running.
func (m *Machine) SetQueueCap(now time.Time, c QueueCap) {
	m.at(now)
	m.sched.Caps().Set(c)
	m.settle()
}

// ClearQueueCap removes a queue's cap on nodes of a label: it has no federation-wide maximum there any more.
func (m *Machine) ClearQueueCap(now time.Time, q creel.QueuePath, label string) {
	m.at(now)
	m.sched.Caps().Clear(q, label)
	m.settle()
}

// QueueUse returns the amounts that the escrow of a queue needs on nodes of a label. uses is containers and
// reservations; needs also has the waiting demand of its applications. ok is false if there is no such queue or
// label.
func (r Reader) QueueUse(path creel.QueuePath, label string) (uses, needs creel.Resource, ok bool) {
	m := r.m
	q := m.sched.Tree().FindOn(path, label)
	if q == nil {
		return uses, needs, false
	}
	u, n := m.sched.Explain().Needs(q)
	return m.sizes.Resource(&u), m.sizes.Resource(&n), true
}

// UserCaps are this subcluster's parts of the limits of each user of a queue in the federation.
type (
	UserCaps = leases.UserCaps
	UserCap  = leases.UserCap
)

// SetUserCaps sets caps of a queue's users, like SetQueueCap. They have no effect in a parent queue.
func (m *Machine) SetUserCaps(now time.Time, c UserCaps) {
	m.at(now)
	m.sched.Caps().SetUsers(c)
	m.settle()
}

// ClearUserCaps removes them.
func (m *Machine) ClearUserCaps(now time.Time, q creel.QueuePath, label string) {
	m.at(now)
	m.sched.Caps().ClearUsers(q, label)
	m.settle()
}

// UserUse is a queue user's use, alone and with the waiting demand of the user's applications.
type UserUse struct {
	User        string
	Uses, Needs creel.Resource
}

// UserUses lists the users of a queue with containers or waiting asks on nodes of a label.
func (r Reader) UserUses(path creel.QueuePath, label string) (out []UserUse) {
	m := r.m
	q := m.sched.Tree().FindOn(path, label)
	if q == nil {
		return nil
	}
	for _, n := range m.sched.Explain().UserNeeds(q) {
		out = append(out, UserUse{n.Name, m.sizes.Resource(&n.Uses), m.sizes.Resource(&n.Needs)})
	}
	return out
}

// UserWaits is a queue user's use, waiting demand, and local limit.
type UserWaits struct {
	User                string
	Used, Pending, Most creel.Resource
}

// UsersWait lists, by name, the users of a leaf whose waiting asks a limit partly delays, on nodes of a label. The
// result each is the limit of every other user. See sched.UsersWait.
func (r Reader) UsersWait(path creel.QueuePath, label string) (each creel.Resource, users []UserWaits) {
	m := r.m
	q := m.sched.Tree().FindOn(path, label)
	if q == nil {
		return each, nil
	}
	most, waits := m.sched.Explain().UsersWait(q)
	for _, u := range waits {
		users = append(users, UserWaits{
			u.Name, m.sizes.Resource(&u.Used), m.sizes.Resource(&u.Pending), m.sizes.Resource(&u.Most),
		})
	}
	return m.sizes.Resource(&most), users
}
