// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/logaggregation"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
)

// appLogs is the log aggregation state of an application. Like Hadoop, a ResourceManager has it only in memory: nodes
// that register after its restart repeat their recent reports.
type appLogs struct {
	logaggregation.Logs
	timeOut *timer // set while the application has ended and a node is not done
}

// status returns the status for reports.
func (b *logBook) status(a *app) creel.LogAggregationStatus {
	switch {
	case !b.m.cfg.LogAggregation:
		return creel.LogDisabled
	case a.logs == nil:
		return creel.LogNotStart
	}
	return a.logs.Status()
}

// logsOf returns an application's logs, for a change.
func (a *app) logsOf() *appLogs {
	if a.logs == nil {
		a.logs = &appLogs{}
	}
	return a.logs
}

// ran records that an application ran on a node, which therefore has logs of it.
func (b *logBook) ran(a *app, n *node) {
	if b.m.cfg.LogAggregation && !a.state.ended() {
		a.logsOf().Ran(n.Serial()) // the status of a running application does not change
	}
}

// reported applies a node's log reports.
func (b *logBook) reported(n *node, reports []LogReport) {
	m := b.m
	if !m.cfg.LogAggregation {
		return
	}
	for i := range reports {
		r := &reports[i]
		if a := m.apps.byID[r.App]; a != nil && b.has(a, n) {
			b.change(a, func(l *appLogs) { l.Report(n.Serial(), r.Status, r.Message, &b.room) })
		}
	}
}

// has reports whether a node can have logs of an application; reports of other nodes are ignored. If the
// application ended before a restart, its nodes are unknown.
func (b *logBook) has(a *app, n *node) bool {
	if a.logs != nil && a.logs.Has(n.Serial()) || b.endedBefore(a) {
		return true
	}
	for _, t := range a.attempts {
		if t.nodeSets.Has(nodeset.Ran, n.Serial()) {
			return true
		}
	}
	return false
}

// endedBefore reports whether an application had ended before the last restart.
func (b *logBook) endedBefore(a *app) bool { return a.state.ended() && a.finished <= b.m.recovery.at }

// end runs at the end of an application: nodes now have LogTimeOut.
func (b *logBook) end(a *app) {
	if a.logs != nil {
		b.change(a, func(*appLogs) {})
	}
}

// change changes an application's logs, and emits an action if the status changed.
func (b *logBook) change(a *app, change func(l *appLogs)) {
	m := b.m
	was, l := b.status(a), a.logsOf()
	left := l.Left()
	change(l)
	if a.state.ended() {
		l.End(&b.room)
	}
	switch waits := a.state.ended() && l.Waits(); {
	case !waits:
		m.timers.stop(&l.timeOut)
	case l.timeOut == nil && b.endedBefore(a):
		b.await(a, m.recovery.at)
	case l.timeOut == nil:
		b.await(a, m.now)
	}
	if b.status(a) != was || l.Left() != left {
		a.last = nil
		m.out.act(LogsChanged{App: a.id})
	}
}

// await starts the log timeout of an ended application's nodes. After a pause of this process, in which it
// received no reports, the timeout starts again.
func (b *logBook) await(a *app, from int64) {
	m := b.m
	l := a.logs
	l.timeOut = m.timers.arm(from+int64(m.cfg.LogTimeOut), func() {
		if l.timeOut = nil; m.resumed > from {
			b.await(a, m.resumed)
			return
		}
		b.change(a, func(l *appLogs) { l.TimeOut(&b.room) })
	})
}

// forget deletes an application's logs with it.
func (b *logBook) forget(a *app) {
	if l := a.logs; l != nil {
		b.m.timers.stop(&l.timeOut)
		l.Forget(&b.room)
		a.logs = nil
	}
}

// NodeLogs is a node's progress with the logs of an application.
type NodeLogs struct {
	Node               creel.NodeID
	Status             creel.LogAggregationStatus
	Messages, Failures []string // the last ones, oldest first
}

// NodeLogs returns the nodes of an application with unfinished or failed logs, in order of their first registration.
func (r Reader) NodeLogs(id creel.ApplicationID) (list []NodeLogs) {
	m := r.m
	a := m.apps.byID[id]
	if a == nil || a.logs == nil {
		return nil
	}
	for n := range a.logs.Nodes() {
		list = append(list, NodeLogs{m.nodes.list[n.Node].ID(), n.Status, n.Messages, n.Failures})
	}
	return list
}
