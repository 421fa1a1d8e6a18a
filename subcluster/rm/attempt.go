// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/internal/pagemap"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// attemptState is YARN's RMAppAttemptState.
type attemptState uint8

const (
	tNew attemptState = iota
	tSubmitted
	tScheduled
	tAllocatedSaving
	tAllocated
	tLaunchedUnmanagedSaving
	tLaunched
	tRunning
	tFinalSaving
	tFinishing
	tFinished
	tFailed
	tKilled
)

var attemptStateNames = [...]string{
	"NEW",
	"SUBMITTED",
	"SCHEDULED",
	"ALLOCATED_SAVING",
	"ALLOCATED",
	"LAUNCHED_UNMANAGED_SAVING",
	"LAUNCHED",
	"RUNNING",
	"FINAL_SAVING",
	"FINISHING",
	"FINISHED",
	"FAILED",
	"KILLED",
}

func (s attemptState) String() string { return attemptStateNames[s] }

func (s attemptState) public(before attemptState) creel.AttemptState {
	if s == tFinalSaving {
		s = before
	}
	return [...]creel.AttemptState{creel.AttemptNew, creel.AttemptSubmitted, creel.AttemptScheduled, creel.AttemptAllocatedSaving, creel.AttemptAllocated,
		creel.AttemptAllocatedSaving, creel.AttemptLaunched, creel.AttemptRunning, 0, creel.AttemptFinishing,
		creel.AttemptFinished, creel.AttemptFailed, creel.AttemptKilled}[s]
}

// attempt is one attempt to run an application's AM. What each of its calls
// touches comes first.
type attempt struct {
	app           *app
	state         attemptState
	before        attemptState
	target        attemptState
	registered    bool
	newsSent      bool
	inCall        bool
	recovered     bool // it ran in an earlier epoch of this ResourceManager
	responseID    int32
	id            creel.AttemptID
	heartbeat     int64
	heartbeatLink intrusive.Link[*attempt]

	live    pagemap.Map[container] // containers with this attempt's number in their id
	lastSeq int64

	// What it is to be told.
	fresh       []*container
	done        []Completed
	answer      *Answer      // the last
	unconfirmed bool         // it has not yet acknowledged the completions in answer by its next call
	acks        []ack        // of them: what its next call lets nodes forget
	nodeSets    nodeset.Sets // nodes that ran something of it, and that it has a token for
	tokenEpoch  uint32       // of Machine.tokenEpoch, when tokens were given
	updated     []Updated
	errors      []UpdateError
	previous    []creel.ContainerID // kept containers to be told of; some may have ended since
	nodes       []NodeUpdate

	scheduling        []SchedulingAsk
	growing           []*growth // increases that wait for room
	avoided           []string  // what it avoided when it was over
	final             creel.FinalStatus
	diag              string
	exit              int32
	host, url         string
	port              int32
	endedBefore       map[int64]struct{} // containers of earlier epochs that were recovered or ended
	am                creel.ContainerID
	amNode            creel.NodeID
	amHTTP            string
	started, finished int64
}

// ack is a completion its AM was told of, as far as its node must know it.
type ack struct {
	seq           int64
	attempt, node int32
}

// told gives the ends its AM was told of, which may have been lost on the
// way: it has not acknowledged them yet.
func (t *attempt) told() []Completed {
	if !t.unconfirmed || t.answer == nil {
		return nil
	}
	return t.answer.Completed
}

func (t *attempt) over() bool {
	return t.state == tFinished || t.state == tFailed || t.state == tKilled ||
		t.state == tFinalSaving && t.target != tFinished
}

// containers gives those it owns: of its own number, and those it keeps of
// earlier attempts, the oldest first. They may end on the way.
func (t *attempt) containers() iter.Seq[*container] {
	return func(yield func(*container) bool) {
		for _, of := range t.app.attempts {
			for c := range of.live.All() {
				if c.owner() == t && !yield(c) {
					return
				}
			}
		}
	}
}

// schedulable: its asks count.
func (t *attempt) schedulable() bool {
	return t.state >= tScheduled && t.state <= tRunning
}

