// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"time"
)

// Role is the part of this ResourceManager in its pair.
type Role uint8

// The package's comment has the transitions.
const (
	Standby  Role = iota
	Becoming      // it has the lease, and its services start
	Active
	Resigned // its services end
)

func (r Role) String() string {
	return [...]string{"standby", "becoming active", "active", "resigned"}[r]
}

// Config of a pair. Both have the same.
type Config struct {
	Automatic bool // a standby claims the lease without an order
	Lease     time.Duration
}

// interval is the time between two questions to the lease.
func (c Config) interval() time.Duration { return c.Lease / 5 }

// margin is the part of the term that the holder does not use, for differences in the rates of two clocks.
func (c Config) margin() time.Duration { return c.Lease / 10 }

// Kind is the kind of an action.
type Kind uint8

// These are the actions.
const (
	Look    Kind = iota // ask for the holder of the lease: Answered
	Claim               // take or renew the lease: Answered
	Begin               // start the services: Began
	End                 // end the services: Ended
	Release             // release the lease: Released
)

func (k Kind) String() string { return [...]string{"look", "claim", "begin", "end", "release"}[k] }

// Action is a task of the driver, with its reason.
type Action struct {
	Kind Kind
	Why  string
}

// Answer is the lease's answer to Look or Claim.
type Answer struct {
	Asked  time.Time // before the question was sent
	Won    bool
	Holder string        // name of another process that has the lease, "" if it is free
	Left   time.Duration // its remaining term
	Err    error         // no answer
}

// Machine is one of a pair.
type Machine struct {
	cfg    Config
	role   Role
	until  time.Time // end of the own lease, less the margin; zero: none
	next   time.Time // of the next question
	asking bool
	// releasing: a question meanwhile could be answered before the release, and win what it ends.
	releasing bool
	freed     time.Time // of the last release: earlier questions may have been answered before it
	order     time.Time // until then an administrator's order to lead is in force; zero: none
	other     string    // the holder of the lease by the last answer, if another process
	actions   []Action
}

// New makes a standby that asks for the lease at once.
func New(cfg Config, now time.Time) *Machine { return &Machine{cfg: cfg, next: now} }

// Role returns the present role.
func (m *Machine) Role() Role { return m.role }

// Leads reports whether this process may answer.
func (m *Machine) Leads(now time.Time) bool { return now.Before(m.until) }

// Until returns the time from which nothing may be answered, unless the lease is renewed before; zero: now.
func (m *Machine) Until() time.Time { return m.until }

// Leader returns the name of another process that has the lease, "" if none is known.
func (m *Machine) Leader() string { return m.other }

// Actions returns the actions since the last call.
func (m *Machine) Actions() []Action {
	a := m.actions
	m.actions = nil
	return a
}

func (m *Machine) act(k Kind, why string) { m.actions = append(m.actions, Action{k, why}) }

// Deadline is the time of the next Tick; zero: none is due before the next event.
func (m *Machine) Deadline() time.Time {
	if m.role == Resigned {
		return time.Time{}
	}
	d := m.until
	if !m.asking && !m.releasing && (d.IsZero() || m.next.Before(d)) {
		d = m.next
	}
	return d
}

// Tick handles all due times.
func (m *Machine) Tick(now time.Time) {
	if m.serving() && !m.Leads(now) {
		m.resign("the lease ended before it was renewed")
	}
	if !m.asking && !m.releasing && m.role != Resigned && !now.Before(m.next) {
		m.asking = true
		switch {
		case m.serving():
			m.act(Claim, "renewal")
		case m.wants(now):
			m.act(Claim, "this standby may lead")
		default:
			m.act(Look, "a standby redirects clients to the active one")
		}
	}
}

func (m *Machine) serving() bool { return m.role == Becoming || m.role == Active }

// wants reports whether a standby may lead.
func (m *Machine) wants(now time.Time) bool { return m.cfg.Automatic || now.Before(m.order) }

// Answered handles the lease's answer.
func (m *Machine) Answered(now time.Time, a Answer) {
	m.asking = false
	m.next = now.Add(m.cfg.interval())
	switch {
	case a.Err != nil:
		m.next = now.Add(m.cfg.interval() / 4) // Tick ends the services when the lease ends
	case a.Won:
		m.won(now, a)
	case m.serving() && a.Holder != "":
		m.other = a.Holder
		m.resign(a.Holder + " has the lease")
	default:
		m.other = a.Holder
		if m.wants(now) && a.Left < m.cfg.interval() {
			m.next = now.Add(a.Left) // at once if it is free: the order arrived after the question was sent
		}
	}
}

// won handles a lease that was taken or renewed.
func (m *Machine) won(now time.Time, a Answer) {
	m.other = ""
	until := a.Asked.Add(m.cfg.Lease - m.cfg.margin())
	switch {
	case m.role == Resigned:
		// Ended releases it.
	case !a.Asked.After(m.freed):
		m.next = now
	case m.role == Standby && !m.wants(now):
		m.release(now, "the order to lead is over")
	case !now.Before(until):
		if m.serving() {
			m.resign("the answer to a renewal came after the lease")
		}
		m.next = now
	default:
		m.until, m.next = until, a.Asked.Add(m.cfg.interval())
		if m.role == Standby {
			m.role = Becoming
			m.act(Begin, "the lease is won")
		}
	}
}

// resign ends the services. From now on nothing is answered.
func (m *Machine) resign(why string) {
	m.until = time.Time{}
	m.stepDown(why)
}

// stepDown ends the services, which may answer until they have ended, or until the lease ends.
func (m *Machine) stepDown(why string) {
	m.role, m.order = Resigned, time.Time{}
	m.act(End, why)
}

// Began handles the start of the services.
func (m *Machine) Began(now time.Time, err error) {
	switch {
	case m.role != Becoming: // it has resigned meanwhile, and End is under way
	case err != nil:
		m.resign("the services did not start: " + err.Error())
	case !m.Leads(now):
		m.resign("the services started after the lease")
	default:
		m.role, m.order = Active, time.Time{}
	}
}

// Failed handles services that ended by themselves.
func (m *Machine) Failed(err error) {
	if m.serving() {
		m.resign("the services failed: " + err.Error())
	}
}

// Ended handles the end of the services. The other one gets the time to take the lease first.
func (m *Machine) Ended(now time.Time) {
	m.role, m.until = Standby, time.Time{}
	m.next = now.Add(2 * m.cfg.interval())
	m.release(now, "the services have ended")
}

func (m *Machine) release(now time.Time, why string) {
	m.freed, m.releasing = now, true
	m.act(Release, why)
}

// Released handles the end of a release, also of one that failed.
func (m *Machine) Released(time.Time) { m.releasing = false }

// Lead is an administrator's order to become active. It is in force until a lease that a silent process has must have
// ended.
func (m *Machine) Lead(now time.Time) error {
	switch m.role {
	case Resigned:
		return fmt.Errorf("its services are ending")
	case Standby:
		m.order, m.next = now.Add(2*m.cfg.Lease), now
	}
	return nil
}

// Ordered reports whether an order to lead is in force and not carried out.
func (m *Machine) Ordered(now time.Time) bool {
	return m.role == Becoming || m.role == Standby && now.Before(m.order)
}

// StandBy is an administrator's order to become standby. The driver waits for Ended before it answers.
func (m *Machine) StandBy(time.Time) {
	m.order = time.Time{}
	if m.serving() {
		m.stepDown("an administrator's order")
	}
}
