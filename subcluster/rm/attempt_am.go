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
func (m *Machine) amAsk(t *attempt) *sched.AMAsk {
	s := t.app.sub
	if s.Unmanaged {
		return nil
	}
	ask := &sched.AMAsk{Priority: s.AM.Priority, Strict: s.AM.StrictLocality}
	for i := range s.AMPlaces {
		p := &s.AMPlaces[i]
		ask.Places = append(ask.Places, sched.AMPlace{Name: p.ResourceName, Strict: p.StrictLocality})
	}
	ask.Label, _ = m.amLabel(s, t.app.Queue().Path()) // checked at the submission
	t.app.amLabel = ask.Label
	if name := s.AM.ResourceName; name != "" && name != sched.AnyPlace {
		ask.Places = append(ask.Places, sched.AMPlace{Name: name})
	}
	return ask
}

// amAllocated makes the AM's container durable, then launches the AM.
func (m *Machine) amAllocated(t *attempt, c *container) {
	t.state = tAllocatedSaving
	m.count.amAllocation.add(m.now, t.stepped)
	t.am, t.amNode, t.amHTTP = c.id(), c.node.ID(), c.node.at.HTTPAddress
	m.saveAttempt(t, func() {
		if t.state != tAllocatedSaving {
			return
		}
		c := m.container(t.am)
		if c == nil {
			return // its end has been handled
		}
		t.state, t.stepped = tAllocated, m.now
		if c.state == cAllocated {
			c.state = cAcquired
		}
		t.nodeSets.Add(nodeset.Ran, c.node.Serial())
		m.act(
			LaunchAM{
				Attempt:   t.id,
				Container: m.grantOf(c),
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
	if t := m.attempt(id); t != nil && t.state == tAllocated {
		m.launched(t)
	}
	m.settle()
}

// AMLaunchFailed records that the node did not start the AM.
func (m *Machine) AMLaunchFailed(now time.Time, id creel.AttemptID, diagnostics string) {
	m.at(now)
	if t := m.attempt(id); t != nil && (t.state == tAllocated || t.state == tLaunched) {
		m.endAttempt(
			t,
			tFailed,
			creel.FinalFailed,
			"Error launching "+id.String()+". Got exception: "+diagnostics,
			creel.ExitInvalid,
		)
	}
	m.settle()
}

func (m *Machine) launched(t *attempt) {
	if t.state == tAllocated {
		m.count.amLaunch.add(m.now, t.stepped)
	}
	t.stepped = m.now
	t.state = tLaunched
	if t.app.launched == 0 {
		t.app.launched = m.now
	}
	m.alive(t)
}

// alive restarts the timeout of a silent AM.
func (m *Machine) alive(t *attempt) {
	t.heartbeat = m.now
	m.amHeartbeats.Append(t)
}

func (m *Machine) amSilent(t *attempt) {
	m.amHeartbeats.Remove(t)
	if t.state == tFinishing {
		m.attemptOver(t, tFinished)
		return
	}
	m.endAttempt(
		t,
		tFailed,
		creel.FinalFailed,
		fmt.Sprintf("ApplicationMaster for attempt %s timed out", t.id),
		creel.ExitInvalid,
	)
}

// amEnded runs when the AM's container has ended.
func (m *Machine) amEnded(t *attempt, exit int32, diag string) {
	if t.state <= tFinishing {
		t.exit = exit
	}
	switch t.state {
	case tFinishing:
		m.attemptOver(t, tFinished)
	case tFinalSaving:
		// Its end is being saved; an AM that has unregistered need not wait for that.
	case tAllocatedSaving, tAllocated, tLaunched, tRunning:
		m.endAttempt(
			t,
			tFailed,
			creel.FinalFailed,
			fmt.Sprintf("AM Container for %s exited with  exitCode: %d\n%s", t.id, exit, diag),
			exit,
		)
	}
}
