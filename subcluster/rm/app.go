// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// appState is YARN's RMAppState.
type appState uint8

const (
	appNew appState = iota
	appNewSaving
	appSubmitted
	appAccepted
	appRunning
	appFinalSaving
	appFinishing
	appFinished
	appFailed
	appKilling
	appKilled
)

var appStateNames = [...]string{
	"NEW",
	"NEW_SAVING",
	"SUBMITTED",
	"ACCEPTED",
	"RUNNING",
	"FINAL_SAVING",
	"FINISHING",
	"FINISHED",
	"FAILED",
	"KILLING",
	"KILLED",
}

func (s appState) String() string { return appStateNames[s] }

func (s appState) ended() bool { return s == appFinished || s == appFailed || s == appKilled }

// ending reports whether a kill would change nothing.
func (s appState) ending() bool {
	return s.ended() || s == appKilling || s == appFinalSaving || s == appFinishing
}

// app is one application. The fields that every decision reads come first.
type app struct {
	sched.App // the scheduler's part

	current  *attempt
	attempts []*attempt
	state    appState
	before   appState // the state hidden by KILLING and FINAL_SAVING
	target   appState // the state after FINAL_SAVING
	progress float32
	refused  bool  // rejected by its queue: it counts nowhere
	issued   int64 // highest container number of an earlier UAM with this id
	// issuedLow is the lowest number that a NodeManager issued for the earlier UAM; 0: none.
	issuedLow int64

	id    creel.ApplicationID
	sub   *Submission
	final creel.FinalStatus
	diag  string
	rule  string

	unmapped bool            // it names a queue that takes only those that a mapping sends there
	path     creel.QueuePath // the queue it was submitted to, even if there is no such queue

	hold     Hold
	released int64 // holds up to this claim number have ended
	moved    bool  // by a user, to another queue

	submitted, launched, finished int64  // ns
	amLabel                       string // of the AM's ask
	// constraints are those registered for a tag; nil before the registration.
	constraints map[string]*constraints.Constraint
	deadline    int64
	lifetime    *timer
	failures    []int64  // times of failures that count
	lost        losses   // to preemption
	lastLoss    string   // the reason of the preemption, in one sentence
	logs        *appLogs // of its nodes; nil before the first node has logs
	// opportunistic is its use of opportunistic containers; nil before the first one.
	opportunistic *opportunisticUse
	last          *AppView // of an ended application, after the first query
}

// opportunisticUse is the opportunistic use of an application.
type opportunisticUse struct {
	used, overTime amounts.Vec // overTime: times ms, until accrued
	containers     int32
	lent           int32 // of containers, those on lent resources
	accrued        int64 // ms
}

// opportunisticUse returns an application's use of opportunistic containers up to now, in ms.
func (a *app) opportunisticUse(now int64) (u opportunisticUse) {
	if a.opportunistic != nil {
		u = *a.opportunistic
		u.overTime.AddTimes(&u.used, max(0, now-u.accrued))
	}
	return u
}

// attempt returns an attempt, nil if there is none.
func (l *appLife) attempt(id creel.AttemptID) *attempt {
	a := l.byID[id.Application]
	if a == nil || id.Attempt < 1 || int(id.Attempt) > len(a.attempts) {
		return nil
	}
	return a.attempts[id.Attempt-1]
}

// container returns a live container, nil if there is none.
func (l *appLife) container(id creel.ContainerID) *container {
	a := l.attempt(id.Attempt)
	if a == nil {
		return nil
	}
	return a.live.Get(id.ID)
}

// conversing finds the attempt that an AM calls for, if it is the current one and has not ended.
func (l *appLife) conversing(id creel.AttemptID) (*attempt, error) {
	a := l.byID[id.Application]
	if a == nil || a.current == nil || a.current.id.Attempt != id.Attempt || a.current.over() || a.state.ended() {
		return nil, noAttempt(id)
	}
	return a.current, nil
}

