// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

func (s *Session) onTick() {
	s.ticked = s.now
	for _, m := range s.members {
		m.retry(s.now, s.renumbers(m))
	}
	s.place(s.placer.placeWaiting(s.now, s.record.Queue))
	s.ledger.sweep(s.now)
	// Home also gives up an AM after AMExpiry, and the next attempt takes over these UAMs. So the next attempt has
	// another AMExpiry to begin. The driver asks home whether the application is over.
	if !s.am.heard.IsZero() && s.now.Sub(s.am.heard) > 2*s.cfg.AMExpiry {
		if s.phase > phaseNew && s.phase < phaseOver {
			s.end("the AM has been silent for "+s.now.Sub(s.am.heard).String(), nil)
		}
		s.inherited = false
	}
	if s.phase == phaseRegistering && s.am.late(s.now) && s.am.answer == nil {
		s.am.refuseRegisters(&creel.Error{
			Kind: creel.ErrUnavailable,
			What: "home does not answer",
			Why:  "the ResourceManager of " + string(s.home.id) + " could not be reached",
			Try:  "try again",
		})
		s.phase = phaseNew
		s.home.state = linkNone
		s.home.call.drop()
	}
	if len(s.am.finishes) > 0 && s.am.late(s.now) {
		silent := &creel.Error{Kind: creel.ErrUnavailable, What: "home does not answer", Try: "try again"}
		if s.blind {
			s.unblind(silent)
		}
		s.am.refuseFinishes(silent)
	}
}

// plan requests a UAM. The UAM is recorded first, then launched. If the member had one before and does not accept its
// id again, the member is first asked for another id.
func (s *Session) plan(m *link) {
	numbered := m.spent && s.renumbers(m)
	if m.plan(s.now, numbered); !numbered {
		s.recordUAM(m)
	}
}

func (s *Session) renumbers(m *link) bool { return m.renumbers(s.record.Type, &s.cfg) }

func (s *Session) onNumbered(e Numbered) {
	m := s.member(e.Member)
	if m.state != linkNumbering || !m.call.busy() {
		return
	}
	m.call.end()
	if e.Err != nil {
		s.uamGone(m, "no id for a UAM in "+string(m.id)+": "+e.Err.Error())
		return
	}
	m.ownID, m.state = e.ID, linkPlanned
	s.recordUAM(m)
}

// recordUAM adds a UAM to the record; the member waits until the record is durable.
func (s *Session) recordUAM(m *link) {
	m.gen = s.record.put(m.toRecord())
}

func (s *Session) onLaunched(e Launched) {
	m := s.member(e.Member)
	if m.state != linkLaunching {
		return
	}
	if e.Type != "" {
		s.record.Type = e.Type
	}
	m.launched(e.Attempt, e.Token)
	if e.User != "" && e.User != s.record.User {
		s.record.User = e.User
		s.record.changed()
	}
	if s.phase >= phaseFinishing {
		m.state, m.gen = linkDropping, s.record.gen
		return
	}
	s.recordUAM(m)
}

func (s *Session) onLaunchFailed(e LaunchFailed) {
	m := s.member(e.Member)
	if m.state != linkLaunching {
		return
	}
	if errors.Is(e.Err, ErrSpent) && s.phase < phaseFinishing {
		m.spent = true
		s.uamGone(m, e.Err.Error())
		return
	}
	if m.launchFailed(s.now, &s.cfg, s.phase >= phaseFinishing) {
		s.dropUAM(m)
	}
}

func (s *Session) onDropped(e Dropped) {
	m := s.member(e.Member)
	if m.state != linkDropping || !m.call.busy() {
		return
	}
	m.call.end()
	if e.Err != nil {
		m.call.failed(s.now, &s.cfg)
		return
	}
	m.call.recovered()
	if s.phase < phaseFinishing {
		s.uamGone(m, "the UAM in "+string(m.id)+" was killed: it could not be used")
		return
	}
	s.gone(m)
}

// advance makes the next call to a member, if one is due and none under way.
func (s *Session) advance(m *link) {
	if m.waits(s.now) {
		return
	}
	if !s.record.isDurable(m.gen) && m.state != linkUp && (m.state != linkEnding || s.phase < phaseFinishing) {
		return // the call depends on a record that is not durable yet
	}
	switch m.state {
	case linkNumbering:
		if s.unneeded(m) {
			m.state = linkNone
			return
		}
		m.call.begin(s.now)
		s.acts.do(NewID{Member: m.id, User: s.record.User})
	case linkPlanned:
		if s.unneeded(m) {
			s.gone(m)
			m.state = linkNone
			return
		}
		m.state = linkLaunching
		s.acts.do(
			Launch{
				Member:      m.id,
				Home:        s.home.id,
				Application: s.attempt.Application,
				OwnID:       m.ownID,
				Name:        creel.UAMName(s.home.id),
				Queue:       s.record.Queue,
				Label:       s.placer.labelAt(m),
				User:        s.record.User,
			},
		)
	case linkLaunched:
		if s.phase == phaseNew || s.blind {
			return // attached again when the AM calls
		}
		m.state = linkRegistering
		s.advance(m)
	case linkRegistering:
		if m.home || s.record.Register != nil {
			s.send(m, &Send{Register: s.record.Register})
		}
	case linkUp:
		s.heartbeatTo(m)
	case linkEnding:
		s.send(m, &Send{Finish: s.finishRequest(), Idle: s.phase < phaseFinishing})
	case linkDropping:
		m.call.begin(s.now)
		s.acts.do(Drop{
			Member: m.id, Home: s.home.id, Application: s.attempt.Application, OwnID: m.ownID, User: s.record.User,
		})
	}
}

