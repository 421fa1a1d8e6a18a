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