// ofSched returns the application of a scheduler's application.
func ofSched(a *sched.App) *app { return a.Owner().(*app) }

// wants reports whether an application asks for something in its queue.
func (a *app) wants() bool {
	_, n := a.Pending()
	return n > 0 && a.InQueue()
}

// public returns the state for users. An ending application keeps its previous state until its end is durable.
func (s appState) public(before appState) creel.ApplicationState {
	if s == appKilling || s == appFinalSaving {
		s = before
	}
	switch s {
	case appNew:
		return creel.AppNew
	case appNewSaving:
		return creel.AppNewSaving
	case appSubmitted:
		return creel.AppSubmitted
	case appAccepted:
		return creel.AppAccepted
	case appRunning:
		return creel.AppRunning
	case appFinishing, appFinished:
		return creel.AppFinished
	case appFailed:
		return creel.AppFailed
	}
	return creel.AppKilled
}

// losses are an application's losses to preemption.
type losses struct {
	amount, overTime amounts.Vec // of its containers; times milliseconds of their lives
	containers, ams  int32
}

func (l *losses) count(v *amounts.Vec, ms int64, am bool) {
	l.amount.Add(v)
	l.overTime.AddTimes(v, max(ms, 0))
	if am {
		l.ams++
	} else {
		l.containers++
	}
}

// mayGet reports whether its state permits new containers.
func (a *app) mayGet() bool {
	return a.current != nil && a.current.schedulable() && a.hold.Claim == 0 &&
		a.state != appKilling && a.state != appFinalSaving
}

// stateChanged sets in the scheduler whether an application may be granted containers. It must run after each change
// of the state of the application or its current attempt. An ending application must get no more grants, even before
// its end is durable.
func (l *appLife) stateChanged(a *app) { l.m.sched.SetOpen(&a.App, a.mayGet()) }

func noApp(id creel.ApplicationID) error {
	return refusal(creel.ErrApplicationNotFound, appUnknown, id)
}

// addDiag appends to an application's diagnostics while they are shorter than the limit of an attempt's diagnostics.
func (a *app) addDiag(s string, limit int) {
	switch {
	case s == "":
	case a.diag == "":
		a.diag = s
	case len(a.diag) < limit:
		a.diag += "\n" + s
	}
}

// save makes the application's record durable, then calls then.
func (l *appLife) save(a *app, then func()) {
	l.m.out.save(func(seq uint64) Action { return SaveApp{Seq: seq, Record: l.record(a)} }, then)
}

func (l *appLife) record(a *app) AppRecord {
	m := l.m
	r := AppRecord{
		Submission:  *a.sub,
		Submitted:   instant(a.submitted),
		Queue:       a.path,
		State:       creel.AppNew,
		Final:       a.final,
		Diagnostics: a.diag,
		Started:     instant(a.launched),
		Finished:    instant(a.finished),
		Lifetime:    instant(a.deadline),
		Hold:        a.hold,
		Released:    a.released,
		Moved:       a.moved,
		Signals:     slices.Clone(m.signals.waiting[a.id]),
	}
	used := m.sched.UsedOverTime(&a.App)
	opportune := a.opportunisticUse(m.ms())
	used.Add(&opportune.overTime)
	r.Usage = Usage{
		OverTime: m.sizes.Resource(&used), Lost: m.sizes.Resource(&a.lost.amount),
		LostOverTime: m.sizes.Resource(&a.lost.overTime), Containers: a.lost.containers, AMs: a.lost.ams,
	}
	r.Submission.Priority, r.Submission.HasPriority = a.Priority(), true
	if a.state == appFinalSaving || a.state == appFinishing { // of the latter, the end is durable
		r.State = a.target.public(0)
	} else if a.state.ended() {
		r.State = a.state.public(0)
	}
	for _, t := range a.attempts {
		r.Attempts = append(r.Attempts, t.record())
	}
	return r
}
