// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pagemap"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// Kill ends an application at any state. Done reports whether it has ended.
func (m *Machine) Kill(now time.Time, id creel.ApplicationID, diagnostics string) (done bool, err error) {
	m.at(now)
	a := m.apps[id]
	if a == nil {
		return false, noApp(id)
	}
	if err := a.changing("killed"); err != nil {
		return false, err
	}
	m.kill(a, diagnostics)
	m.settle()
	return a.state.ended(), nil
}

func (m *Machine) kill(a *app, diag string) {
	switch a.state {
	case appAccepted, appRunning:
		a.before, a.state = a.state, appKilling
		m.stateChanged(a)
		a.addDiag(diag, m.cfg.DiagnosticsLimit)
		m.stop(&a.lifetime)
		if t := a.current; t != nil && !t.over() {
			m.endAttempt(t, tKilled, creel.FinalKilled, diag, creel.ExitInvalid)
		} else {
			m.finishApp(a, appKilled, creel.FinalKilled, "")
		}
	case appNew, appNewSaving, appSubmitted:
		m.finishApp(a, appKilled, creel.FinalKilled, diag)
	}
}

// finishApp ends an application: first durably, then with its final state.
func (m *Machine) finishApp(a *app, target appState, final creel.FinalStatus, diag string) {
	if a.state.ended() || a.state == appFinalSaving {
		return
	}
	if a.state != appKilling {
		a.before = a.state
	}
	a.state, a.target, a.final = appFinalSaving, target, final
	if diag != "" {
		a.addDiag(diag, m.cfg.DiagnosticsLimit)
	}
	m.stateChanged(a)
	m.stop(&a.lifetime)
	a.finished = m.now
	m.saveApp(a, func() {
		switch a.target {
		case appFinished:
			// The AM has unregistered; its container may still run.
			a.state = appFinishing
			if c := a.current; c == nil || c.over() {
				m.appOver(a, appFinished)
			}
		default:
			m.appOver(a, a.target)
		}
	})
}

// appOver sets the final state, whatever the cause.
func (m *Machine) appOver(a *app, s appState) {
	a.state = s
	if a.finished == 0 {
		a.finished = m.now
	}
	var in *sched.Queue
	if a.InQueue() {
		in = a.Queue()
	}
	if !a.refused {
		m.counted(a, in, endedAs(s))
	}
	delete(m.uams, a)
	m.sched.Leave(&a.App)
	delete(m.signals, a.id)
	m.logsEnd(a)
	// Nodes that ran a part of it clean up.
	for _, t := range a.attempts {
		for serial := range t.nodeSets.All(nodeset.Ran) {
			m.nodeList[serial].appEnded(a.id)
		}
		m.forgetEnds(t)
		t.live, t.nodeSets, t.avoided = pagemap.Map[container]{}, nil, nil
		t.answer, t.acks = nil, nil
	}
	a.AvoidNothing()
	m.act(AppEnded{App: a.id, State: a.state.public(0), Final: a.final})
	m.ended = append(m.ended, a)
	m.keepEnded(m.cfg.MaxCompletedApps)
}

// keepEnded deletes all ended applications except the last most of them. Their ids stay disowned: a repeat of a
// submission must not run the application again.
func (m *Machine) keepEnded(most int) {
	for len(m.ended) > most {
		a := m.ended[0]
		m.ended = m.ended[1:]
		m.forgetApp(a)
		m.issued.remember(a)
		if !a.uam() && !a.refused {
			m.disownEnded(a.id)
		}
	}
}

func (m *Machine) forgetApp(a *app) {
	delete(m.apps, a.id)
	m.forgetLogs(a)
	m.forgotten++
	if m.forgotten > len(m.appList)/2+16 {
		kept := m.appList[:0]
		for _, x := range m.appList {
			if m.apps[x.id] == x {
				kept = append(kept, x)
			}
		}
		clear(m.appList[len(kept):])
		m.appList, m.forgotten = kept, 0
	}
	if !m.cfg.Volatile {
		m.act(SaveApp{Record: AppRecord{Submission: Submission{ID: a.id}}, Deleted: true})
	}
}
