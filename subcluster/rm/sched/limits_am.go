// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// mayActivate returns the limit that prevents the start of a's AM, and its queue.
func (l *Line) mayActivate(a *App, set shareSet) (explain.Limit, *Queue) {
	if limit, where := l.atOnce(a); limit != explain.LimitNone {
		return limit, where
	}
	if a.amSize == nil {
		return explain.LimitNone, nil
	}
	size := a.amSize
	first := a.queue.apps.running == 0
	if a.amPart != nil {
		a = a.amPart
	}
	q := a.queue
	p := q.part
	all, one := q.amLimit(a.user, set)
	with := q.leaf.amUsed
	with.Add(&size.V)
	// One AM may always start per queue, not per user.
	if first = first || q.leaf.amUsed.IsZero(); first && p.policy.oneAMAlways {
		return explain.LimitNone, nil
	}
	if !p.sizes.Fits(&with, &all) {
		return explain.LimitAM, q
	}
	with = a.user.amUsed
	with.Add(&size.V)
	if !p.sizes.Fits(&with, &one) {
		return explain.LimitUserAM, q
	}
	return explain.LimitNone, nil
}

// atOnce returns the limit on concurrent applications that stops a, and its queue.
func (l *Line) atOnce(a *App) (explain.Limit, *Queue) {
	for q := a.queue; q != nil; q = q.parent {
		if q.settings.full(q.apps.running) {
			return explain.LimitParallelApps, q
		}
	}
	if most := l.userMaxApps(a.user.name); most != 0 && l.runningOf(a.user.name) >= most {
		return explain.LimitParallelApps, nil
	}
	return explain.LimitNone, nil
}

// runningOf is the number of a user's running applications in the cluster.
func (l *Line) runningOf(user string) int {
	if n := l.running[user]; n != nil {
		return *n
	}
	return 0
}

// userMaxApps is the number of applications that a user may run at once; 0 for no limit.
func (l *Line) userMaxApps(user string) int {
	spec := l.s.main.tree.spec
	for _, u := range spec.UserMaxApps {
		if u.User == user {
			return u.Max
		}
	}
	return spec.UserMaxAppsDefault
}

// amLimit returns the limits of all AMs of a leaf, and of one user's AMs; if u is nil, of a user with weight 1.
func (q *Queue) amLimit(u *user, set shareSet) (all, one amounts.Vec) {
	if q.settings.maxAM < 0 {
		return amounts.Unlimited, amounts.Unlimited
	}
	return q.part.policy.amLimit(q.part, q, u, set)
}
