// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// ReloadQueues replaces the queue specification at run time. It rejects, as a whole, a tree that is invalid, changes
// the scheduler or the calculator, or lacks a queue in use. Then the old tree stays.
func (m *Machine) ReloadQueues(now time.Time, spec queues.Spec) error {
	m.at(now)
	if err := m.sched.Reload(spec); err != nil {
		return err
	}
	m.cfg.Queues = spec
	m.opportunistic.requeued()
	m.victims.apply()
	m.settle()
	return nil
}

// CheckQueues returns the error that ReloadQueues would return, and changes nothing.
func (r Reader) CheckQueues(spec queues.Spec) error { return r.m.sched.Tree().CheckReload(&spec) }

// PlaceBy replaces the rules that choose the queues of submissions; nil means the queue that a submission names.
func (m *Machine) PlaceBy(rules queues.Placement) { m.cfg.Placement = rules }

// SetQueueState starts, stops or drains a queue. A stopped queue with
// applications drains until they have ended.
func (m *Machine) SetQueueState(now time.Time, path creel.QueuePath, s creel.QueueState) error {
	m.at(now)
	q := m.sched.Tree().Find(string(path))
	if q == nil {
		return noQueue(string(path))
	}
	q.SetState(s)
	m.settle()
	return nil
}

func noQueue(path string) error {
	return refusal(creel.ErrQueueNotFound, queueUnknown, path)
}

// Move moves an application, with its containers and asks, to another leaf.
func (m *Machine) Move(now time.Time, id creel.ApplicationID, to string) error {
	m.at(now)
	a, q := m.apps.byID[id], m.sched.Tree().Find(to)
	switch {
	case a == nil:
		return noApp(id)
	case q == nil:
		return noQueue(to)
	case !a.InQueue() || a.state == appKilling || a.state == appFinalSaving || a.state == appFinishing:
		return refusal(creel.ErrInvalidRequest, moveTooLate, a.state.public(a.before))
	case q == a.Queue():
		return nil
	}
	if err := a.changing("moved to another queue"); err != nil {
		return err
	}
	if err := m.sched.Move(&a.App, q); err != nil {
		return err
	}
	m.opportunistic.requeued()
	a.path, a.moved = q.Path(), true
	m.apps.save(a, func() {})
	m.settle()
	return nil
}

// MaySubmit reports whether the ACLs let a user submit to a queue: a right at an ancestor applies below it, and
// administrators may submit.
func (r Reader) MaySubmit(queue string, user string, groups []string) bool {
	listed := false
	for q := r.m.sched.Tree().Find(queue); q != nil && !listed; q = q.Parent() {
		spec := q.Spec()
		listed = spec.Submit.Allows(user, groups) || spec.Admin.Allows(user, groups)
	}
	return r.decide(queue, &Right{User: user, Listed: listed})
}

// decide completes a question and answers it. A queue that does not exist has no rights.
func (r Reader) decide(queue string, right *Right) bool {
	q := r.m.sched.Tree().Find(queue)
	if r.m.cfg.Rights == nil || q == nil {
		return right.Listed
	}
	right.Queue = q.Path()
	return r.m.cfg.Rights(right)
}

// Administrators returns the administrators of a queue, by its list or an ancestor's.
func (r Reader) Administrators(queue string) (acl queues.ACL) {
	for q := r.m.sched.Tree().Find(queue); q != nil; q = q.Parent() {
		acl = acl.Or(q.Spec().Admin)
	}
	return acl
}

// MayAdminister is MaySubmit for administering a queue.
func (r Reader) MayAdminister(queue string, user string, groups []string) bool {
	listed := false
	for q := r.m.sched.Tree().Find(queue); q != nil && !listed; q = q.Parent() {
		listed = q.Spec().Admin.Allows(user, groups)
	}
	return r.decide(queue, &Right{User: user, Administer: true, Listed: listed})
}
