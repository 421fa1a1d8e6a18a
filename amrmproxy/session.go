// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
)

// phase is the AM's progress.
type phase int

const (
	phaseNew         phase = iota // not registered with this proxy
	phaseRegistering              // its registration is under way
	phaseRunning
	phaseFinishing // it has finished; home may not have confirmed that yet
	phaseOver      // only the end of UAMs is left
	phaseDone
)

// Session is the state machine of one attempt. See the package for the duties of its driver. It is not safe for
// concurrent use.
type Session struct {
	cfg     Config
	attempt creel.AttemptID
	rnd     *rand.Rand

	now    time.Time
	ticked time.Time // time of the last Tick
	acts   actions

	phase  phase
	am     conversation
	ledger ledger
	placer placer
	record recorder
	links

	inherited bool // the AM was finishing with the earlier proxy, and home may not have received the finish
	abandoned bool // home gave up the attempt; the application may have another one
	blind     bool // finishing; only home knows whether the AM had registered

}

// Options are the parameters of a new session.
type Options struct {
	Config  Config
	Attempt creel.AttemptID
	Home    creel.SubclusterID
	User    string // the application's owner, for UAMs
	// Record is the application's record in the store, nil if there is none. It is of this attempt after a restart of
	// the proxy, and of an earlier attempt after a restart of the AM. Its UAMs are attached again.
	Record *Record
	Rand   *rand.Rand
}

// NewSession makes the session of an attempt that the proxy has not seen.
func NewSession(o Options) (*Session, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.Home == "" || o.Attempt.IsZero() || o.Rand == nil {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "no session",
			Why:  "attempt, home or random source is missing",
		}
	}
	s := &Session{
		cfg: o.Config, attempt: o.Attempt, rnd: o.Rand,
		record: recorder{Record: Record{Attempt: o.Attempt, Home: o.Home, User: o.User}},
	}
	s.am = conversation{
		cfg: &s.cfg, attempt: o.Attempt, acts: &s.acts, out: &yarnpb.AllocateResponseProto{},
	}
	s.ledger = ledger{cfg: &s.cfg, links: &s.links, held: newContainers(), blacklist: map[string]bool{}}
	s.placer = placer{cfg: &s.cfg, links: &s.links, ledger: &s.ledger, rnd: o.Rand}
	s.home = s.member(o.Home)
	s.home.home = true
	if r := o.Record; r != nil {
		s.restore(r)
	}
	return s, nil
}

// restore continues from the record of an earlier proxy, or of an earlier attempt.
func (s *Session) restore(r *Record) {
	if s.ledger.restored = s.record.inherits(r); s.ledger.restored {
		s.home.memoryOnly = comparesMemoryOnly(r.Answer)
	}
	s.tellRecorded(r.Completions)
	for i := range s.record.UAMs {
		t := &s.record.UAMs[i]
		m := s.member(t.Member)
		if m.home {
			continue
		}
		t.Inherited = t.Inherited || !s.ledger.restored
		m.attach(t, s.record.gen)
	}
	if s.record.Ending {
		s.end("it was finishing when its proxy stopped", nil)
		s.inherited = s.ledger.restored
	}
}

// Attempt that the session is of.
func (s *Session) Attempt() creel.AttemptID { return s.attempt }

// Queue of the application as home named it, "" before.
func (s *Session) Queue() creel.QueuePath { return s.record.Queue }

// Reasons of the last split of each group of asks that still wants something.
func (s *Session) Reasons() []policies.Reason {
	var out []policies.Reason
	for _, g := range s.ledger.groups {
		if g.need == 0 {
			continue
		}
		r := g.reason
		r.Candidates = slices.Clone(r.Candidates)
		for i := range r.Candidates {
			c := &r.Candidates[i]
			if m := s.member(c.Member); m.state == linkFailed && c.Excluded != "" {
				c.Excluded = m.out
			}
		}
		out = append(out, r)
	}
	return out
}

// Asked returns the number of containers that a member is asked for by the session's state. settled reports whether
// the member must agree: no call to it is under way, and nothing waits to be sent. The simulator compares the number
// with the member.
func (s *Session) Asked(id creel.SubclusterID) (n int64, settled bool) {
	i, ok := s.find(id)
	if !ok {
		return 0, false
	}
	m := s.members[i]
	settled = s.phase == phaseRunning && m.state == linkUp && m.call.state == callNone
	return s.ledger.outstanding(m), settled && s.ledger.settled(m)
}

// TakeWaits returns the waiting times of the containers granted since the last call of TakeWaits; false if there were
// none.
func (s *Session) TakeWaits() (waitstats.Histogram, bool) {
	return s.ledger.takeWaits()
}

