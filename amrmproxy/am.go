// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

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
		m.again()
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
