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

// logStatus returns the status for reports.
func (m *Machine) logStatus(a *app) creel.LogAggregationStatus {
	switch {
	case !m.cfg.LogAggregation:
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

// ranOn records that an application ran on a node, which therefore has logs of it.
func (m *Machine) ranOn(a *app, n *node) {
	if m.cfg.LogAggregation && !a.state.ended() {
		a.logsOf().Ran(n.Serial()) // the status of a running application does not change
	}
}

// logsReported applies a node's log reports.
func (m *Machine) logsReported(n *node, reports []LogReport) {
	if !m.cfg.LogAggregation {
		return
	}
	for i := range reports {
		r := &reports[i]
		if a := m.apps[r.App]; a != nil && m.hasLogs(a, n) {
			m.changeLogs(a, func(l *appLogs) { l.Report(n.Serial(), r.Status, r.Message, &m.logRoom) })
		}
	}
}

// hasLogs reports whether a node can have logs of an application; reports of other nodes are ignored. If the
// application ended before a restart, its nodes are unknown.
func (m *Machine) hasLogs(a *app, n *node) bool {
	if a.logs != nil && a.logs.Has(n.Serial()) || m.endedBefore(a) {
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
func (m *Machine) endedBefore(a *app) bool { return a.state.ended() && a.finished <= m.recovered }

// logsEnd runs at the end of an application: nodes now have LogTimeOut.
func (m *Machine) logsEnd(a *app) {
	if a.logs != nil {
		m.changeLogs(a, func(*appLogs) {})
	}
}

// changeLogs changes an application's logs, and emits an action if the status changed.
func (m *Machine) changeLogs(a *app, change func(l *appLogs)) {
	was, l := m.logStatus(a), a.logsOf()
	left := l.Left()
	change(l)
	if a.state.ended() {
		l.End(&m.logRoom)
	}
	switch waits := a.state.ended() && l.Waits(); {
	case !waits:
		m.stop(&l.timeOut)
	case l.timeOut == nil && m.endedBefore(a):
		m.awaitLogs(a, m.recovered)
	case l.timeOut == nil:
		m.awaitLogs(a, m.now)
	}
	if m.logStatus(a) != was || l.Left() != left {
		a.last = nil
		m.act(LogsChanged{App: a.id})
	}
}

// awaitLogs starts the log timeout of an ended application's nodes. After a pause of this process, in which it
// received no reports, the timeout starts again.
func (m *Machine) awaitLogs(a *app, from int64) {
	l := a.logs
	l.timeOut = m.timer(from+int64(m.cfg.LogTimeOut), func() {
		if l.timeOut = nil; m.resumed > from {
			m.awaitLogs(a, m.resumed)
			return
		}
		m.changeLogs(a, func(l *appLogs) { l.TimeOut(&m.logRoom) })
	})
}

// forgetLogs deletes an application's logs with it.
func (m *Machine) forgetLogs(a *app) {
	if l := a.logs; l != nil {
		m.stop(&l.timeOut)
		l.Forget(&m.logRoom)
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
func (m *Machine) NodeLogs(id creel.ApplicationID) (list []NodeLogs) {
	a := m.apps[id]
	if a == nil || a.logs == nil {
		return nil
	}
	for n := range a.logs.Nodes() {
		list = append(list, NodeLogs{m.nodeList[n.Node].ID(), n.Status, n.Messages, n.Failures})
	}
	return list
}
