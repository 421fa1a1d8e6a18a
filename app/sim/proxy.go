// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/app/sim/opportune"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/resolver"
)

// proxy is an AM-RM proxy: a session for each attempt that calls it.
type proxy struct {
	*host
	watcher
	w        *World
	home     *cluster // its subcluster
	sessions map[creel.AttemptID]*session
	attempts map[creel.ApplicationID][]creel.AttemptID // attempts with sessions
	places   *resolver.FollowerState                   // hosts of each member
	inRound  bool                                      // of reading these
	keys     opportune.Keys                            // with which it places containers
}

func newProxy(w *World, index int) *proxy {
	p := &proxy{w: w, host: w.host(fmt.Sprintf("the proxy of sc-%d", index+1), index), home: w.clusters[index]}
	p.watcher = watcher{w: w, at: p.host, saw: p.follow}
	return p
}

// wanted returns the queues of the proxy's sessions, by leaf name.
func (p *proxy) wanted() []string {
	leaves := map[string]bool{}
	for _, s := range p.sessions {
		if s.leaf != "" {
			leaves[s.leaf] = true
		}
	}
	return slices.Sorted(maps.Keys(leaves))
}

func (p *proxy) start() {
	p.sessions = map[creel.AttemptID]*session{}
	p.attempts = map[creel.ApplicationID][]creel.AttemptID{}
	p.places, p.inRound = &resolver.FollowerState{}, false
	p.queues = p.wanted
	p.keys = nil
	p.readsKeys()
	p.watcher.start()
}

// succeeded starts another process in the proxy's place while this one continues. It was presumed dead, like a
// machine that is paused or cut off from its supervisor. AMs then call the other one.
func (p *proxy) succeeded() {
	w := p.w
	next := newProxy(w, p.home.index)
	next.epoch, next.trust = p.epoch+1, p.trust
	w.mark("two proxies", p.number, next.number)
	w.audit.hostEnds(p.host)
	w.say("%s has a successor, and goes on", p.name)
	w.proxies[p.home.index], w.former = next, append(w.former, p)
	next.start()
}

// now is the proxy's time without pauses, computed like the daemon's by pauseclock.Clock.
func (p *proxy) now() time.Time { return p.w.now.Add(-p.slept) }

// ApplicationMasterProtocol, as amrmproxy/rpc serves it.

func (p *proxy) register(
	a creel.AttemptID,
	req *pb.RegisterApplicationMasterRequestProto,
	reply func(*pb.RegisterApplicationMasterResponseProto, error),
) {
	p.call(a, amrmproxy.FromAM{Register: req}, func(r amrmproxy.Reply) { reply(r.Register, r.Err) })
}

func (p *proxy) allocate(
	a creel.AttemptID,
	req *pb.AllocateRequestProto,
	reply func(*pb.AllocateResponseProto, error),
) {
	p.call(a, amrmproxy.FromAM{Allocate: req}, func(r amrmproxy.Reply) { reply(r.Allocate, r.Err) })
}

func (p *proxy) finish(
	a creel.AttemptID,
	req *pb.FinishApplicationMasterRequestProto,
	reply func(*pb.FinishApplicationMasterResponseProto, error),
) {
	p.call(a, amrmproxy.FromAM{Finish: req}, func(r amrmproxy.Reply) { reply(r.Finish, r.Err) })
}

// call passes an AM's call to its session, and makes the session if needed.
func (p *proxy) call(a creel.AttemptID, e amrmproxy.FromAM, reply func(amrmproxy.Reply)) {
	s := p.sessions[a]
	if s == nil {
		earlier, err := amrmproxy.Supersede(a, p.attempts[a.Application])
		if err != nil {
			reply(amrmproxy.Reply{Err: err})
			return
		}
		for _, other := range earlier {
			p.sessions[other].close(&creel.Error{
				Kind: creel.ErrUnavailable,
				What: "the session is stopping",
				Try:  "try again",
			})
		}
		s = newSession(p, a)
		p.sessions[a] = s
		p.attempts[a.Application] = append(p.attempts[a.Application], a)
		s.load()
	}
	s.calls++
	e.Call = s.calls
	s.replies[e.Call] = reply
	s.step(e)
}