// Step takes one event and returns the actions to perform, in order. The slice is valid until the next Step.
func (s *Session) Step(now time.Time, e Event) []Action {
	s.now, s.acts = now, s.acts[:0]
	if s.phase == phaseDone {
		if c, ok := e.(FromAM); ok && c.Finish != nil && s.am.finished != nil {
			s.acts.do(Reply{Call: c.Call, Finish: s.am.finished}) // the first answer was lost
		} else if ok {
			s.am.refuse(c.Call, s.am.over())
		}
		return s.acts
	}
	switch e := e.(type) {
	case FromAM:
		if s.abandoned {
			s.am.refuse(e.Call, s.am.over())
			break
		}
		s.am.heard = now
		switch {
		case e.Register != nil:
			s.onRegister(e.Call, e.Register)
		case e.Allocate != nil:
			s.onAllocate(e.Call, e.Allocate)
		case e.Finish != nil:
			s.onFinish(e.Call, e.Finish)
		}
	case Answered:
		s.onAnswered(e)
	case Numbered:
		s.onNumbered(e)
	case Launched:
		s.onLaunched(e)
	case LaunchFailed:
		s.onLaunchFailed(e)
	case Dropped:
		s.onDropped(e)
	case Saved:
		s.record.saved(e.Number)
	case SaveFailed:
		s.onSaveFailed(e)
	case Saw:
		if s.placer.see(e) {
			s.record.changed() // the store is without this session's record
		}
	case Labelled:
		s.onLabelled(e)
	case Ended:
		s.onEnded(e.Why)
	case Tick:
		s.onTick()
	}
	s.settle()
	return s.acts
}

// settle makes all progress that is possible now.
func (s *Session) settle() {
	if s.phase == phaseDone {
		return
	}
	s.placer.reopen(s.now)
	s.ledger.changeAnew()
	s.place(s.placer.placeNew(s.now, s.record.Queue))
	s.giveBack()
	s.save()
	for _, m := range s.members {
		s.advance(m)
	}
	s.save()
	s.answerAM()
	s.save()
	s.close()
}

// place splits asks over the members while the AM is alive.
func (s *Session) place(splits iter.Seq[placing]) {
	if !s.asks() {
		return
	}
	for p := range splits {
		if p.refusal != nil {
			s.am.refuseWaiting(p.refusal)
		}
		for _, m := range p.wanted {
			s.plan(m)
		}
	}
}

// save requests a save of the record if it has changed and no save is under way.
func (s *Session) save() {
	at, due := s.record.saveDue()
	if s.phase == phaseNew || s.blind || !due || s.now.Before(at) {
		return
	}
	s.acts.do(s.record.save())
}

func (s *Session) onSaveFailed(e SaveFailed) {
	if !s.record.failed(e.Number, s.now.Add(s.cfg.Retry)) {
		return
	}
	if isStale(e.Err) {
		// A later attempt or another proxy serves the application now.
		s.am.endErr = &creel.Error{
			Kind: creel.ErrAttemptNotFound,
			What: s.attempt.String() + " is superseded",
			Why:  e.Err.Error(),
			Try:  "this AM should stop",
		}
		s.am.refuseAll(s.am.endErr)
		s.phase = phaseDone
		s.acts.do(Done{Why: "superseded"})
	}
}

// onRegister starts, repeats or refuses a registration.
func (s *Session) onRegister(call uint64, req *yarnpb.RegisterApplicationMasterRequestProto) {
	switch s.phase {
	case phaseNew:
		s.phase = phaseRegistering
		s.am.register(call, s.now)
		if s.ledger.restored && s.record.Answer != nil {
			// Home still has the registration and would refuse a second one.
			s.am.answer = s.record.Answer
			for _, c := range s.am.answer.ContainersFromPreviousAttempts {
				s.ledger.learn(s.home, c.GetId())
			}
			s.home.state, s.home.responseID, s.home.gen = linkUp, unknownID, s.record.gen
		} else {
			s.home.state = linkRegistering
			s.home.gen = 0
		}
		s.record.Register = req
	case phaseRegistering:
		if !proto.Equal(req, s.record.Register) {
			s.am.refuse(call, invalid("another registration of this attempt is under way", "wait for its answer"))
			return
		}
		s.am.registers = append(s.am.registers, call)
	case phaseRunning:
		if !proto.Equal(req, s.record.Register) {
			s.am.refuse(
				call,
				invalid("Application Master is already registered : "+s.attempt.Application.String(), "register once"),
			)
			return
		}
		// The answer was lost, so it is repeated. Response ids are still at 0, unless this call is late and the AM
		// already allocates.
		s.acts.do(Reply{Call: call, Register: s.am.told})
	default:
		s.am.refuse(call, s.am.over())
	}
}

// onAllocate starts, repeats or refuses a heartbeat by its response id.
func (s *Session) onAllocate(call uint64, req *yarnpb.AllocateRequestProto) {
	switch s.phase {
	case phaseNew, phaseRegistering:
		s.am.refuse(
			call,
			&creel.Error{
				Kind: creel.ErrNotRegistered,
				What: "Application Master is not registered for known application: " + s.attempt.Application.String(),
				Why:  "this proxy has no registration of it",
				Try:  "Let AM re-register",
			},
		)
		return
	case phaseRunning:
	default:
		s.am.refuse(call, s.am.over())
		return
	}
	id := req.GetResponseId()
	if !s.am.heartbeat(call, id) {
		return
	}
	s.heardAnswer()
	// If home's last answer came too late for the last heartbeat, it serves for this heartbeat, and home is not
	// called.
	s.am.begin(call, id, s.now, s.home.delivery == toDeliver)
	s.ledger.take(req, s.am.out, s.now)
	s.am.take(req)
	for _, m := range s.members {
		m.called = true
	}
}

