// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
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

// app is one application. What every decision for it touches comes first.
type app struct {
	// In its queue.
	queue                    *queue
	user                     *user
	current                  *attempt
	ratio                    float64
	accrued                  int64 // ms
	containers, pendingCount int32
	slot                     int32
	waits, activated         bool
	inQueue                  bool
	changed                  bool // since the auditor looked
	state                    appState
	before                   appState // the state that KILLING and FINAL_SAVING hide
	target                   appState // what follows FINAL_SAVING

	used, pending, seconds vec
	least                  vec // smallest of what it waits for
	attempts               []*attempt
	priority               int32
	progress               float32
	seq                    int64 // order of submission
	heldContainers         int32
	pendSlot               int32
	amSize                 *size // of the master; nil when unmanaged
	held, amUsed           vec
	stuck                  Limit // what kept it from being activated, at the last try

	id    creel.ApplicationID
	sub   *Submission
	final creel.FinalStatus
	diag  string
	rule  string
	path  creel.QueuePath // where it was sent, also when there is no such queue

	submitted, launched, finished int64 // ns
	deadline                      int64
	lifetime                      *timer
	failures                      []int64  // times of failures that count
	last                          *AppView // once it is over and somebody looked
}

// public is what users are told. An application that is on its way out still is
// what it was, until its end is durable.
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

// runnable: it may be given containers.
func (a *app) runnable() bool {
	return a.activated && a.current != nil && a.current.schedulable() && a.state != appKilling &&
		a.state != appFinalSaving
}

// Submit takes an application. One that is known already is left as it is, so
// that a client may repeat itself. A submission that placement, an ACL or its
// own contents forbid is an error and leaves no trace; one that its queue
// cannot take becomes an application that failed, as in YARN.
func (m *Machine) Submit(now time.Time, s *Submission) error {
	m.at(now)
	if a, known := m.apps[s.ID]; known {
		if a.sub.User != s.User {
			return &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "cannot submit " + s.ID.String() + " as " + s.User,
				Why:  "the application of this id belongs to " + a.sub.User,
				Try:  "ask for an id of your own with getNewApplication",
			}
		}
		return nil
	}
	if err := m.disownedError(s); err != nil {
		return err
	}
	if s.ID.IsZero() || s.User == "" {
		return invalid(
			"invalid submission of "+s.ID.String(),
			"it has no application id or no user",
			"get an id from getNewApplication",
		)
	}
	if s.Label != "" && s.Label != "*" || s.Master.Label != "" {
		return &creel.Error{
			Kind: ErrInvalidLabel,
			What: "Invalid resource request, node label not enabled but request contains label expression",
		}
	}
	path, rule, create := creel.QueuePath(s.Queue), "", m.tree.spec.Scheduler == queues.FairScheduler
	if m.cfg.Placement != nil {
		p, err := m.cfg.Placement.Place(
			queues.PlacementRequest{
				Application: s.ID,
				User:        s.User,
				Groups:      s.Groups,
				Name:        s.Name,
				Type:        s.Type,
				Tags:        s.Tags,
				Queue:       s.Queue,
			},
			m.isLeaf,
		)
		if err != nil {
			return err
		}
		create = p.Create
		if p.Queue != "" {
			path, rule = p.Queue, p.Rule
		}
	}
	if path == "" {
		path = "default"
	}
	q := m.tree.find(string(path))
	if q == nil && create {
		q = m.createQueue(path)
	}
	if q != nil {
		path = q.path
		if !m.MaySubmit(string(q.path), s.User, s.Groups) {
			return &creel.Error{
				Kind: creel.ErrNotPermitted,
				What: fmt.Sprintf("User %s does not have permission to submit %s to queue %s", s.User, s.ID, q.path),
			}
		}
	}
	largest := m.most
	if q != nil {
		largest = q.largest
	}
	a := &app{id: s.ID, sub: s, path: path, rule: rule, submitted: m.now, accrued: m.ms()}
	if !s.Unmanaged {
		v, err := m.normalize(s.Master.Resource, &largest)
		if err != nil {
			return err
		}
		a.amSize = m.size(v)
	}
	m.seq++
	a.seq = m.seq
	a.priority = m.capPriority(s.Priority)
	if !s.HasPriority && q != nil {
		a.priority = m.capPriority(q.spec.DefaultPriority)
	}
	m.apps[a.id] = a
	m.appList = append(m.appList, a)
	m.count.submitted++
	if q != nil {
		for p := q; p != nil; p = p.parent {
			p.submitted++
		}
	}
	m.setLifetime(a, q)
	a.state = appNewSaving
	m.saveApp(a, func() {
		if a.state == appNewSaving {
			a.state = appSubmitted
			m.accept(a)
		}
	})
	m.settle()
	return nil
}

func (m *Machine) isLeaf(p creel.QueuePath) bool {
	q := m.tree.byPath[p]
	return q != nil && q.leaf != nil && !q.removed
}