// unneeded reports whether a planned launch must be cancelled: the member is being drained by now and receives no
// asks.
func (s *Session) unneeded(m *link) bool {
	return m.draining() && m.tries == 0 && !m.takenOver && s.ledger.outstanding(m) == 0
}

func (s *Session) finishRequest() *yarnpb.FinishApplicationMasterRequestProto {
	if s.am.finish != nil {
		return s.am.finish
	}
	if s.phase < phaseFinishing {
		return &yarnpb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			Diagnostics:            proto.String(idleWhy),
		}
	}
	return &yarnpb.FinishApplicationMasterRequestProto{
		FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_KILLED.Enum(),
		Diagnostics:            proto.String(s.am.why),
	}
}

// send makes a call, or repeats the call under way that may have been lost.
func (s *Session) send(m *link, next *Send) {
	next = m.call.send(next, s.now)
	next.Member, next.Token = m.id, m.token
	s.acts.do(*next)
}

// heartbeatTo calls a registered member when a call is due.
func (s *Session) heartbeatTo(m *link) {
	if m.delivery != delivered && s.phase == phaseRunning {
		return
	}
	if m.contested && !s.record.isDurable(m.gen) {
		return
	}
	m.contested = false
	if m.call.due() && m.call.under.Allocate != nil {
		s.send(m, nil)
		return
	}
	if m.home && s.phase == phaseFinishing {
		if m.called || m.call.due() {
			m.called = false
			s.send(m, &Send{Finish: s.am.finish})
		}
		return
	}
	if s.phase != phaseRunning || !m.called && !s.due(m) {
		return
	}
	// Without a valid response id an empty call comes first. The member refuses it with the expected id, and onError
	// continues. For takenOver see there.
	if m.responseID == unknownID || m.takenOver {
		m.takenOver = false
		s.send(m, emptyCall(m.responseID, s.am.progress))
		return
	}
	s.send(m, &Send{Allocate: s.request(m)})
}

// silent reports whether the AM has not called for so long that it may be dead. Then its UAMs stay, but the session
// starts and requests nothing new for it.
func (s *Session) silent() bool { return s.am.silentSince(s.now, s.cfg.KeepAlive) }

// asks reports whether the AM's asks may be placed, or placed again.
func (s *Session) asks() bool { return s.phase == phaseRunning && !s.silent() }

// due reports whether a call to a member is due without a heartbeat of the AM.
func (s *Session) due(m *link) bool {
	idle := s.now.Sub(m.call.sent)
	if m.news {
		m.news = !m.isEmpty() || s.ledger.differs(m, m.quiet)
	}
	if m.home {
		return m.news && idle >= s.cfg.UAMHeartbeat && !s.silent()
	}
	if idle >= s.cfg.KeepAlive {
		return true
	}
	if idle < s.cfg.UAMHeartbeat || s.silent() {
		return false
	}
	return m.news || s.ledger.outstanding(m) > 0
}

// request returns the next allocate request for a member. Home receives the AM's own message with the lists replaced.
// Other members receive a new message.
func (s *Session) request(m *link) *yarnpb.AllocateRequestProto {
	var a *yarnpb.AllocateRequestProto
	if m.home {
		a = s.am.forHome()
	} else {
		a = &yarnpb.AllocateRequestProto{}
	}
	a.ResponseId = proto.Int32(m.responseID)
	a.Progress = s.am.progress
	unsaid := !m.home && s.silent() // asks were placed by the view of the AM's last heartbeat
	if !unsaid {
		a.Ask = s.ledger.collect(m, m.quiet)
	}
	m.moveTo(a)
	if m.home {
		a.SchedulingRequests = s.ledger.scheduling.send()
	}
	m.called, m.news = false, unsaid || m.singly
	if len(a.Ask)+len(a.Release)+len(a.UpdateRequests) > 0 {
		m.worked = s.now
	}
	return a
}

// answerAM answers the AM's calls whose answers are ready.
func (s *Session) answerAM() {
	if s.phase == phaseRegistering {
		s.answerRegister()
	}
	if s.am.ready(s.now, s.home.shut(s.now, s.cfg.HomeWaitMost)) {
		s.answerAllocate()
	}
	s.am.answerFinish()
}

func (s *Session) answerAllocate() {
	r := s.am.takeAnswer()
	s.ledger.delivered(r)
	for _, m := range s.members {
		m.answering()
	}
	s.record.inAnswer()
	total(r, s.members)
	s.am.answerAllocate(r)
}

// answerRegister answers the registration once home's answer is durable. It also waits, for Config.AttachWait, until
// the UAMs that outlived the last proxy have reported their containers.
func (s *Session) answerRegister() {
	if s.am.answer == nil || !s.record.isDurable(s.home.gen) {
		return
	}
	if s.now.Sub(s.am.began) < s.cfg.AttachWait {
		for _, m := range s.members {
			if !m.home && !m.closed && (m.state == linkLaunched || m.state == linkRegistering) {
				return
			}
		}
	}
	for _, m := range s.members {
		switch {
		case m.heritage != inherited || m.state != linkUp:
		case s.record.endsWithAttempt():
			s.inherit(m, nil)
		default:
			m.heritage = unacked
		}
	}
	s.am.attached.ContainersFromPreviousAttempts = s.survivors(s.am.attached.ContainersFromPreviousAttempts)
	s.phase = phaseRunning
	resumeAt := int32(0)
	if s.ledger.restored {
		// An AM's first call has the response id 0; the answer has the next one. A random id is unlikely to equal an
		// id that the AM used with the earlier proxy. If they were equal, a late call to that proxy would be
		// processed. Then the present call with the same id would count as its repeat and not be read.
		resumeAt = 2 + s.rnd.Int32N(1<<30)
	}
	s.am.answerRegister(resumeAt)
}