// session carries out the actions of one attempt's driver, like amrmproxy/server.
type session struct {
	proxy     *proxy
	w         *World
	epoch     int // of the proxy
	attempt   creel.AttemptID
	driver    *amrmproxy.Driver
	leaf      string // name of its queue; "" before it is known
	recording amrmproxy.Recording

	replies map[uint64]func(amrmproxy.Reply)
	calls   uint64
	wakeAt  int64
	armed   int64 // the set timer, ns; 0 for none
	closed  bool
	told    []*pb.AllocateRequestProto // last sent to each member
}

func newSession(p *proxy, a creel.AttemptID) *session {
	var conf amrmproxy.DriverConfig
	if p.w.opportune != nil {
		conf.Session.LongQueue = p.w.opportune.LongQueue
	}
	p.w.recordings++
	return &session{
		proxy:   p,
		w:       p.w,
		epoch:   p.epoch,
		attempt: a,
		driver: amrmproxy.NewDriver(amrmproxy.DriverOptions{
			Config:  conf,
			Attempt: a,
			Home:    p.home.id,
			Rand:    rand.New(rand.NewPCG(p.w.cfg.Seed, p.w.rnd.Uint64())),
			Issuer:  p.issuer(),
		}),
		recording: amrmproxy.Recording{
			Attempt: a, Proxy: "proxy-" + string(p.home.id), Writer: fmt.Sprintf("%d/%d", p.number, p.w.recordings),
		},
		replies: map[uint64]func(amrmproxy.Reply){},
		told:    make([]*pb.AllocateRequestProto, len(p.w.clusters)),
	}
}

// former reports whether its proxy has a successor and continues.
func (s *session) former() bool { return s.proxy != s.w.proxies[s.proxy.home.index] }

// close ends a session where it is; its callers get the error.
func (s *session) close(err error) {
	if s.closed {
		return
	}
	s.closed = true
	delete(s.proxy.sessions, s.attempt)
	app := s.attempt.Application
	left := slices.DeleteFunc(s.proxy.attempts[app], func(a creel.AttemptID) bool { return a == s.attempt })
	if s.proxy.attempts[app] = left; len(left) == 0 {
		delete(s.proxy.attempts, app)
	}
	for _, n := range slices.Sorted(maps.Keys(s.replies)) {
		s.replies[n](amrmproxy.Reply{Err: err})
	}
	s.replies = nil
}

// load reads the application's record.
func (s *session) load() {
	var opened amrmproxy.Opened
	s.record(func(f *flow) { opened.Record, opened.Err = s.recording.Load(f) }, func() { s.step(opened) })
}

// step passes an event to the driver, performs the resulting actions, and sets its next timer.
func (s *session) step(e amrmproxy.Event) {
	if s.closed || s.proxy.epoch != s.epoch {
		return
	}
	s.driver.See(s.proxy.view, s.proxy.table, s.proxy.places.Table())
	s.perform(s.driver.Step(s.proxy.now(), e))
	if s.closed {
		return
	}
	s.wants()
	s.wakeAt = s.driver.Wake().Add(s.proxy.slept).UnixNano()
	if s.armed == 0 || s.wakeAt < s.armed {
		s.arm(s.wakeAt)
	}
}

// wants makes the proxy read the figures of a queue at once if no other session uses that queue, like
// amrmproxy/server. It does nothing if figures are not used.
func (s *session) wants() {
	x := s.driver.Session()
	if x == nil || x.Queue().Leaf() == s.leaf {
		return
	}
	leaf, p := x.Queue().Leaf(), s.proxy
	known := slices.Contains(p.wanted(), leaf)
	if s.leaf = leaf; !known && s.w.cfg.planned() {
		p.read(true)
	}
}

// arm sets the timer. A timer that fires too early is set again. Most do, and removing them from the heap would cost
// more.
func (s *session) arm(ns int64) {
	s.armed = max(ns, s.w.now.UnixNano())
	s.w.push(time.Unix(0, ns), s)
}

// run is called by the timer.
func (s *session) run() {
	switch {
	case s.proxy.epoch != s.epoch || !s.proxy.up:
	case s.w.asleep(s.proxy.host):
		s.arm(s.proxy.paused.UnixNano())
	case s.closed || s.armed != s.w.now.UnixNano():
	case s.wakeAt > s.armed:
		s.arm(s.wakeAt)
	default:
		s.armed = 0
		s.step(amrmproxy.Tick{})
	}
}

