// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

const (
	memberTime  = 10 * time.Second // bounds a call of a session to a member
	storeTime   = 5 * time.Second  // bounds a call to the store
	twinTime    = 15 * time.Second // bounds the launch of a twin
	silentAfter = 15 * time.Second // a master silent for so long has its home asked whether it is over
	linger      = time.Minute      // how long an ended session repeats its last answer
)

// proxy is an AM-RM proxy: a session for each attempt that speaks to it.
type proxy struct {
	*host
	watcher
	w        *World
	home     *cluster // beside which it stands
	sessions map[creel.AttemptID]*driver
	latest   map[creel.ApplicationID]*driver
	opened   uint64
}

func newProxy(w *World, index int) *proxy {
	p := &proxy{w: w, host: w.host(fmt.Sprintf("the proxy of sc-%d", index+1), index), home: w.clusters[index]}
	p.watcher = watcher{w: w, at: p.host}
	return p
}

func (p *proxy) start() {
	p.sessions, p.latest = map[creel.AttemptID]*driver{}, map[creel.ApplicationID]*driver{}
	p.watcher.start()
}

// The door of ApplicationMasterProtocol.

func (p *proxy) register(
	a creel.AttemptID,
	req *pb.RegisterApplicationMasterRequestProto,
	reply func(*pb.RegisterApplicationMasterResponseProto, error),
) {
	p.take(a, amrmproxy.FromAM{Register: req}, func(r amrmproxy.Reply) { reply(r.Register, r.Err) })
}

func (p *proxy) allocate(
	a creel.AttemptID,
	req *pb.AllocateRequestProto,
	reply func(*pb.AllocateResponseProto, error),
) {
	p.take(a, amrmproxy.FromAM{Allocate: req}, func(r amrmproxy.Reply) { reply(r.Allocate, r.Err) })
}

func (p *proxy) finish(
	a creel.AttemptID,
	req *pb.FinishApplicationMasterRequestProto,
	reply func(*pb.FinishApplicationMasterResponseProto, error),
) {
	p.take(a, amrmproxy.FromAM{Finish: req}, func(r amrmproxy.Reply) { reply(r.Finish, r.Err) })
}

// take hands a master's call to its session, which it makes if need be.
func (p *proxy) take(a creel.AttemptID, e amrmproxy.FromAM, reply func(amrmproxy.Reply)) {
	d := p.sessions[a]
	if d == nil {
		d = &driver{
			p:       p,
			w:       p.w,
			life:    p.life,
			attempt: a,
			home:    p.home.id,
			heard:   p.w.now,
			calls:   map[uint64]func(amrmproxy.Reply){},
		}
		if before := p.latest[a.Application]; before != nil {
			before.cancel(nil) // an earlier attempt must not write any more when we read
		}
		p.sessions[a], p.latest[a.Application] = d, d
		d.open()
	}
	d.heard = p.w.now
	d.call++
	e.Call = d.call
	d.calls[e.Call] = reply
	if d.session == nil {
		d.early = append(d.early, e)
		return
	}
	d.step(e)
}

// driver drives one session: amrmproxy/rpc's in virtual time.
type driver struct {
	p       *proxy
	w       *World
	life    int // of the proxy
	attempt creel.AttemptID
	home    creel.SubclusterID

	session *amrmproxy.Session
	early   []amrmproxy.FromAM // before there was a session
	store   spread
	calls   map[uint64]func(amrmproxy.Reply)
	call    uint64
	seen    *subcluster.View
	looked  bool
	queue   creel.QueuePath
	heard   time.Time
	wakeAt  int64
	armed   int64 // the timer that is set, ns; 0 for none
	asking  bool
	over    bool
	gone    bool // nothing comes of it any more
}

// cancel ends a driver where it is; its callers are refused.
func (d *driver) cancel(err error) {
	if d.gone {
		return
	}
	d.gone = true
	if err == nil {
		err = &creel.Error{Kind: creel.ErrUnavailable, What: "the session is stopping", Try: "try again"}
	}
	if d.p.sessions[d.attempt] == d {
		delete(d.p.sessions, d.attempt)
	}
	if d.p.latest[d.attempt.Application] == d {
		delete(d.p.latest, d.attempt.Application)
	}
	for n := uint64(1); n <= d.call; n++ {
		if reply := d.calls[n]; reply != nil {
			reply(amrmproxy.Reply{Err: err})
		}
	}
	d.calls = nil
}

// open takes up what the store has of the application and makes the session.
func (d *driver) open() {
	d.store = spread{w: d.w, at: d.p.host, attempt: d.attempt, name: "proxy-" + string(d.home)}
	d.store.load(func(known *amrmproxy.Record, err error) {
		if d.gone {
			return
		}
		if err != nil {
			d.cancel(err)
			return
		}
		user := ""
		if known != nil {
			user = known.User
			if known.Attempt == d.attempt && known.Home != "" {
				d.home = known.Home
			}
		}
		d.p.opened++
		d.session, err = amrmproxy.NewSession(
			amrmproxy.Options{Attempt: d.attempt, Home: d.home, User: user, Record: known,
				Rand: rand.New(rand.NewPCG(d.w.cfg.Seed, d.w.rnd.Uint64()))},
		)
		if err != nil {
			d.cancel(err)
			return
		}
		d.heard = d.w.now
		early := d.early
		d.early = nil
		for _, e := range early {
			d.step(e)
		}
	})
}

