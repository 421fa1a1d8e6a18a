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
	a := m.apps[id.Application]
	if a == nil {
		return noApp(id.Application)
	}
	t := m.attempt(id)
	if t == nil {
		return &creel.Error{
			Kind: creel.ErrAttemptNotFound,
			What: "ApplicationAttempt with id '" + id.String() + "' doesn't exist in RM.",
		}
	}
	if err := a.changing("failed"); err != nil {
		return err
	}
	if !t.over() && t.state != tFinishing {
		m.endAttempt(t, tFailed, creel.FinalFailed, "Attempt failed by user.", creel.ExitInvalid)
	}
	m.settle()
	return nil
}

// endAttempt takes an attempt to a final state: durable first.
func (m *Machine) endAttempt(t *attempt, target attemptState, final creel.FinalStatus, diag string, exit int32) {
	if t.over() || t.state == tFinalSaving {
		// It is already ending. As in YARN, an unregistration that is not durable yet wins over a later kill or
		// failure.
		return
	}
	if t.state == tFinishing {
		m.attemptOver(t, tFinished)
		return
	}
	t.before, t.target, t.final = t.state, target, final
	t.state = tFinalSaving
	t.diag.add(diag, m.cfg.DiagnosticsLimit)
	if exit != creel.ExitInvalid {
		t.exit = exit
	}
	t.finished = m.now
	m.stateChanged(t.app)
	m.amHeartbeats.Remove(t)
	m.saveAttempt(t, func() { m.attemptOver(t, target) })
}

// attemptOver sets an attempt's final state: the attempt leaves the scheduler, and the application decides the next
// step.
func (m *Machine) attemptOver(t *attempt, s attemptState) {
	if t.state == tFinished || t.state == tFailed || t.state == tKilled {
		return
	}
	a := t.app
	t.state = s
	if t.finished == 0 {
		t.finished = m.now
	}
	m.amHeartbeats.Remove(t)
	m.act(AttemptEnded{Attempt: t.id, Finished: s == tFinished})
	m.dropAsks(t)
	m.stateChanged(a)
	m.sched.Line().Deactivate(&a.App)
	if c := m.container(t.am); c != nil {
		if s != tFinished {
			m.act(StopAM{Attempt: t.id, Container: t.am, Node: c.node.ID()})
		}
		id, n := c.id(), c.node
		m.complete(c, cKilled, creel.ExitKilledByRM, "", nil)
		m.commands.Kill(n.Serial(), id)
	}
	again := s == tFailed && m.mayRetry(t)
	if !(again && a.sub.KeepContainers) {
		m.killContainers(t)
	} else {
		for len(t.fresh) > 0 { // no AM received them
			c := t.fresh[0]
			id, n := c.id(), c.node
			m.complete(c, cKilled, creel.ExitAborted, "", nil)
			m.commands.Kill(n.Serial(), id)
		}
	}
	t.fresh = nil
	m.ackAll(t)
	m.appAttemptOver(a, t, s, again)
}

func (m *Machine) killContainers(t *attempt) {
	for c := range t.containers() {
		id, n := c.id(), c.node
		m.complete(c, cKilled, creel.ExitKilledAfterAppEnd, "", nil)
		m.commands.Kill(n.Serial(), id)
	}
}

// mayRetry counts a failed attempt and reports whether another may follow.
func (m *Machine) mayRetry(t *attempt) bool {
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
	return failed < m.mostAttempts(a)
}

// appAttemptOver applies the end of an attempt to its application.
func (m *Machine) appAttemptOver(a *app, t *attempt, s attemptState, again bool) {
	switch a.state {
	case appFinishing:
		m.appOver(a, appFinished)
	case appKilling:
		m.finishApp(a, appKilled, creel.FinalKilled, "")
	case appFinalSaving:
		// An application that is saving continues when the save is durable.
	case appAccepted, appRunning:
		switch {
		case again:
			a.state = appAccepted
			m.newAttempt(a)
		case s == tFinished:
			m.finishApp(a, appFinished, t.final, t.diag.String())
		case s == tKilled:
			m.finishApp(a, appKilled, creel.FinalKilled, t.diag.String())
		default:
			m.finishApp(
				a,
				appFailed,
				creel.FinalFailed,
				fmt.Sprintf("Application %s failed %d times due to %s. Failing the application.",
					a.id, len(a.attempts), strings.TrimSpace(t.diag.String())),
			)
		}
	}
}

// dropAsks drops all asks of an attempt.
func (m *Machine) dropAsks(t *attempt) {
	m.sched.DropAsks(&t.app.App)
	t.opportunistic = nil
	for len(t.growing) > 0 {
		m.withdraw(t.growing[0])
	}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// mostAttempts is the number of attempts of an application that may fail.
func (m *Machine) mostAttempts(a *app) int {
	if n := a.sub.MaxAttempts; n > 0 {
		return min(n, cmp.Or(m.cfg.GlobalMaxAttempts, m.cfg.MaxAttempts))
	}
	return m.cfg.MaxAttempts
}