func (m *Machine) attempt(id creel.AttemptID) *attempt {
	a := m.apps[id.Application]
	if a == nil || id.Attempt < 1 || int(id.Attempt) > len(a.attempts) {
		return nil
	}
	return a.attempts[id.Attempt-1]
}

func noAttempt(id creel.AttemptID) error {
	return &creel.Error{
		Kind: creel.ErrAttemptNotFound,
		What: "Application attempt " + id.String() + " doesn't exist in ApplicationMasterService cache.",
	}
}

// newAttempt begins the next attempt of an application.
func (m *Machine) newAttempt(a *app) {
	t := &attempt{
		id: creel.AttemptID{
			Application: a.id,
			Attempt:     int32(len(a.attempts) + 1),
		},
		app:        a,
		started:    m.now,
		responseID: -1,
		exit:       creel.ExitInvalid,
	}
	if prev := a.current; prev != nil {
		prev.avoided = a.Avoided()
		if a.sub.KeepContainers {
			m.inherit(t, prev)
		} else {
			a.AvoidNothing()
		}
	}
	a.attempts = append(a.attempts, t)
	a.current = t
	t.state = tSubmitted
	if a.sub.Unmanaged {
		t.state = tLaunchedUnmanagedSaving
		m.saveAttempt(t, func() {
			if t.state == tLaunchedUnmanagedSaving {
				m.launched(t)
				m.act(
					LaunchAM{
						Attempt:   t.id,
						User:      a.sub.User,
						Submitted: instant(a.submitted),
						Unmanaged: true,
						Context:   a.sub.Context,
					},
				)
			}
		})
	} else {
		t.state = tScheduled
	}
	m.stateChanged(a)
	m.sched.Enqueue(&a.App, t.amAsk())
}

// inherit hands the living containers of an ended attempt to the next one.
func (m *Machine) inherit(t, prev *attempt) {
	for c := range prev.containers() {
		c.more().owner = t
		if c.state != cAllocated {
			t.previous = append(t.previous, c.id())
		}
	}
	t.done = append(t.done, prev.done...)
}

// amAsk is what the attempt needs to run its AM, nil when that needs no
// container.
func (t *attempt) amAsk() *sched.AMAsk {
	s := t.app.sub
	if s.Unmanaged {
		return nil
	}
	ask := &sched.AMAsk{Priority: s.AM.Priority, Strict: s.AM.StrictLocality}
	for i := range s.AMPlaces {
		p := &s.AMPlaces[i]
		ask.Places = append(ask.Places, sched.AMPlace{Name: p.ResourceName, Strict: p.StrictLocality})
	}
	if name := s.AM.ResourceName; name != "" && name != sched.AnyPlace {
		ask.Places = append(ask.Places, sched.AMPlace{Name: name})
	}
	return ask
}

