// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// Hold is why an application is not scheduled although it could be: a router moves it
// to another subcluster (docs/adr/0021-moving-waiting-applications.md).
type Hold struct {
	Claim int64  // the number of the claim under which it is held; 0: it is not
	Why   string // destination and reason: "sc-2, because sc-1 is drained"
}

// HeldApp is an application as its home holds it: the data that its next home needs besides the submission message.
type HeldApp struct {
	App   AppView
	Moved bool          // moved between queues after its submission: App.Queue is in force, not the requested one
	Left  time.Duration // of its lifetime; 0: it has no limit
}

// Hold makes an application wait, without grants, until ReleaseHold or DropHeld. It returns an error if a container
// was ever granted to the application, or if it has an unmanaged AM: a running application is never moved. The number
// of the claim orders this call among others: a number at or below that of a release, or of a disowning, comes too
// late. A repeat, and a call with a later claim, succeed. The caller answers when everything the machine has asked to
// save is durable.
func (m *Machine) Hold(now time.Time, id creel.ApplicationID, claim int64, why string) (HeldApp, error) {
	m.at(now)
	a := m.apps[id]
	if a == nil {
		return HeldApp{}, noApp(id)
	}
	if err := m.mayHold(a, claim); err != nil {
		return HeldApp{}, err
	}
	if a.hold.Claim != claim {
		begins := a.hold.Claim == 0
		a.hold = Hold{Claim: claim, Why: why}
		if begins {
			m.withhold(a)
		}
		m.saveApp(a, func() {})
		m.settle()
	}
	h := HeldApp{App: *m.newAppView(a), Moved: a.moved}
	if a.deadline > 0 {
		h.Left = max(time.Millisecond, time.Duration(a.deadline-m.now))
	}
	return h, nil
}

// mayHold returns the reason why an application cannot be held under a claim; nil if it can.
func (m *Machine) mayHold(a *app, claim int64) error {
	no := func(kind error, why, try string) error {
		return &creel.Error{Kind: kind, What: fmt.Sprintf("%s cannot be held", a.id), Why: why, Try: try}
	}
	late := max(a.released, m.disowned.claims[a.id])
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
func (m *Machine) withhold(a *app) {
	m.count.held++
	m.dropAsks(a.current)
	m.stateChanged(a)
	m.sched.Deactivate(&a.App)
}

// ReleaseHold lets an application that is held under a claim up to this number be
// scheduled again, in its old place in line, and refuses holds up to that number from
// then on. A lifetime that ended meanwhile ends it now. Repeats are success.
func (m *Machine) ReleaseHold(now time.Time, id creel.ApplicationID, claim int64) error {
	m.at(now)
	a := m.apps[id]
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
		m.stateChanged(a)
		m.sched.Enqueue(&a.App, m.amAsk(a.current))
		if a.deadline > 0 && a.lifetime == nil {
			m.armLifetime(a, a.deadline)
		}
	}
	m.saveApp(a, func() {})
	m.settle()
	return nil
}

// DropHeld takes an application out that is held under a claim up to this number, as its
// new home has it, and disowns it up to that number. One that is not here is disowned
// all the same; one that is not held, or under a later claim, stays, which is an error.
// The caller answers when everything the machine has asked to save is durable.
func (m *Machine) DropHeld(now time.Time, id creel.ApplicationID, claim int64) error {
	m.at(now)
	a := m.apps[id]
	if a != nil {
		if a.hold.Claim == 0 || a.hold.Claim > claim {
			if claim <= m.disowned.claims[id] {
				return nil // a repeat, and it came back since
			}
			return &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: fmt.Sprintf("%s is not dropped", id),
				Why:  fmt.Sprintf("it is not held under claim %d or one before", claim),
			}
		}
		m.drop(a)
	}
	_, err := m.Disown(now, id, claim)
	m.settle()
	return err
}

// drop forgets an application that is held: for this subcluster it was never here.
func (m *Machine) drop(a *app) {
	m.count.held--
	m.counted(a, a.Queue(), func(c *sched.AppCounts) { c.Submitted-- })
	m.stop(&a.lifetime)
	m.sched.Leave(&a.App)
	m.act(AttemptEnded{Attempt: a.current.id})
	m.forgetApp(a)
}

// changing refuses to change an application that is held: its next home would not know
// of it. Routers keep the order until the application has come there.
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
