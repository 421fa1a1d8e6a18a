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
	a := m.apps.byID[id]
	if a == nil {
		return false, noApp(id)
	}
	if err := a.changing("killed"); err != nil {
		return false, err
	}
	m.apps.kill(a, diagnostics)
	m.settle()
	return a.state.ended(), nil
}

func (l *appLife) kill(a *app, diag string) {
	m := l.m
	switch a.state {
	case appAccepted, appRunning:
		a.before, a.state = a.state, appKilling
		l.stateChanged(a)
		a.addDiag(diag, m.cfg.DiagnosticsLimit)
		m.timers.stop(&a.lifetime)
		if t := a.current; t != nil && !t.over() {
			m.attempts.end(t, tKilled, creel.FinalKilled, diag, creel.ExitInvalid)
		} else {
			l.finish(a, appKilled, creel.FinalKilled, "")
		}
	case appNew, appNewSaving, appSubmitted:
		l.finish(a, appKilled, creel.FinalKilled, diag)
	}
}

// finish ends an application: first durably, then with its final state.
func (l *appLife) finish(a *app, target appState, final creel.FinalStatus, diag string) {
	m := l.m
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
	l.stateChanged(a)
	m.timers.stop(&a.lifetime)
	a.finished = m.now
	l.save(a, func() {
		switch a.target {
		case appFinished:
			// The AM has unregistered; its container may still run.
			a.state = appFinishing
			if c := a.current; c == nil || c.over() {
				l.over(a, appFinished)
			}
		default:
			l.over(a, a.target)
		}
	})
}

// over sets the final state, whatever the cause.
func (l *appLife) over(a *app, s appState) {
	m := l.m
	a.state = s
	if a.finished == 0 {
		a.finished = m.now
	}
	var in *sched.Queue
	if a.InQueue() {
		in = a.Queue()
	}
	if !a.refused {
		l.counted(a, in, endedAs(s))
	}
	delete(l.uams, a)
	m.sched.Leave(&a.App)
	delete(m.signals.waiting, a.id)
	m.logs.end(a)
	// Nodes that ran a part of it clean up.
	for _, t := range a.attempts {
		for serial := range t.nodeSets.All(nodeset.Ran) {
			m.nodes.list[serial].appEnded(a.id)
		}
		m.attempts.forgetEnds(t)
		t.live, t.nodeSets, t.avoided = pagemap.Map[container]{}, nil, nil
		t.answer, t.acks = nil, nil
	}
	a.AvoidNothing()
	m.out.act(AppEnded{App: a.id, State: a.state.public(0), Final: a.final})
	l.ended = append(l.ended, a)
	l.keepEnded(m.cfg.MaxCompletedApps)
}

// keepEnded deletes all ended applications except the last most of them. Their ids stay disowned: a repeat of a
// submission must not run the application again.
func (l *appLife) keepEnded(most int) {
	for len(l.ended) > most {
		a := l.ended[0]
		l.ended = l.ended[1:]
		l.forget(a)
		l.issued.remember(a)
		if !a.uam() && !a.refused {
			l.m.disowned.putEnded(a.id)
		}
	}
}

func (l *appLife) forget(a *app) {
	m := l.m
	delete(l.byID, a.id)
	m.logs.forget(a)
	l.forgotten++
	if l.forgotten > len(l.list)/2+16 {
		kept := l.list[:0]
		for _, x := range l.list {
			if l.byID[x.id] == x {
				kept = append(kept, x)
			}
		}
		clear(l.list[len(kept):])
		l.list, l.forgotten = kept, 0
	}
	m.out.store(SaveApp{Record: AppRecord{Submission: Submission{ID: a.id}}, Deleted: true})
}
