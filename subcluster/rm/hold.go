// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// HeldApp is an application held by its home: the data that its next home needs besides the submission message.
type HeldApp struct {
	App   AppView
	Moved bool          // between queues after its submission: App.Queue is the current queue, not the requested one
	Left  time.Duration // of its lifetime; 0: no limit
}

// Hold makes an application wait, without grants, until ReleaseHold or DropHeld. It returns an error if a container
// was ever granted to the application, or if it has an unmanaged AM: a running application is never moved. The
// claim's number orders this call among others: a number at or below that of a release, or of a disowning, is
// rejected as too late. A repeat, and a call with a later claim, succeed. The caller answers once everything that the
// machine has asked to save is durable.
func (m *Machine) Hold(now time.Time, id creel.ApplicationID, claim int64, why string) (HeldApp, error) {
	m.at(now)
	a := m.apps.byID[id]
	if a == nil {
		return HeldApp{}, noApp(id)
	}
	if err := m.apps.mayHold(a, claim); err != nil {
		return HeldApp{}, err
	}
	if a.hold.Claim != claim {
		begins := a.hold.Claim == 0
		a.hold = Hold{Claim: claim, Why: why}
		if begins {
			m.apps.withhold(a)
		}
		m.apps.save(a, func() {})
		m.settle()
	}
	h := HeldApp{App: *m.newAppView(a), Moved: a.moved}
	if a.deadline > 0 {
		h.Left = max(time.Millisecond, time.Duration(a.deadline-m.now))
	}
	return h, nil
}

// mayHold returns the reason why an application cannot be held under a claim, nil if it can.
func (l *appLife) mayHold(a *app, claim int64) error {
	no := func(kind error, why, try string) error {
		return &creel.Error{Kind: kind, What: fmt.Sprintf("%s cannot be held", a.id), Why: why, Try: try}
	}
	late := max(a.released, l.m.disowned.claims[a.id])
	switch t := a.current; {
	case claim <= 0:
		return no(creel.ErrInvalidRequest, "the number of a claim is needed", "")
	case claim <= late:
		return no(creel.ErrBusy,
			fmt.Sprintf("it is asked for under claim %d, and claims up to %d are over", claim, late), "")
	case claim < a.hold.Claim:
		return no(creel.ErrBusy, fmt.Sprintf("it is held under claim %d already", a.hold.Claim), "")
	case a.hold.Claim > 0:
		return nil
	case a.sub.Unmanaged:
		return no(creel.ErrInvalidRequest, "its AM is unmanaged and runs elsewhere", "")
	case a.state.ending():
		return no(creel.ErrInvalidRequest, "it is "+a.state.String(), "")
	case a.state < appAccepted:
		return no(creel.ErrBusy, "it is being accepted", "try again in a moment")
	case t == nil || t.state != tScheduled || len(a.attempts) > 1:
		return no(creel.ErrInvalidRequest, "it has been granted a container", "running applications are not moved")
	}
	return nil
}

// withhold removes an application's waiting AM container from the scheduler.
func (l *appLife) withhold(a *app) {
	m := l.m
	m.count.held++
	m.attempts.dropAsks(a.current)
	l.stateChanged(a)
	m.sched.Line().Deactivate(&a.App)
}

// ReleaseHold ends the hold of an application under a claim up to this number. The application returns to its old
// place in line, and later holds up to that number are rejected. If its lifetime expired meanwhile, the application
// ends now. Repeats are success.
func (m *Machine) ReleaseHold(now time.Time, id creel.ApplicationID, claim int64) error {
	m.at(now)
	a := m.apps.byID[id]
	if a == nil {
		return noApp(id)
	}
	if a.state.ended() || claim <= a.released {
		return nil
	}
	a.released = claim
	if a.hold.Claim > 0 && a.hold.Claim <= claim {
		a.hold = Hold{}
		m.count.held--
		m.apps.stateChanged(a)
		m.sched.Line().Enqueue(&a.App, m.attempts.amAsk(a.current))
		if a.deadline > 0 && a.lifetime == nil {
			m.apps.armLifetime(a, a.deadline)
		}
	}
	m.apps.save(a, func() {})
	m.settle()
	return nil
}

// DropHeld removes an application held under a claim up to this number, because its new home has it, and disowns it
// up to that number. An application that is not here is disowned too; one that is not held, or held under a later
// claim, stays, which is an error. The caller answers once everything that the machine has asked to save is durable.
func (m *Machine) DropHeld(now time.Time, id creel.ApplicationID, claim int64) error {
	m.at(now)
	a := m.apps.byID[id]
	if a != nil {
		if a.hold.Claim == 0 || a.hold.Claim > claim {
			if claim <= m.disowned.claims[id] {
				return nil // a repeat, and it has returned since
			}
			return &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: fmt.Sprintf("%s is not dropped", id),
				Why:  fmt.Sprintf("it is not held under claim %d or one before", claim),
			}
		}
		m.apps.drop(a)
	}
	_, err := m.Disown(now, id, claim)
	m.settle()
	return err
}

// drop deletes a held application: this subcluster counts it as never submitted.
func (l *appLife) drop(a *app) {
	m := l.m
	m.count.held--
	l.counted(a, a.Queue(), func(c *sched.AppCounts) { c.Submitted-- })
	m.timers.stop(&a.lifetime)
	m.sched.Leave(&a.App)
	m.out.act(AttemptEnded{Attempt: a.current.id})
	l.forget(a)
}

// changing rejects a change of a held application, because its next home would not learn of it. Routers store the
// change until the move is complete.
func (a *app) changing(what string) error {
	if a.hold.Claim == 0 {
		return nil
	}
	return &creel.Error{
		Kind:       creel.ErrUnavailable,
		What:       fmt.Sprintf("%s cannot be %s now", a.id, what),
		Why:        "it is being moved to " + a.hold.Why,
		Try:        "try again in a moment",
		RetryAfter: time.Second,
	}
}

func (a *app) holdText() string { return "It is being moved to " + a.hold.Why + "." }

// withNewest returns an application's hold with the highest claim under which the application was submitted, held,
// released or disowned.
func (d *disownedTable) withNewest(a *app) Hold {
	h := a.hold
	h.Newest = max(a.sub.Claim, h.Claim, a.released)
	if upTo := d.claims[a.id]; upTo != endedClaim {
		h.Newest = max(h.Newest, upTo)
	}
	return h
}
