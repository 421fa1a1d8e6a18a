// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pagemap"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
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

// ending reports whether a kill has nothing left to do.
func (s appState) ending() bool {
	return s.ended() || s == appKilling || s == appFinalSaving || s == appFinishing
}

// app is one application. What every decision for it touches comes first.
type app struct {
	sched.App // what the scheduler knows of it

	current  *attempt
	attempts []*attempt
	state    appState
	before   appState // the state that KILLING and FINAL_SAVING hide
	target   appState // what follows FINAL_SAVING
	progress float32

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

// ofSched gives the application that the scheduler speaks of.
func ofSched(a *sched.App) *app { return a.Owner().(*app) }

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

// mayGet reports whether it may be given containers, as far as its life goes.
func (a *app) mayGet() bool {
	return a.current != nil && a.current.schedulable() && a.state != appKilling && a.state != appFinalSaving
}

// stateChanged tells the scheduler whether an application may be given
// containers. It is due after each change of the application's state or its
// current attempt's: one that is on its way out must get nothing more, also while
// its end is not durable yet.
func (m *Machine) stateChanged(a *app) { m.sched.SetOpen(&a.App, a.mayGet()) }

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
	if s.Label != "" && s.Label != "*" || s.AM.Label != "" {
		return &creel.Error{
			Kind: ErrInvalidLabel,
			What: "Invalid resource request, node label not enabled but request contains label expression",
		}
	}
	path, rule, create := creel.QueuePath(s.Queue), "", m.sched.MakesUndeclared()
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
	q := m.sched.Find(string(path))
	if q == nil && create {
		q = m.sched.CreateQueue(path)
	}
	if q != nil {
		path = q.Path()
		if !m.MaySubmit(string(path), s.User, s.Groups) {
			return &creel.Error{
				Kind: creel.ErrNotPermitted,
				What: fmt.Sprintf("User %s does not have permission to submit %s to queue %s", s.User, s.ID, path),
			}
		}
	}
	largest, priority := &m.sizes.Most, s.Priority
	if q != nil {
		largest = q.Largest()
		if !s.HasPriority {
			priority = q.Spec().DefaultPriority
		}
	}
	var am *amounts.Size
	if !s.Unmanaged {
		v, err := m.sizes.Normalize(s.AM.Resource, largest)
		if err != nil {
			return err
		}
		am = m.sizes.Of(v)
	}
	a := &app{id: s.ID, sub: s, path: path, rule: rule, submitted: m.now}
	m.sched.AddApp(&a.App, a.id, a, am, m.sched.CapPriority(priority))
	m.apps[a.id] = a
	m.appList = append(m.appList, a)
	m.count.submitted++
	for p := q; p != nil; p = p.Parent() {
		p.Ended.Submitted++
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
	return m.sched.Leaf(p) != nil
}

// setLifetime arms the application's time limit: what it asked for, at most
// the queue's maximum; without a wish the queue's default.
func (m *Machine) setLifetime(a *app, q *sched.Queue) {
	d := a.sub.Lifetime
	if q != nil {
		if d <= 0 {
			d = q.Spec().DefaultLifetime
			if d <= 0 {
				d = q.Spec().MaxLifetime
			}
		}
		if most := q.Spec().MaxLifetime; most > 0 && (d <= 0 || d > most) {
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
	q := m.sched.Find(string(a.path))
	why := fmt.Sprintf("Application %s submitted by user %s to unknown queue: %s", a.id, a.sub.User, a.path)
	if q != nil {
		why = m.sched.Refuses(q, a.id, a.sub.User)
	}
	if why != "" {
		m.finishApp(a, appFailed, creel.FinalFailed, why)
		return
	}
	m.enterQueue(a, q)
	a.state = appAccepted
	m.newAttempt(a)
}

func (m *Machine) enterQueue(a *app, q *sched.Queue) {
	a.path = q.Path()
	m.sched.Enter(&a.App, q, a.sub.User)
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
	m.stateChanged(a)
	m.stop(&a.lifetime)
	a.finished = m.now
	m.saveApp(a, func() {
		switch a.target {
		case appFinished:
			// The AM has unregistered; its container may still run.
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
	for p := a.Queue(); p != nil && a.InQueue(); p = p.Parent() {
		switch s {
		case appFinished:
			p.Ended.Completed++
		case appFailed:
			p.Ended.Failed++
		default:
			p.Ended.Killed++
		}
	}
	m.sched.Leave(&a.App)
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
		for serial := range t.nodeSets.All(nodeset.Ran) {
			m.nodeList[serial].appEnded(a.id)
		}
		t.live, t.nodeSets, t.avoided = pagemap.Map[container]{}, nil, nil
		t.answer, t.acks = nil, nil
	}
	a.AvoidNothing()
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
		m.stateChanged(a)
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
		return a.Priority(), nil
	}
	m.sched.SetPriority(&a.App, m.sched.CapPriority(priority))
	m.saveApp(a, func() {})
	m.settle()
	return a.Priority(), nil
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
	if q := a.Queue(); q != nil && q.Spec().MaxLifetime > 0 {
		if most := a.submitted + int64(q.Spec().MaxLifetime); at == 0 || at > most {
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
	r.Submission.Priority, r.Submission.HasPriority = a.Priority(), true
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
