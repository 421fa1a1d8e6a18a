// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"

	"github.com/creelrm/creel/subcluster/rm/sched"
)

// Auditor audits a machine event by event at the cost of the event's changes: it checks the touched nodes,
// applications and queues like Audit. At regular intervals of events it checks everything. A machine has at most one
// auditor at a time.
type Auditor struct {
	m       *Machine
	every   int
	n       int
	changes *sched.Changes
	near    holdings
}

// NewAuditor starts to watch a machine; every is the number of checks between two full audits, 0 for no full audits.
func NewAuditor(m *Machine, every int) *Auditor {
	return &Auditor{m: m, every: every, changes: m.sched.Watch(), near: holdings{m: m, by: map[*attempt]*holding{}}}
}

// Checks is the number of calls of Check.
func (a *Auditor) Checks() int { return a.n }

// Check audits the changes since its last call.
func (a *Auditor) Check() error {
	c := auditor{m: a.m, sched: a.m.sched.Audit(), near: &a.near}
	for _, n := range a.changes.Nodes {
		of := a.m.nodes.list[n.Serial()]
		c.node(of)
		a.near.refresh(of)
	}
	for _, x := range a.changes.Apps {
		if of := ofSched(x); a.m.apps.byID[of.id] == of {
			c.app(of)
			c.sched.Around(x, a.changes)
		}
	}
	a.changes.Done()
	a.n++
	err := c.err()
	if a.every > 0 && a.n%a.every == 0 {
		err = errors.Join(err, a.m.Audit())
	}
	return err
}
