// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// DriverConfig configures a Driver. Zero fields take the default given with them.
type DriverConfig struct {
	Session     Config
	SilentAfter time.Duration // silence of an AM after which home is asked whether it is over, 15 s
	Linger      time.Duration // time in which an ended session repeats its last answer, 1 min
	Early       int           // calls that may wait for the record; further ones are answered "busy", 64
}

func (c DriverConfig) withDefaults() DriverConfig {
	c.SilentAfter = cmp.Or(c.SilentAfter, 15*time.Second)
	c.Linger = cmp.Or(c.Linger, time.Minute)
	c.Early = cmp.Or(c.Early, 64)
	return c
}

// Driver runs a session from its record to its end, in the daemon and in the simulator. It makes the session from the
// record, and passes the view and the queue's policy to it. It asks home about a silent AM, and lets an ended session
// repeat its last answer for a while. Like the session it is pure: its caller performs the actions (see the package).
type Driver struct {
	cfg     DriverConfig
	attempt creel.AttemptID
	home    creel.SubclusterID
	rnd     *rand.Rand
	issuer  Issuer

	session *Session
	early   []FromAM  // received before the session was made
	loadAt  time.Time // when the record is read again; zero while it is being read
	view    *subcluster.View
	table   *policies.Table
	places  Places
	shown   bool // the session has seen view, table and places for queue
	queue   creel.QueuePath
	learnAt time.Time // when home may be asked for the application's label and type again

	now     time.Time
	heard   time.Time // the AM's last call, or the last question to home
	asking  bool      // home is being asked
	given   bool      // home gave the attempt up
	over    bool      // the session is done
	closeAt time.Time // if over
	acts    []Action
}

// DriverOptions of a new Driver.
type DriverOptions struct {
	Config  DriverConfig
	Attempt creel.AttemptID
	Home    creel.SubclusterID // by the AM's token
	Rand    *rand.Rand
	Issuer  Issuer // nil: members place opportunistic containers, not the session
}

// NewDriver makes the driver of an attempt. Calls of the AM wait until a Step with Opened, which has the result of
// Recording.Load.
func NewDriver(o DriverOptions) *Driver {
	return &Driver{
		cfg: o.Config.withDefaults(), attempt: o.Attempt, home: o.Home, rnd: o.Rand,
		issuer: o.Issuer,
	}
}

// Opened has the record of the application, nil if there is none, or the error of reading it.
type Opened struct {
	Record *Record
	Err    error
}

// HomeAnswered ends an AskHome: the state of the application there, or Err.
type HomeAnswered struct {
	State creel.ApplicationState
	Label Labelled // its label and type
	Err   error
}

// AnsweredBy makes HomeAnswered from a report.
func AnsweredBy(report *yarnpb.ApplicationReportProto, err error) HomeAnswered {
	return HomeAnswered{
		State: creel.ApplicationState(report.GetYarnApplicationState()), Label: LabelOf(report), Err: err,
	}
}

// Load asks for the result of Recording.Load once more, as Opened.
type Load struct{}

// AskHome asks the home for the state of the application, its label and its type.
type AskHome struct {
	Home        creel.SubclusterID
	Application creel.ApplicationID
}

// Close ends the driver. The caller drops it, and refuses unanswered calls with Err.
type Close struct{ Err error }

func (Opened) event()       {}
func (HomeAnswered) event() {}
func (Load) action()        {}
func (AskHome) action()     {}
func (Close) action()       {}

// Session returns the attempt's session, nil before Opened.
func (d *Driver) Session() *Session { return d.session }

// See sets the view, policies and places that apply from the next Step on. They are shared and never written.
func (d *Driver) See(view *subcluster.View, table *policies.Table, places Places) {
	if d.view != view || d.table != table || d.places != places {
		d.view, d.table, d.places, d.shown = view, table, places, false
	}
}

// Step takes one event and returns the actions to perform, in order. The slice is valid until the next Step. Save and
// the other actions of the session are passed on unchanged.
func (d *Driver) Step(now time.Time, e Event) []Action {
	d.now, d.acts = now, d.acts[:0]
	switch e := e.(type) {
	case Opened:
		d.open(e)
	case FromAM:
		d.fromAM(e)
	case HomeAnswered:
		d.homeAnswered(e)
	case Tick:
		d.tick()
	default:
		d.step(e)
	}
	return d.acts
}

// Wake returns the next time at which a Tick may have an effect.
func (d *Driver) Wake() time.Time {
	switch {
	case d.session == nil && !d.loadAt.IsZero():
		return d.loadAt
	case d.session == nil:
		return d.now.Add(time.Hour) // the record is being read
	case d.over:
		return d.closeAt
	}
	return d.session.Wake()
}

func (d *Driver) do(a Action) { d.acts = append(d.acts, a) }

