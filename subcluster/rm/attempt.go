// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"iter"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/internal/pagemap"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
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
	return [...]creel.AttemptState{
		creel.AttemptNew, creel.AttemptSubmitted, creel.AttemptScheduled,
		creel.AttemptAllocatedSaving, creel.AttemptAllocated,
		creel.AttemptAllocatedSaving, creel.AttemptLaunched, creel.AttemptRunning, 0, creel.AttemptFinishing,
		creel.AttemptFinished, creel.AttemptFailed, creel.AttemptKilled,
	}[s]
}

// attempt is one attempt to run an application's AM. The fields that each of its calls touches come first.
type attempt struct {
	app           *app
	state         attemptState
	before        attemptState
	target        attemptState
	registered    bool
	newsSent      bool
	inCall        bool
	recovered     bool  // it ran in an earlier epoch of this ResourceManager
	responseID    int32 // of the last answer, and so of the next call
	answeredID    int32 // of the call that got that answer
	resumeAt      int32 // number of the next answer, 0 for the next in sequence
	id            creel.AttemptID
	heartbeat     int64
	heartbeatLink intrusive.Link[*attempt]

	live    pagemap.Map[container] // containers with this attempt's number in their id
	lastSeq int64
	lowSeq  int64 // lowest number of a container that a NodeManager placed; 0: none
	// unplaced are opportunistic containers that its proxy asks for in its stead, by its last call.
	unplaced int32

	// Pending messages to the AM.
	fresh       []*container
	done        []Completion
	answer      *Answer      // the last answer
	unconfirmed bool         // no call has acknowledged the completions in answer yet
	acks        []ack        // their acknowledgements: the next call lets nodes delete them
	nodeSets    nodeset.Sets // nodes that ran its containers, and nodes that it has a token for
	tokenEpoch  uint32       // attemptLife.tokenEpoch when the tokens were sent
	updated     []ContainerUpdate
	errors      []UpdateError
	previous    []creel.ContainerID // retained containers to send; some may have ended since
	nodes       []NodeUpdate

	placing           placings            // scheduling requests with an outstanding number
	opportunistic     *opportunistic.Asks // for opportunistic containers; nil before the first
	growing           []*growth           // increases that wait for free resources
	victims           []*container        // under notice, unordered
	avoided           []string            // nodes blacklisted at its end
	final             creel.FinalStatus
	diag              diagnostics
	exit              int32
	host, url, remote string // remote: the address from which the AM registered
	port              int32
	endedBefore       map[int64]struct{} // containers of earlier epochs that were recovered or ended
	released          map[int64]struct{} // others of earlier epochs, released before their nodes reported them
	am                creel.ContainerID
	amNode            creel.NodeID
	amHTTP            string
	started, finished int64
	stepped           int64 // when it was scheduled, its launch began, or its AM was launched; 0: before the start
}

// ack is a completion that was sent to the AM, with the data that its node needs.
type ack struct {
	seq           int64
	attempt, node int32
}

// unacknowledged returns the completions that were sent to the AM but not acknowledged: the answer may be lost.
func (t *attempt) unacknowledged() []Completion {
	if !t.unconfirmed || t.answer == nil {
		return nil
	}
	return t.answer.Completed
}

func (t *attempt) over() bool {
	return t.state == tFinished || t.state == tFailed || t.state == tKilled ||
		t.state == tFinalSaving && t.target != tFinished
}

// wantsCompletions reports whether completions of an attempt's containers are reported to it or to the next attempt.
// While the end of such an attempt is being saved, its containers already belong to the next attempt.
func (t *attempt) wantsCompletions() bool {
	return !t.over() || t.state == tFinalSaving && t.app.sub.KeepContainers
}

// containers returns an attempt's containers, oldest first: of its own number, and retained ones of earlier attempts.
// They may end during the iteration.
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

// schedulable reports whether its asks count.
func (t *attempt) schedulable() bool {
	return t.state >= tScheduled && t.state <= tRunning
}

func noAttempt(id creel.AttemptID) error {
	return refusal(creel.ErrAttemptNotFound, attemptUncached, id)
}

// start starts the next attempt of an application.
func (l *attemptLife) start(a *app) {
	m := l.m
	t := &attempt{
		id: creel.AttemptID{
			Application: a.id,
			Attempt:     int32(len(a.attempts) + 1),
		},
		app:        a,
		started:    m.now,
		responseID: -1,
		exit:       creel.ExitInvalid,
		lastSeq:    a.issued,
		lowSeq:     a.issuedLow,
	}
	if prev := a.current; prev != nil {
		prev.avoided = a.Avoided()
		if a.sub.KeepContainers {
			l.inherit(t, prev)
		} else {
			a.AvoidNothing()
		}
	}
	a.attempts = append(a.attempts, t)
	a.current = t
	t.state, t.stepped = tSubmitted, m.now
	if a.sub.Unmanaged {
		t.state = tLaunchedUnmanagedSaving
		l.save(t, func() {
			if t.state == tLaunchedUnmanagedSaving {
				l.launched(t)
				m.out.act(
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
	m.apps.stateChanged(a)
	m.sched.Line().Enqueue(&a.App, l.amAsk(t))
}

// inherit passes the live containers of an ended attempt to the next one.
func (l *attemptLife) inherit(t, prev *attempt) {
	for c := range prev.containers() {
		c.more().owner = t
		if c.extra.victim != nil {
			c.extra.victimSlot = int32(len(t.victims))
			t.victims = append(t.victims, c)
		}
		if c.state != cAllocated {
			t.previous = append(t.previous, c.id())
		}
	}
	prev.victims = nil
	t.done, prev.done = append(t.done, prev.done...), nil
}

func (l *attemptLife) save(t *attempt, then func()) {
	l.m.out.save(func(seq uint64) Action { return SaveAttempt{Seq: seq, Record: t.record()} }, then)
}

func (t *attempt) record() AttemptRecord {
	r := AttemptRecord{
		ID:          t.id,
		AM:          t.am,
		Node:        t.amNode,
		Started:     instant(t.started),
		State:       creel.AttemptNew,
		Final:       t.final,
		Diagnostics: t.diag.String(),
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