// capPriority gives the priority that an application gets for the one it asks
// for. FairScheduler has no priorities of applications: all are 0.
func (m *Machine) capPriority(p int32) int32 {
	if m.tree.spec.Scheduler == queues.FairScheduler {
		return 0
	}
	return max(0, min(p, m.tree.spec.MaxClusterPriority))
}

// setLifetime arms the application's time limit: what it asked for, at most
// the queue's maximum; without a wish the queue's default.
func (m *Machine) setLifetime(a *app, q *queue) {
	d := a.sub.Lifetime
	if q != nil {
		if d <= 0 {
			d = q.spec.DefaultLifetime
			if d <= 0 {
				d = q.spec.MaxLifetime
			}
		}
		if most := q.spec.MaxLifetime; most > 0 && (d <= 0 || d > most) {
			d = most
		}
	}
	if d > 0 {
		m.armLifetime(a, a.submitted+int64(d))
	}
}

func (m *Machine) armLifetime(a *app, at int64) {
	m.stop(&a.lifetime)
	a.deadline = at
	if at == 0 {
		return
	}
	a.lifetime = m.timer(at, func() {
		a.lifetime = nil
		m.kill(
			a,
			fmt.Sprintf(
				"Application killed due to exceeding its lifetime period %d milliseconds",
				(at-a.submitted)/int64(time.Millisecond),
			),
		)
	})
}

// accept brings an application into its queue, or fails it with the reason.
func (m *Machine) accept(a *app) {
	q := m.tree.find(string(a.path))
	if q != nil {
		q.sized()
	}
	var why string
	switch {
	case q == nil:
		why = fmt.Sprintf("Application %s submitted by user %s to unknown queue: %s", a.id, a.sub.User, a.path)
	case q.leaf == nil:
		why = fmt.Sprintf("Application %s submitted by user %s to non-leaf queue: %s", a.id, a.sub.User, a.path)
	case q.stateNow() != creel.QueueRunning:
		why = fmt.Sprintf("Queue %s is %s. Cannot accept submission of application: %s", q.path, q.stateNow(), a.id)
	case q.leaf.maxApps > 0 && q.leaf.apps >= q.leaf.maxApps:
		why = fmt.Sprintf(
			"Queue %s already has %d applications, cannot accept submission of application: %s",
			q.path,
			q.leaf.apps,
			a.id,
		)
	case q.leaf.maxUserApps > 0 && q.user(a.sub.User).total >= q.leaf.maxUserApps:
		why = fmt.Sprintf(
			"Queue %s already has %d applications from user %s cannot accept submission of application: %s",
			q.path,
			q.leaf.maxUserApps,
			a.sub.User,
			a.id,
		)
	}
	if why != "" {
		if q != nil && q.leaf != nil {
			q.forget(q.user(a.sub.User))
		}
		m.finishApp(a, appFailed, creel.FinalFailed, why)
		return
	}
	m.enterQueue(a, q)
	a.state = appAccepted
	m.newAttempt(a)
}

// enterQueue counts an application in a leaf.
func (m *Machine) enterQueue(a *app, q *queue) {
	a.queue, a.path, a.user, a.inQueue = q, q.path, q.user(a.sub.User), true
	a.user.total++
	if q.leaf.apps++; q.leaf.apps == 1 {
		m.tree.actives++
	}
	m.stop(&q.idleTimer)
}

func (m *Machine) leaveQueue(a *app) {
	if !a.inQueue {
		return
	}
	q := a.queue
	a.inQueue = false
	a.user.total--
	if q.leaf.apps--; q.leaf.apps == 0 {
		m.tree.actives++
	}
	q.forget(a.user)
	m.idle(q)
}

// finishApp takes an application to its end: durable first, then final.
func (m *Machine) finishApp(a *app, target appState, final creel.FinalStatus, diag string) {
	if a.state.ended() || a.state == appFinalSaving {
		return
	}
	if a.state != appKilling {
		a.before = a.state
	}
	a.state, a.target, a.final = appFinalSaving, target, final
	if diag != "" {
		a.addDiag(diag)
	}
	m.stop(&a.lifetime)
	a.finished = m.now
	m.saveApp(a, func() {
		switch a.target {
		case appFinished:
			// The master has unregistered; its container may still run.
			a.state = appFinishing
			if c := a.current; c == nil || c.over() {
				m.appOver(a, appFinished)
			}
		default:
			m.appOver(a, a.target)
		}
	})
}