// heardAnswer records that the AM has received the last answer.
func (s *Session) heardAnswer() {
	for _, m := range s.members {
		if m.heard() {
			s.recordUAM(m)
		}
	}
	s.record.heard()
}

// onFinish finishes the attempt at home and every UAM at once.
func (s *Session) onFinish(call uint64, req *yarnpb.FinishApplicationMasterRequestProto) {
	switch s.phase {
	case phaseNew:
		// Without a record the AM may have finished with the earlier proxy. Home decides.
		s.blind = !s.ledger.restored || s.record.Answer == nil
		s.home.state, s.home.responseID = linkUp, unknownID
	case phaseRegistering:
		s.am.refuse(
			call,
			&creel.Error{
				Kind: creel.ErrNotRegistered,
				What: "the registration is still under way",
				Try:  "wait for its answer",
			},
		)
		return
	case phaseRunning, phaseFinishing:
	case phaseOver:
		if s.inherited && s.am.finished == nil {
			// The earlier proxy died while the AM finished. Home may not have received the finish. Then it would
			// start another attempt of a finished application.
			s.inherited = false
			s.home.state, s.home.responseID = linkUp, unknownID
			break
		}
		fallthrough
	default:
		s.am.repeatFinish(call)
		return
	}
	s.am.startFinish(call, req, s.now)
	s.home.called = true
	if s.phase == phaseFinishing {
		return
	}
	s.home.abandonCall()
	s.phase, s.am.why = phaseFinishing, "the AM has finished"
	if !s.blind {
		s.finishUAMs()
	}
}

// finishUAMs finishes every UAM, as the AM has finished.
func (s *Session) finishUAMs() {
	s.record.end()
	s.am.refuseWaiting(s.am.over())
	s.endUAMs(linkEnding)
}

// unblind undoes a blind finish that home did not accept.
func (s *Session) unblind(err error) {
	s.am.refuseFinishes(err)
	s.blind, s.phase = false, phaseNew
	s.home.state = linkNone
	s.home.call.drop()
}

// endUAMs ends every UAM: by a finish where the member can receive it, by a kill otherwise.
func (s *Session) endUAMs(how linkState) {
	for _, m := range s.members {
		if m.home || !m.inUse() || m.state >= linkEnding {
			continue
		}
		m.end(how == linkEnding, s.record.isUnsaved(m.gen), s.record.gen)
	}
}

// onEnded ends the session: the application is over at its home.
func (s *Session) onEnded(why string) {
	if s.phase >= phaseOver && !s.inherited {
		return
	}
	// A finish of an ended application succeeds: home received it before, and the answer was lost.
	s.am.finished = &yarnpb.FinishApplicationMasterResponseProto{IsUnregistered: proto.Bool(true)}
	if s.inherited {
		s.inherited = false
		return
	}
	s.am.answerFinish()
	s.end(why, s.am.unknown(why, "this AM should stop"))
}

// abandon handles an attempt that home has given up while its AM still runs, for example because its node was lost.
// The AM receives the error. Its UAMs stay for the application's next attempt, like the UAMs of a silent AM: a member
// that accepts an id only once could not start new ones. The driver asks home whether the application is over.
func (s *Session) abandon(why string, tell error) {
	uams := slices.ContainsFunc(s.members, func(m *link) bool { return !m.home && m.inUse() })
	if s.phase != phaseRunning || !uams {
		s.end(why, tell)
		return
	}
	s.abandoned, s.am.endErr, s.am.why = true, tell, why
	s.am.refuseAll(s.am.over())
	s.home.state = linkGone
}

// end ends the session except for its UAMs, which must still end.
func (s *Session) end(why string, tell error) {
	s.am.endErr = tell
	s.phase, s.am.why, s.blind = phaseOver, why, false
	s.am.refuseAll(s.am.over())
	if !s.record.Ending {
		s.record.end()
	}
	s.home.state = linkGone
	s.endUAMs(linkDropping)
	for _, m := range s.members {
		if m.state == linkEnding {
			m.state, m.gen = linkDropping, s.record.gen
			m.abandonCall()
		}
	}
}

// close ends the session if no UAM is left.
func (s *Session) close() {
	if s.phase == phaseFinishing && s.am.finished.GetIsUnregistered() {
		s.phase = phaseOver
		s.home.state = linkGone
	}
	// Home may have restarted and may require a new registration before the finish. If this proxy also dies, the next
	// one needs the record for both, and the store never accepts a record again that was removed.
	if s.phase != phaseOver || s.inherited {
		return
	}
	for _, m := range s.members {
		if m.inUse() {
			return
		}
	}
	if !s.record.remove() {
		s.save()
		return
	}
	s.phase = phaseDone
	s.acts.do(Done{Why: s.am.why})
}

// unknownID is sent if only an earlier proxy knew the response id. It is never the current id, so the
// ResourceManager's refusal names the expected one.
const unknownID int32 = -1
