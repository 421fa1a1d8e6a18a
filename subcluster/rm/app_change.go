// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// MayHavePriority returns the reason why a user may not give an application in a queue this priority, nil if he may.
// It first lowers the priority to the cluster's maximum.
func (r Reader) MayHavePriority(id creel.ApplicationID, path creel.QueuePath, user string, groups []string,
	priority int32) error {
	m := r.m
	q := m.sched.Tree().Find(string(path))
	if !m.cfg.ACLs || q == nil || q.Spec().MayHavePriority(user, groups, m.sched.Policy().CapPriority(priority)) {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted,
		What: fmt.Sprintf(priorityForbidden, user, id, m.sched.Policy().CapPriority(priority)),
		Why:  "acl_application_max_priority of queue " + string(path) + " allows less",
	}
}

// SetPriority changes an application's priority in its leaf queue, and returns the priority in force.
func (m *Machine) SetPriority(now time.Time, id creel.ApplicationID, priority int32) (int32, error) {
	m.at(now)
	a := m.apps.byID[id]
	if a == nil {
		return 0, noApp(id)
	}
	if a.state.ended() || a.state == appFinalSaving || a.state == appKilling {
		return a.Priority(), nil
	}
	if err := a.changing("given a priority"); err != nil {
		return 0, err
	}
	m.sched.SetPriority(&a.App, m.sched.Policy().CapPriority(priority))
	m.apps.save(a, func() {})
	m.settle()
	return a.Priority(), nil
}

// SetLifetime changes the time at which an application is killed; the zero time means never. The queue's maximum
// still applies.
func (m *Machine) SetLifetime(now time.Time, id creel.ApplicationID, deadline time.Time) error {
	m.at(now)
	a := m.apps.byID[id]
	if a == nil {
		return noApp(id)
	}
	if a.state.ended() || a.state == appFinalSaving || a.state == appKilling || a.state == appFinishing {
		return invalid("cannot change the timeout of "+id.String(), "it is in state "+a.state.String(), "")
	}
	if err := a.changing("given a lifetime"); err != nil {
		return err
	}
	at := int64(0)
	if !deadline.IsZero() {
		if at = deadline.UnixNano(); at <= m.now {
			return invalid(expireInvalid, "it is in the past", "give a later time")
		}
	}
	if q := a.Queue(); q != nil && q.Spec().MaxLifetime > 0 {
		if most := a.submitted + int64(q.Spec().MaxLifetime); at == 0 || at > most {
			at = most
		}
	}
	m.apps.armLifetime(a, at)
	m.apps.save(a, func() {})
	m.settle()
	return nil
}

// setLifetime arms the application's time limit: the requested one, up to the queue's maximum, or without a request
// the queue's default.
func (l *appLife) setLifetime(a *app, q *sched.Queue) {
	m := l.m
	d := a.sub.Lifetime
	if q != nil {
		if d <= 0 {
			d = q.Spec().DefaultLifetime
			if d <= 0 {
				d = q.Spec().MaxLifetime
			}
		}
		if most := q.Spec().MaxLifetime; most > 0 && (d <= 0 || d > most) {
			d = most
		}
	}
	at := a.submitted + int64(d)
	if left := a.sub.Left; left > 0 && a.sub.Claim > 0 {
		at = m.now + int64(left) // the rest that its previous home reported, because clocks differ
		if q != nil && q.Spec().MaxLifetime > 0 {
			at = min(at, m.now+int64(q.Spec().MaxLifetime))
		}
	}
	if d > 0 || a.sub.Left > 0 {
		l.armLifetime(a, at)
	}
}

func (l *appLife) armLifetime(a *app, at int64) {
	m := l.m
	m.timers.stop(&a.lifetime)
	a.deadline = at
	if at == 0 {
		return
	}
	a.lifetime = m.timers.arm(at, func() {
		a.lifetime = nil
		if a.hold.Claim > 0 {
			return // ReleaseHold, or its next home, ends it
		}
		l.kill(a, fmt.Sprintf(lifetimeExceeded, (at-a.submitted)/int64(time.Millisecond)))
	})
}
