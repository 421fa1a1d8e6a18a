// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
)

// RegisterAM is registerApplicationMaster: it starts the conversation of an attempt. Response ids start at 0.
func (m *Machine) RegisterAM(now time.Time, r *RegisterAM) (AMRegistration, error) {
	m.at(now)
	t, err := m.apps.conversing(r.Attempt)
	if err != nil {
		return AMRegistration{}, err
	}
	a := t.app
	if len(r.Constraints) > 0 && m.cfg.Constraints == ConstraintsOff {
		return AMRegistration{}, &creel.Error{
			Kind: creel.ErrNotEnabled,
			What: constraintsUnhandled,
			Why:  "yarn.resourcemanager.placement-constraints.handler is disabled",
			Try:  "set it to scheduler or placement-processor",
		}
	}
	again := a.sub.Unmanaged && a.sub.KeepContainers
	if t.registered && !again {
		return AMRegistration{}, refusal(ErrAlreadyRegistered, amRegisteredTwice, a.id)
	}
	switch t.state {
	case tLaunched, tRunning:
	case tAllocated: // the AM was faster than its node's answer
		m.attempts.launched(t)
	default:
		return AMRegistration{}, &creel.Error{
			Kind: ErrOutOfStep,
			What: fmt.Sprintf(amNotLaunched, t.id),
			Why:  "the attempt is " + t.state.String(),
			Try:  "wait for the state LAUNCHED in its report",
		}
	}
	if t.state == tLaunched {
		m.count.amRegister.add(m.now, t.stepped)
	}
	m.attempts.alive(t)
	a.constrain(r.Constraints)
	t.host, t.port, t.url, t.remote = r.Host, r.Port, r.TrackingURL, r.Remote
	if t.responseID > 0 {
		// An AM's first call has the number 0. The answers then continue above the numbers used before this
		// registration. A late call from before it, such as a paused proxy's, thus has a number that is not used
		// again. Otherwise it would be accepted as the current call, and the true one would be ignored as its repeat.
		t.resumeAt = (t.responseID + 2) & 0x7fffffff
	}
	t.responseID = 0
	t.state = tRunning
	if a.state == appAccepted {
		a.state = appRunning
	}
	q := a.Queue()
	out := AMRegistration{
		Queue:         q.Path(),
		MaxAllocation: m.sizes.Resource(q.Largest()),
		MemoryOnly:    m.sizes.Check == 1,
	}
	if a.sub.KeepContainers {
		if t.registered {
			t.previous = t.previous[:0]
			for c := range t.containers() {
				if c.state != cAllocated && !c.am {
					t.previous = append(t.previous, c.id())
				}
			}
			t.nodeSets.DropAll(nodeset.Token) // the AM requests all of them again
			// The AM never acknowledged its last answer, so its completions and its updates are sent again.
			if t.unconfirmed && t.answer != nil {
				t.updated = append(slices.Clone(t.answer.Updated), t.updated...)
				t.errors = append(slices.Clone(t.answer.UpdateErrors), t.errors...)
			}
			t.done = append(slices.Clone(t.unacknowledged()), t.done...)
			t.unconfirmed, t.acks = false, t.acks[:0]
		}
		repeated := t.registered
		out.Previous, out.NMTokens = m.attempts.takePrevious(t, nil, nil)
		if repeated {
			// This call may be an earlier one that arrived late, whose answer may be lost. So its tokens are also
			// sent with the next grants.
			t.nodeSets.DropAll(nodeset.Token)
		}
	}
	t.registered, t.answer = true, nil
	m.settle()
	return out, nil
}

// FinishAM is finishApplicationMaster. It returns false until the end is durable; AMs ask again.
func (m *Machine) FinishAM(now time.Time, r *FinishAM) (bool, error) {
	m.at(now)
	if t := m.apps.attempt(r.Attempt); t != nil && t.app.current == t && t.app.state.ended() {
		return true, nil
	}
	t, err := m.apps.conversing(r.Attempt)
	if err != nil {
		return false, err
	}
	a := t.app
	if !t.registered {
		return false, refusal(creel.ErrNotRegistered, amUnregistersEarly, a.id)
	}
	if t.state == tRunning {
		m.attempts.alive(t)
		t.before, t.target, t.final = tRunning, tFinished, r.Status
		t.state = tFinalSaving
		t.diag.add(r.Diagnostics, m.cfg.DiagnosticsLimit)
		t.url = or(r.TrackingURL, t.url)
		t.finished = m.now
		m.apps.stateChanged(a)
		m.attempts.save(t, func() {
			if t.state == tFinalSaving {
				t.state = tFinishing
			}
			m.attempts.unregistered(t)
		})
		m.apps.finish(a, appFinished, r.Status, t.diag.String())
		m.settle()
	}
	return t.state != tFinalSaving && a.state != appFinalSaving, nil
}

// unregistered runs when the end is durable. An AM without a live container has ended; another one gets time to exit.
func (l *attemptLife) unregistered(t *attempt) {
	m := l.m
	if t.app.sub.Unmanaged || m.apps.container(t.am) == nil {
		l.over(t, tFinished)
		return
	}
	l.dropAsks(t)
	m.apps.stateChanged(t.app)
	l.alive(t)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