// amAllocated makes it durable that the AM has a container, then launches it.
func (m *Machine) amAllocated(t *attempt, c *container) {
	t.state = tAllocatedSaving
	t.am, t.amNode, t.amHTTP = c.id(), c.node.ID(), c.node.at.HTTPAddress
	m.saveAttempt(t, func() {
		if t.state != tAllocatedSaving {
			return
		}
		c := m.container(t.am)
		if c == nil {
			return // its end has been dealt with
		}
		t.state = tAllocated
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

// AMLaunched tells that the node started the AM.
func (m *Machine) AMLaunched(now time.Time, id creel.AttemptID) {
	m.at(now)
	if t := m.attempt(id); t != nil && t.state == tAllocated {
		m.launched(t)
	}
	m.settle()
}

func (m *Machine) launched(t *attempt) {
	t.state = tLaunched
	if t.app.launched == 0 {
		t.app.launched = m.now
	}
	m.alive(t)
}

// alive restarts the wait for a silent AM.
func (m *Machine) alive(t *attempt) {
	t.heartbeat = m.now
	m.amHeartbeats.Append(t)
}

// AMLaunchFailed tells that the node did not start the AM.
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

// amEnded: the container of the AM is gone.
func (m *Machine) amEnded(t *attempt, exit int32, diag string) {
	if t.state <= tFinishing {
		t.exit = exit
	}
	switch t.state {
	case tFinishing:
		m.attemptOver(t, tFinished)
	case tFinalSaving:
		// Its end is being recorded; if it had unregistered it needs not wait for this.
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

// FailAttempt fails the current attempt by a client's order.
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
	if !t.over() && t.state != tFinishing {
		m.endAttempt(t, tFailed, creel.FinalFailed, "Attempt failed by user.", creel.ExitInvalid)
	}
	m.settle()
	return nil
}

// endAttempt takes an attempt to a final state: durable first.
func (m *Machine) endAttempt(t *attempt, target attemptState, final creel.FinalStatus, diag string, exit int32) {
	if t.over() || t.state == tFinalSaving {
		// It ends already. An unregistration that is not durable yet wins over a kill
		// or a failure that comes after it, as in YARN.
		return
	}
	if t.state == tFinishing {
		m.attemptOver(t, tFinished)
		return
	}
	t.before, t.target, t.final = t.state, target, final
	t.state = tFinalSaving
	t.diag = join(t.diag, diag)
	if exit != creel.ExitInvalid {
		t.exit = exit
	}
	t.finished = m.now
	m.stateChanged(t.app)
	m.amHeartbeats.Remove(t)
	m.saveAttempt(t, func() { m.attemptOver(t, target) })
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// attemptOver is an attempt's final state: it leaves the scheduler, and the
// application decides what follows.
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
	m.act(AttemptEnded{Attempt: t.id})
	m.dropAsks(t)
	m.stateChanged(a)
	m.sched.Deactivate(&a.App)
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
		for len(t.fresh) > 0 { // never reached an AM
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
		// Not the AM's fault: it does not count.
	default:
		a.failures = append(a.failures, m.now)
	}
	if a.sub.Unmanaged {
		return false
	}
	most := m.cfg.MaxAttempts
	if n := a.sub.MaxAttempts; n > 0 && n < most {
		most = n
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
	return failed < most
}

// appAttemptOver is what an ended attempt means to its application.
func (m *Machine) appAttemptOver(a *app, t *attempt, s attemptState, again bool) {
	switch a.state {
	case appFinishing:
		m.appOver(a, appFinished)
	case appKilling:
		m.finishApp(a, appKilled, creel.FinalKilled, "")
	case appFinalSaving:
		// Whoever saves goes on when it is durable.
	case appAccepted, appRunning:
		switch {
		case again:
			a.state = appAccepted
			m.newAttempt(a)
		case s == tFinished:
			m.finishApp(a, appFinished, t.final, t.diag)
		case s == tKilled:
			m.finishApp(a, appKilled, creel.FinalKilled, t.diag)
		default:
			m.finishApp(
				a,
				appFailed,
				creel.FinalFailed,
				fmt.Sprintf("Application %s failed %d times due to %s. Failing the application.",
					a.id, len(a.attempts), strings.TrimSpace(t.diag)),
			)
		}
	}
}

// dropAsks forgets everything an attempt asked for.
func (m *Machine) dropAsks(t *attempt) {
	m.sched.DropAsks(&t.app.App)
	for len(t.growing) > 0 {
		m.withdraw(t.growing[0])
	}
}

func (m *Machine) saveAttempt(t *attempt, then func()) {
	m.save(func(seq uint64) Action { return SaveAttempt{Seq: seq, Record: t.record()} }, then)
}

func (t *attempt) record() AttemptRecord {
	r := AttemptRecord{
		ID:          t.id,
		AM:          t.am,
		Node:        t.amNode,
		Started:     instant(t.started),
		State:       creel.AttemptNew,
		Final:       t.final,
		Diagnostics: t.diag,
		TrackingURL: t.url,
		ExitStatus:  t.exit,
		Finished:    instant(t.finished),
	}
	switch {
	case t.state == tFinalSaving:
		r.State = t.target.public(0)
	case t.over() || t.state == tFinishing:
		r.State = t.state.public(0)
	}
	if t.state == tFinishing {
		r.State = creel.AttemptFinished
	}
	return r
}
