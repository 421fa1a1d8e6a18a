// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// FailAttempt fails the current attempt at a client's request.
func (m *Machine) FailAttempt(now time.Time, id creel.AttemptID) error {
	m.at(now)
	a := m.apps.byID[id.Application]
	if a == nil {
		return noApp(id.Application)
	}
	t := m.apps.attempt(id)
	if t == nil {
		return refusal(creel.ErrAttemptNotFound, attemptUnknown, id)
	}
	if err := a.changing("failed"); err != nil {
		return err
	}
	if !t.over() && t.state != tFinishing {
		m.attempts.end(t, tFailed, creel.FinalFailed, failedByUser, creel.ExitInvalid)
	}
	m.settle()
	return nil
}

// end takes an attempt to a final state: durable first.
func (l *attemptLife) end(t *attempt, target attemptState, final creel.FinalStatus, diag string, exit int32) {
	m := l.m
	if t.over() || t.state == tFinalSaving {
		// It is already ending. As in YARN, an unregistration that is not durable yet wins over a later kill or
		// failure.
		return
	}
	if t.state == tFinishing {
		l.over(t, tFinished)
		return
	}
	t.before, t.target, t.final = t.state, target, final
	t.state = tFinalSaving
	t.diag.add(diag, m.cfg.DiagnosticsLimit)
	if exit != creel.ExitInvalid {
		t.exit = exit
	}
	t.finished = m.now
	m.apps.stateChanged(t.app)
	l.heartbeats.Remove(t)
	l.save(t, func() { l.over(t, target) })
}

// over sets an attempt's final state: the attempt leaves the scheduler, and the application decides the next
// step.
func (l *attemptLife) over(t *attempt, s attemptState) {
	m := l.m
	if t.state == tFinished || t.state == tFailed || t.state == tKilled {
		return
	}
	a := t.app
	t.state = s
	if t.finished == 0 {
		t.finished = m.now
	}
	l.heartbeats.Remove(t)
	m.out.act(AttemptEnded{Attempt: t.id, Finished: s == tFinished})
	l.dropAsks(t)
	m.apps.stateChanged(a)
	m.sched.Line().Deactivate(&a.App)
	if c := m.apps.container(t.am); c != nil {
		if s != tFinished {
			m.out.act(StopAM{Attempt: t.id, Container: t.am, Node: c.node.ID()})
		}
		id, n := c.id(), c.node
		m.containers.complete(c, cKilled, creel.ExitKilledByRM, "", nil)
		m.nodes.commands.Kill(n.Serial(), id)
	}
	again := s == tFailed && l.mayRetry(t)
	if !(again && a.sub.KeepContainers) {
		l.killContainers(t)
	} else {
		for len(t.fresh) > 0 { // no AM received them
			c := t.fresh[0]
			id, n := c.id(), c.node
			m.containers.complete(c, cKilled, creel.ExitAborted, "", nil)
			m.nodes.commands.Kill(n.Serial(), id)
		}
	}
	t.fresh = nil
	l.ackAll(t)
	m.apps.attemptOver(a, t, s, again)
}

func (l *attemptLife) killContainers(t *attempt) {
	m := l.m
	for c := range t.containers() {
		id, n := c.id(), c.node
		m.containers.complete(c, cKilled, creel.ExitKilledAfterAppEnd, "", nil)
		m.nodes.commands.Kill(n.Serial(), id)
	}
}

// mayRetry counts a failed attempt and reports whether another may follow.
func (l *attemptLife) mayRetry(t *attempt) bool {
	m := l.m
	a := t.app
	if a.state == appKilling || a.state == appFinalSaving || a.state.ended() {
		return false
	}
	switch t.exit {
	case creel.ExitPreempted, creel.ExitAborted, creel.ExitDisksFailed, creel.ExitKilledByRM:
		// Not caused by the AM: it does not count.
	default:
		a.failures = append(a.failures, m.now)
	}
	if a.sub.Unmanaged {
		return false
	}
	failed := len(a.failures)
	if d := int64(a.sub.FailuresValidity); d > 0 {
		failed = 0
		for _, at := range a.failures {
			if m.now-at < d {
				failed++
			}
		}
	}
	return failed < l.most(a)
}

// attemptOver applies the end of an attempt to its application.
func (l *appLife) attemptOver(a *app, t *attempt, s attemptState, again bool) {
	switch a.state {
	case appFinishing:
		l.over(a, appFinished)
	case appKilling:
		l.finish(a, appKilled, creel.FinalKilled, "")
	case appFinalSaving:
		// An application that is saving continues when the save is durable.
	case appAccepted, appRunning:
		switch {
		case again:
			a.state = appAccepted
			l.m.attempts.start(a)
		case s == tFinished:
			l.finish(a, appFinished, t.final, t.diag.String())
		case s == tKilled:
			l.finish(a, appKilled, creel.FinalKilled, t.diag.String())
		default:
			l.finish(
				a,
				appFailed,
				creel.FinalFailed,
				fmt.Sprintf(tooManyFailures, a.id, len(a.attempts), strings.TrimSpace(t.diag.String())),
			)
		}
	}
}

// dropAsks drops all asks of an attempt.
func (l *attemptLife) dropAsks(t *attempt) {
	m := l.m
	m.sched.DropAsks(&t.app.App)
	t.opportunistic = nil
	for len(t.growing) > 0 {
		m.containers.withdraw(t.growing[0])
	}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// most is the number of attempts of an application that may fail.
func (l *attemptLife) most(a *app) int {
	m := l.m
	if n := a.sub.MaxAttempts; n > 0 {
		return min(n, cmp.Or(m.cfg.GlobalMaxAttempts, m.cfg.MaxAttempts))
	}
	return m.cfg.MaxAttempts
}
