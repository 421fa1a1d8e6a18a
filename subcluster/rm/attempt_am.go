// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// amAsk returns the attempt's ask for its AM, nil if the AM needs no container.
func (l *attemptLife) amAsk(t *attempt) *sched.AMAsk {
	s := t.app.sub
	if s.Unmanaged {
		return nil
	}
	ask := &sched.AMAsk{Priority: s.AM.Priority, Strict: s.AM.StrictLocality}
	for i := range s.AMPlaces {
		p := &s.AMPlaces[i]
		ask.Places = append(ask.Places, sched.AMPlace{Name: p.ResourceName, Strict: p.StrictLocality})
	}
	ask.Label, _ = l.m.labels.ofAM(s, t.app.Queue().Path()) // checked at the submission
	t.app.amLabel = ask.Label
	if name := s.AM.ResourceName; name != "" && name != sched.AnyPlace {
		ask.Places = append(ask.Places, sched.AMPlace{Name: name})
	}
	return ask
}

// allocated makes the AM's container durable, then launches the AM.
func (l *attemptLife) allocated(t *attempt, c *container) {
	m := l.m
	t.state = tAllocatedSaving
	m.count.amAllocation.add(m.now, t.stepped)
	t.am, t.amNode, t.amHTTP = c.id(), c.node.ID(), c.node.at.HTTPAddress
	l.save(t, func() {
		if t.state != tAllocatedSaving {
			return
		}
		c := m.apps.container(t.am)
		if c == nil {
			return // its end has been handled
		}
		t.state, t.stepped = tAllocated, m.now
		if c.state == cAllocated {
			c.state = cAcquired
		}
		t.nodeSets.Add(nodeset.Ran, c.node.Serial())
		m.out.act(
			LaunchAM{
				Attempt:   t.id,
				Container: m.containers.grantOf(c),
				User:      t.app.sub.User,
				Submitted: instant(t.app.submitted),
				Context:   t.app.sub.Context,
			},
		)
	})
}

// AMLaunched records that the node started the AM.
func (m *Machine) AMLaunched(now time.Time, id creel.AttemptID) {
	m.at(now)
	if t := m.apps.attempt(id); t != nil && t.state == tAllocated {
		m.attempts.launched(t)
	}
	m.settle()
}

// AMLaunchFailed records that the node did not start the AM.
func (m *Machine) AMLaunchFailed(now time.Time, id creel.AttemptID, diagnostics string) {
	m.at(now)
	if t := m.apps.attempt(id); t != nil && (t.state == tAllocated || t.state == tLaunched) {
		m.attempts.end(
			t,
			tFailed,
			creel.FinalFailed,
			fmt.Sprintf(launchFailed, id, diagnostics),
			creel.ExitInvalid,
		)
	}
	m.settle()
}

func (l *attemptLife) launched(t *attempt) {
	m := l.m
	if t.state == tAllocated {
		m.count.amLaunch.add(m.now, t.stepped)
	}
	t.stepped = m.now
	t.state = tLaunched
	if t.app.launched == 0 {
		t.app.launched = m.now
	}
	l.alive(t)
}

// alive restarts the timeout of a silent AM.
func (l *attemptLife) alive(t *attempt) {
	t.heartbeat = l.m.now
	l.heartbeats.Append(t)
}

func (l *attemptLife) silent(t *attempt) {
	l.heartbeats.Remove(t)
	if t.state == tFinishing {
		l.over(t, tFinished)
		return
	}
	l.end(
		t,
		tFailed,
		creel.FinalFailed,
		fmt.Sprintf(amTimedOut, t.id),
		creel.ExitInvalid,
	)
}

// amEnded runs when the AM's container has ended.
func (l *attemptLife) amEnded(t *attempt, exit int32, diag string) {
	if t.state <= tFinishing {
		t.exit = exit
	}
	switch t.state {
	case tFinishing:
		l.over(t, tFinished)
	case tFinalSaving:
		// Its end is being saved; an AM that has unregistered need not wait for that.
	case tAllocatedSaving, tAllocated, tLaunched, tRunning:
		l.end(
			t,
			tFailed,
			creel.FinalFailed,
			fmt.Sprintf(amExited, t.id, exit, diag),
			exit,
		)
	}
}