func (s *session) perform(actions []amrmproxy.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case amrmproxy.Reply:
			if a.Register != nil {
				s.w.audit.registered(s)
			}
			if reply := s.replies[a.Call]; reply != nil {
				delete(s.replies, a.Call)
				reply(a)
			}
		case amrmproxy.Send:
			s.send(a)
		case amrmproxy.Save:
			s.save(a)
		case amrmproxy.Launch:
			s.launch(a)
		case amrmproxy.Drop:
			s.drop(a)
		case amrmproxy.AskHome:
			s.askHome(a)
		case amrmproxy.Load:
			s.load()
		case amrmproxy.Done:
			s.w.mark("done", int64(s.attempt.Application.ID), int64(s.attempt.Attempt))
			s.w.say("session of %s is over: %s", s.attempt, a.Why)
			s.w.audit.sessionOver(s, a.Why)
		case amrmproxy.Close:
			s.close(a.Err)
		}
	}
}

func (s *session) save(a amrmproxy.Save) {
	var err error
	s.record(func(f *flow) { err = s.recording.Save(f, a.Record) }, func() {
		if err != nil {
			s.w.say("UAM record of %s not saved: %v", s.attempt, err)
			s.step(amrmproxy.SaveFailed{Number: a.Number, Err: err})
			return
		}
		s.step(amrmproxy.Saved{Number: a.Number})
	})
}

func (s *session) send(a amrmproxy.Send) {
	c, as := s.w.cluster(a.Member), s.attempt
	if a.Token != nil {
		var err error
		if as, err = c.caller(a.Token); err != nil {
			s.w.audit.breach("%s presents an unknown token to %s: %v", s.attempt, a.Member, err)
			return
		}
		if a.Register != nil {
			s.w.audit.launching(s, a.Member, "running")
		}
	}
	s.w.audit.sent(s, c, a.Allocate)
	reports(s, c, a.Placed)
	switch {
	case a.Register != nil && a.Distributed:
		sendTo(s, c, as, a, c.registerDistributed, a.Register, (*amrmproxy.Answered).TakeTerms)
	case a.Allocate != nil && a.Distributed:
		sendTo(s, c, as, a, c.allocateDistributed, a.Report(), (*amrmproxy.Answered).TakeLoaded)
	case a.Register != nil:
		sendTo(s, c, as, a, c.registerAM, a.Register,
			func(e *amrmproxy.Answered, r *pb.RegisterApplicationMasterResponseProto) { e.Register = r })
	case a.Allocate != nil:
		sendTo(s, c, as, a, c.allocate, a.Allocate,
			func(e *amrmproxy.Answered, r *pb.AllocateResponseProto) { e.Allocate = r })
	default:
		sendTo(s, c, as, a, c.finishAM, a.Finish,
			func(e *amrmproxy.Answered, r *pb.FinishApplicationMasterResponseProto) { e.Finish = r })
	}
}

// sendTo makes a session's call to a member as an attempt, and returns the answer.
func sendTo[Q, T any](
	s *session,
	c *cluster,
	as creel.AttemptID,
	a amrmproxy.Send,
	serve func(creel.AttemptID, Q, func(T, error)),
	req Q,
	set func(*amrmproxy.Answered, T),
) {
	call(s.w, s.proxy.host, c.host, memberTime, func(reply func(T, error)) {
		if err := c.holds(as); err != nil {
			var none T
			reply(none, err)
			return
		}
		serve(as, req, reply)
	}, func(r T, err error) {
		e := amrmproxy.Answered{Member: a.Member, Seq: a.Seq, Err: err}
		if err != nil {
			s.w.say("%s to %s: %v", s.attempt, a.Member, err)
		} else {
			set(&e, r)
		}
		s.step(e)
		if e.Allocate != nil {
			s.w.audit.asked(s, c, c.answers[as], e.Allocate.GetResponseId())
		}
	})
}

// readsKeys reads the members' published keys. It may use those of an earlier start until then.
func (p *proxy) readsKeys() {
	if p.w.opportune.Places() {
		p.w.on(p.host, p.w.cfg.Poll, p.readsKeys)
		p.watcher.readKeys(func(k opportune.Keys) { p.keys = k })
	}
}

// issuer is the proxy's for its sessions; nil if they place no containers.
func (p *proxy) issuer() amrmproxy.Issuer {
	if !p.w.opportune.Places() {
		return nil
	}
	return &p.keys
}