// appOver is the final state, whatever led to it.
func (m *Machine) appOver(a *app, s appState) {
	a.state = s
	if a.finished == 0 {
		a.finished = m.now
	}
	m.accrue(a)
	for p := a.queue; p != nil && a.inQueue; p = p.parent {
		switch s {
		case appFinished:
			p.completed++
		case appFailed:
			p.failed++
		default:
			p.killed++
		}
	}
	m.leaveQueue(a)
	switch s {
	case appFinished:
		m.count.completed++
	case appFailed:
		m.count.failed++
	default:
		m.count.killed++
	}
	// Nodes that ran something of it clean up.
	for _, t := range a.attempts {
		for serial := range t.marks.all(ran) {
			m.nodeList[serial].appEnded(a.id)
		}
		t.live, t.marks, t.black.names = living{}, nil, nil
		t.answer, t.acks = nil, nil
	}
	m.act(AppEnded{App: a.id, State: a.state.public(0), Final: a.final})
	m.ended = append(m.ended, a)
	for len(m.ended) > m.cfg.MaxCompletedApps {
		m.forgetApp(m.ended[0])
		m.ended = m.ended[1:]
	}
}

func (m *Machine) forgetApp(a *app) {
	delete(m.apps, a.id)
	m.forgotten++
	if m.forgotten > len(m.appList)/2+16 {
		kept := m.appList[:0]
		for _, x := range m.appList {
			if m.apps[x.id] == x {
				kept = append(kept, x)
			}
		}
		clear(m.appList[len(kept):])
		m.appList, m.forgotten = kept, 0
	}
	if !m.cfg.Volatile {
		m.act(SaveApp{Record: AppRecord{Submission: Submission{ID: a.id}}, Deleted: true})
	}
}

// Kill ends an application at any state. Done reports whether it has ended.
func (m *Machine) Kill(now time.Time, id creel.ApplicationID, diagnostics string) (done bool, err error) {
	m.at(now)
	a := m.apps[id]
	if a == nil {
		return false, noApp(id)
	}
	m.kill(a, diagnostics)
	m.settle()
	return a.state.ended(), nil
}

func (m *Machine) kill(a *app, diag string) {
	switch a.state {
	case appAccepted, appRunning:
		a.before, a.state = a.state, appKilling
		a.addDiag(diag)
		m.stop(&a.lifetime)
		if t := a.current; t != nil && !t.over() {
			m.endAttempt(t, tKilled, creel.FinalKilled, diag, creel.ExitInvalid)
		} else {
			m.finishApp(a, appKilled, creel.FinalKilled, "")
		}
	case appNew, appNewSaving, appSubmitted:
		m.finishApp(a, appKilled, creel.FinalKilled, diag)
	}
}

func noApp(id creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrApplicationNotFound,
		What: "Application with id '" + id.String() + "' doesn't exist in RM. Please check that the job submission was successful.",
	}
}

func (a *app) addDiag(s string) {
	switch {
	case s == "":
	case a.diag == "":
		a.diag = s
	case len(a.diag) < 64<<10:
		a.diag += "\n" + s
	}
}

// SetPriority changes an application's place in its leaf; it gives the
// priority that holds.
func (m *Machine) SetPriority(now time.Time, id creel.ApplicationID, priority int32) (int32, error) {
	m.at(now)
	a := m.apps[id]
	if a == nil {
		return 0, noApp(id)
	}
	if a.state.ended() || a.state == appFinalSaving || a.state == appKilling {
		return a.priority, nil
	}
	a.priority = m.capPriority(priority)
	if a.inQueue {
		if a.slot != 0 {
			a.user.apps.fix(a)
			a.queue.users.fix(a.user)
		}
		if a.pendSlot != 0 {
			a.user.pending.fix(a)
			a.queue.leaf.pending.fix(a.user)
		}
	}
	m.saveApp(a, func() {})
	m.settle()
	return a.priority, nil
}

// SetLifetime changes when an application is killed; the zero time is never.
// The queue's maximum still holds.
func (m *Machine) SetLifetime(now time.Time, id creel.ApplicationID, deadline time.Time) error {
	m.at(now)
	a := m.apps[id]
	if a == nil {
		return noApp(id)
	}
	if a.state.ended() || a.state == appFinalSaving || a.state == appKilling || a.state == appFinishing {
		return invalid("cannot change the timeout of "+id.String(), "it is in state "+a.state.String(), "")
	}
	at := int64(0)
	if !deadline.IsZero() {
		if at = deadline.UnixNano(); at <= m.now {
			return invalid("Expire time is not valid", "it is in the past", "give a later time")
		}
	}
	if a.queue != nil && a.queue.spec.MaxLifetime > 0 {
		if most := a.submitted + int64(a.queue.spec.MaxLifetime); at == 0 || at > most {
			at = most
		}
	}
	m.armLifetime(a, at)
	m.saveApp(a, func() {})
	m.settle()
	return nil
}

// saveApp makes the application's record durable, then goes on.
func (m *Machine) saveApp(a *app, then func()) {
	m.save(func(seq uint64) Action { return SaveApp{Seq: seq, Record: a.record()} }, then)
}

func (a *app) record() AppRecord {
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
	}
	r.Submission.Priority, r.Submission.HasPriority = a.priority, true
	if a.state == appFinalSaving {
		r.State = a.target.public(0)
	} else if a.state.ended() {
		r.State = a.state.public(0)
	}
	for _, t := range a.attempts {
		r.Attempts = append(r.Attempts, t.record())
	}
	return r
}
