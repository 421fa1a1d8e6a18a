// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// QueueCap is this subcluster's part of a queue's federation-wide maximum.
type QueueCap = sched.QueueCap

// SetQueueCap puts a cap in force; it holds for a queue that does not exist yet
// too. What runs above it goes on running.
func (m *Machine) SetQueueCap(now time.Time, c QueueCap) {
	m.at(now)
	m.sched.SetCap(c)
	m.settle()
}

// ClearQueueCap lifts a queue's cap: it has no federation-wide maximum any more.
func (m *Machine) ClearQueueCap(now time.Time, q creel.QueuePath) {
	m.at(now)
	m.sched.ClearCap(q)
	m.settle()
}

// QueueUse is what the escrow of a queue asks for: containers and reservations,
// and with what its applications wait for. False if there is no such queue.
func (m *Machine) QueueUse(path creel.QueuePath) (uses, needs creel.Resource, ok bool) {
	q := m.sched.Find(string(path))
	if q == nil || q.Path() != path {
		return uses, needs, false
	}
	u, n := m.sched.Needs(q)
	return m.sizes.Resource(&u), m.sizes.Resource(&n), true
}

// UserCaps are this subcluster's parts of what each user of a queue may use in the federation.
type (
	UserCaps = sched.UserCaps
	UserCap  = sched.UserCap
)

// SetUserCaps puts caps of a queue's users in force, as SetQueueCap does. Of a queue that has
// queues below it they hold nobody back.
func (m *Machine) SetUserCaps(now time.Time, c UserCaps) {
	m.at(now)
	m.sched.SetUserCaps(c)
	m.settle()
}

// ClearUserCaps lifts them.
func (m *Machine) ClearUserCaps(now time.Time, q creel.QueuePath) {
	m.at(now)
	m.sched.ClearUserCaps(q)
	m.settle()
}

// UserUse is what a user of a queue has, and with what the user's applications wait for.
type UserUse struct {
	User        string
	Uses, Needs creel.Resource
}

// UserUses lists the users of a queue who have or want something.
func (m *Machine) UserUses(path creel.QueuePath) (out []UserUse) {
	q := m.sched.Find(string(path))
	if q == nil || q.Path() != path {
		return nil
	}
	for _, n := range m.sched.UserNeeds(q) {
		out = append(out, UserUse{n.Name, m.sizes.Resource(&n.Uses), m.sizes.Resource(&n.Needs)})
	}
	return out
}
