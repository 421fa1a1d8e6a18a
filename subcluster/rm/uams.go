// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// isUAM reports whether the application is a proxy's unmanaged AM, and so a part of an application of another
// subcluster.
func (a *app) isUAM() bool { return creel.IsUAM(a.sub.Unmanaged, a.sub.Name, a.sub.Tags) }

// counted changes the subcluster's metrics by an application. If the application counts in queue q, it also changes
// those of q and its ancestors; q may be nil.
func (l *appLife) counted(a *app, q *sched.Queue, change func(*sched.AppCounts)) {
	m := l.m
	uam := a.isUAM()
	change(&m.count.apps)
	if uam {
		change(&m.count.uams)
	}
	for ; q != nil; q = q.Parent() {
		change(&q.Ended)
		if uam {
			change(&q.UAMs)
		}
	}
}

// endedAs counts an application that ended in state s.
func endedAs(s appState) func(*sched.AppCounts) {
	switch s {
	case appFinished:
		return func(c *sched.AppCounts) { c.Completed++ }
	case appFailed:
		return func(c *sched.AppCounts) { c.Failed++ }
	default:
		return func(c *sched.AppCounts) { c.Killed++ }
	}
}

// UAMs counts a subcluster's unmanaged AMs of proxies. A router subtracts them from its metrics, because their
// applications are counted at their home.
type UAMs struct {
	all    sched.AppCounts
	live   liveUAMs // as counted in the subcluster's metrics
	queues map[creel.QueuePath]*queueUAMs
}

// liveUAMs counts live UAMs. If a UAM's attempt has ended and the end is not durable yet, it may be in its queue
// without running or waiting.
type liveUAMs struct{ apps, running, pending int32 }

type queueUAMs struct {
	live  liveUAMs
	users map[string]*liveUAMs // of a leaf
}

// UAMs counts the current UAMs. It iterates over all live ones.
func (r Reader) UAMs() *UAMs {
	m := r.m
	u := &UAMs{all: m.count.uams, queues: map[creel.QueuePath]*queueUAMs{}}
	leaves := map[*sched.Queue]*queueUAMs{}
	for a := range m.apps.uams {
		if !a.InQueue() {
			continue // not durable yet
		}
		q := a.Queue()
		k := leaves[q]
		if k == nil {
			k = &queueUAMs{users: map[string]*liveUAMs{}}
			leaves[q], u.queues[q.Path()] = k, k
		}
		of := k.users[a.sub.User]
		if of == nil {
			of = &liveUAMs{}
			k.users[a.sub.User] = of
		}
		of.add(a.Activated(), a.InLine())
		k.live.add(m.sched.Policy().CountedAs(&a.App))
	}
	for leaf, k := range leaves {
		var of liveUAMs
		for _, users := range k.users {
			of.sum(users)
		}
		u.live.sum(&of)
		of.pending = of.apps - of.running // queues above a leaf count all that do not run as pending
		for q := leaf.Parent(); q != nil; q = q.Parent() {
			above := u.queues[q.Path()]
			if above == nil {
				above = &queueUAMs{}
				u.queues[q.Path()] = above
			}
			above.live.sum(&of)
		}
	}
	return u
}

func (l *liveUAMs) add(running, pending bool) {
	l.apps++
	if running {
		l.running++
	}
	if pending {
		l.pending++
	}
}

func (l *liveUAMs) sum(of *liveUAMs) {
	l.apps += of.apps
	l.running += of.running
	l.pending += of.pending
}

// Live returns the numbers of waiting and running UAMs.
func (u *UAMs) Live() (pending, running int64) { return int64(u.live.pending), int64(u.live.running) }

// LiveIn returns the counts of a queue.
func (u *UAMs) LiveIn(q creel.QueuePath) (pending, running int64) {
	if k := u.queues[q]; k != nil {
		return int64(k.live.pending), int64(k.live.running)
	}
	return 0, 0
}

// TakeFromCluster subtracts them from the subcluster's metrics.
func (u *UAMs) TakeFromCluster(v *ClusterView) {
	v.AppsSubmitted -= u.all.Submitted
	v.AppsCompleted -= u.all.Completed
	v.AppsFailed -= u.all.Failed
	v.AppsKilled -= u.all.Killed
	v.AppsRunning -= int64(u.live.running)
	v.AppsPending -= int64(u.live.pending)
}

// TakeFromQueue subtracts the UAMs from a queue's metrics. Its users keep theirs, because a user's limit depends on
// whether any application runs.
func (u *UAMs) TakeFromQueue(v *QueueView) {
	v.AppsSubmitted -= v.UAMs.Submitted
	v.AppsCompleted -= v.UAMs.Completed
	v.AppsFailed -= v.UAMs.Failed
	v.AppsKilled -= v.UAMs.Killed
	k := u.queues[v.Path]
	if k == nil {
		return
	}
	v.ActiveApps -= k.live.running
	v.PendingApps -= k.live.pending
	v.Apps -= k.live.apps
	for i := range v.Users {
		user := &v.Users[i]
		if of := k.users[user.Name]; of != nil {
			user.RunningUAMs, user.PendingUAMs = of.running, of.pending
		}
	}
}