func (d *Driver) open(o Opened) {
	if errors.Is(o.Err, creel.ErrUnavailable) {
		d.unread(o.Err)
		return
	}
	if o.Err != nil {
		d.close(o.Err)
		return
	}
	user := ""
	if r := o.Record; r != nil {
		user = r.User
		if r.Attempt == d.attempt && r.Home != "" {
			d.home = r.Home
		}
	}
	session, err := NewSession(Options{
		Config: d.cfg.Session, Attempt: d.attempt, Home: d.home, User: user, Record: o.Record,
		Rand: d.rnd, Issuer: d.issuer,
	})
	if err != nil {
		d.close(err)
		return
	}
	d.session, d.heard = session, d.now
	early := d.early
	d.early = nil
	for _, e := range early {
		d.step(e)
	}
	d.step(Tick{})
}

// unread refuses the AM's calls, because the store did not return the record, and waits to read it again. It does so
// without the AM too: the drivers of earlier attempts have stopped, and if this AM never calls again, only this driver
// can end their UAMs.
func (d *Driver) unread(err error) {
	d.loadAt = d.now.Add(d.cfg.SilentAfter)
	for _, e := range d.early {
		d.do(Reply{Call: e.Call, Err: err})
	}
	d.early = nil
}

// load asks for the record unless it is being read.
func (d *Driver) load() {
	if !d.loadAt.IsZero() {
		d.loadAt = time.Time{}
		d.do(Load{})
	}
}

// close ends the driver. Calls that waited for the record have no session, so Close refuses them.
func (d *Driver) close(err error) {
	d.early = nil
	d.do(Close{Err: err})
}

func (d *Driver) fromAM(e FromAM) {
	if d.session != nil {
		if !d.given {
			d.heard = d.now
		}
		d.step(e)
		return
	}
	if len(d.early) >= d.cfg.Early {
		d.do(Reply{Call: e.Call, Err: &creel.Error{
			Kind: creel.ErrBusy,
			What: "too many calls of " + d.attempt.String() + " are waiting",
			Try:  "try again",
		}})
		return
	}
	d.early = append(d.early, e)
	d.load()
}

// step passes the current view to the session if it changed, then the event.
func (d *Driver) step(e Event) {
	if d.session == nil {
		return
	}
	if queue := d.session.Queue(); !d.shown || queue != d.queue {
		d.shown, d.queue = true, queue
		policy, _ := d.table.For(queue)
		d.pass(d.session.Step(d.now, Saw{View: d.view, Policy: policy, Places: d.places}))
	}
	d.pass(d.session.Step(d.now, e))
	if d.session.abandoned && !d.given {
		d.given = true
		d.askHome()
	}
	if d.over {
		d.closeAt = d.now.Add(d.cfg.Linger)
	} else if d.session.wantsReport() && !d.asking && !d.now.Before(d.learnAt) {
		d.learnAt = d.now.Add(time.Second)
		d.asking = true
		d.do(AskHome{Home: d.home, Application: d.attempt.Application})
	}
}

func (d *Driver) pass(actions []Action) {
	for _, a := range actions {
		if _, done := a.(Done); done {
			d.over = true
		}
		d.do(a)
	}
}

func (d *Driver) tick() {
	if d.over {
		if !d.now.Before(d.closeAt) {
			d.close(&creel.Error{Kind: creel.ErrAttemptNotFound, What: d.attempt.String() + " is over"})
		}
		return
	}
	if d.session == nil {
		if !d.now.Before(d.loadAt) {
			d.load()
		}
		return
	}
	d.step(Tick{})
	// A silent AM may have been killed without a message to this proxy. If its home reports that the application is
	// over, its UAMs end now and not when they expire.
	if d.over || d.asking || d.now.Sub(d.heard) < d.cfg.SilentAfter {
		return
	}
	d.askHome()
}

func (d *Driver) askHome() {
	if d.asking {
		return
	}
	d.asking, d.heard = true, d.now // SilentAfter from now home is asked again
	d.do(AskHome{Home: d.home, Application: d.attempt.Application})
}

func (d *Driver) homeAnswered(e HomeAnswered) {
	d.asking = false
	if e.Label.Err = e.Err; d.session != nil && d.session.wantsReport() {
		d.step(e.Label)
	}
	if errors.Is(e.Err, creel.ErrApplicationNotFound) || e.Err == nil && e.State.Ended() {
		d.step(Ended{Why: "home reported the application over"})
	}
}

// Supersede returns the attempts whose drivers must stop because of a call of attempt a. Drivers of earlier attempts
// must stop before its record is read, since they must not write after that. If others has a later attempt, the error
// is of kind creel.ErrAttemptNotFound and the call is refused.
func Supersede(a creel.AttemptID, others []creel.AttemptID) (stop []creel.AttemptID, err error) {
	for _, o := range others {
		switch c := o.Compare(a); {
		case o.Application != a.Application:
		case c > 0:
			return nil, superseded(a, o.String()+" has called")
		case c < 0:
			stop = append(stop, o)
		}
	}
	return stop, nil
}