// step shows the session what there is to see, then the event, and sets its
// next waking.
func (d *driver) step(e amrmproxy.Event) {
	if d.gone {
		return
	}
	if d.p.view != d.seen || !d.looked || d.session.Queue() != d.queue {
		d.seen, d.looked, d.queue = d.p.view, true, d.session.Queue()
		d.perform(d.session.Step(d.w.now, amrmproxy.Saw{View: d.seen, Policy: d.p.policy(d.queue)}))
	}
	d.perform(d.session.Step(d.w.now, e))
	d.setWake()
}

func (d *driver) setWake() {
	at := d.w.now.Add(linger)
	if !d.over {
		at = d.session.Wake()
	}
	d.wakeAt = at.UnixNano()
	if d.armed == 0 || d.wakeAt < d.armed {
		d.arm(d.wakeAt)
	}
}

// arm sets the timer. One that fires before its time is only set anew: most
// are, and taking them out of the heap would cost more.
func (d *driver) arm(ns int64) {
	d.armed = max(ns, d.w.now.UnixNano())
	d.w.push(time.Unix(0, ns), d)
}

// run is the timer.
func (d *driver) run() {
	switch {
	case d.p.life != d.life || !d.p.up:
	case d.gone || d.armed != d.w.now.UnixNano():
	case d.wakeAt > d.armed:
		d.arm(d.wakeAt)
	case d.over:
		d.cancel(&creel.Error{Kind: creel.ErrAttemptNotFound, What: d.attempt.String() + " is over"})
	default:
		d.armed = 0
		d.step(amrmproxy.Tick{})
		d.askHome()
	}
}

func (d *driver) perform(actions []amrmproxy.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case amrmproxy.Reply:
			if reply := d.calls[a.Call]; reply != nil {
				delete(d.calls, a.Call)
				reply(a)
			}
		case amrmproxy.Send:
			d.send(a)
		case amrmproxy.Save:
			d.store.save(a.Record, func(err error) {
				if err != nil {
					d.w.say("spread of %s not saved: %v", d.attempt, err)
					d.step(amrmproxy.SaveFailed{Number: a.Number, Err: err})
				} else {
					d.step(amrmproxy.Saved{Number: a.Number})
				}
			})
		case amrmproxy.Launch:
			d.launch(a)
		case amrmproxy.Drop:
			d.drop(a, d.w.now, 10*time.Millisecond)
		case amrmproxy.Done:
			d.w.mark("done", int64(d.attempt.Application.ID), int64(d.attempt.Attempt))
			d.w.say("session of %s is over: %s", d.attempt, a.Why)
			d.over = true
		}
	}
}

// member that a session speaks to.
func (d *driver) member(id creel.SubclusterID) *cluster {
	for _, c := range d.w.clusters {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (d *driver) send(a amrmproxy.Send) {
	c, as := d.member(a.Member), d.attempt
	if a.Token != nil {
		var err error
		if as, err = holderOf(a.Token); err != nil {
			d.w.audit.breach("%s shows a token of nobody to %s: %v", d.attempt, a.Member, err)
			return
		}
	}
	ended := func(e amrmproxy.Answered) {
		e.Member, e.Seq = a.Member, a.Seq
		if e.Err != nil {
			d.w.say("%s to %s: %v", d.attempt, a.Member, e.Err)
		}
		d.step(e)
	}
	switch {
	case a.Register != nil:
		call(d.w, d.p.host, c.host, memberTime, func(reply func(*pb.RegisterApplicationMasterResponseProto, error)) {
			reply(c.registerMaster(as, a.Register))
		},
			func(r *pb.RegisterApplicationMasterResponseProto, err error) {
				ended(amrmproxy.Answered{Register: r, Err: err})
			})
	case a.Allocate != nil:
		call(
			d.w,
			d.p.host,
			c.host,
			memberTime,
			func(reply func(*pb.AllocateResponseProto, error)) { reply(c.allocate(as, a.Allocate)) },
			func(r *pb.AllocateResponseProto, err error) { ended(amrmproxy.Answered{Allocate: r, Err: err}) },
		)
	default:
		call(
			d.w,
			d.p.host,
			c.host,
			memberTime,
			func(reply func(*pb.FinishApplicationMasterResponseProto, error)) { reply(c.finishMaster(as, a.Finish)) },
			func(r *pb.FinishApplicationMasterResponseProto, err error) {
				ended(amrmproxy.Answered{Finish: r, Err: err})
			},
		)
	}
}

// askHome looks after a master that has fallen silent, as the daemon's driver does.
func (d *driver) askHome() {
	if d.asking || d.over || d.gone || d.w.now.Sub(d.heard) < silentAfter {
		return
	}
	d.asking = true
	d.heard = d.w.now
	home := d.member(d.home)
	d.report(home, d.attempt.Application, func(v appReport, err error) {
		d.asking = false
		if isNotFound(err) || err == nil && v.state.Ended() {
			d.step(amrmproxy.Ended{Why: "its home says that the application is over"})
		}
	})
}
