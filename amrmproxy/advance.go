// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
)

// callMembers makes the calls that are due.
func (s *Session) callMembers() {
	for _, m := range s.members {
		s.callMember(m)
	}
}

// callMember makes the next call to a member, if one is due and none under way.
func (s *Session) callMember(m *link) {
	if m.waits(s.now) {
		return
	}
	if !s.record.isDurable(m.gen) && m.state != linkUp && (m.state != linkEnding || s.phase < phaseFinishing) {
		return // the call depends on a record that is not durable yet
	}
	switch m.state {
	case linkNumbering:
		if m.unneeded() && s.ledger.outstanding(m) == 0 {
			m.state = linkNone
			return
		}
		m.call.begin(s.now)
		s.acts.do(NewID{Member: m.id, User: s.record.User})
	case linkPlanned:
		if m.unneeded() && s.ledger.outstanding(m) == 0 {
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
		s.callMember(m)
	case linkRegistering:
		if m.home || s.record.Register != nil {
			s.send(m, &Send{Register: s.record.Register, Distributed: s.local.issues(m)})
		}
	case linkUp:
		s.heartbeatTo(m)
	case linkEnding:
		s.send(m, &Send{Finish: s.am.finishRequest(s.phase < phaseFinishing), Idle: s.phase < phaseFinishing})
	case linkDropping:
		m.call.begin(s.now)
		s.acts.do(Drop{
			Member: m.id, Home: s.home.id, Application: s.attempt.Application, OwnID: m.ownID, User: s.record.User,
		})
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
	if s.phase != phaseRunning || !m.called && !s.ledger.due(m, s.now, s.silent()) {
		return
	}
	// Without a valid response id an empty call comes first. The member refuses it with the expected id, and onError
	// continues. For takenOver see there.
	if m.responseID == unknownID || m.takenOver {
		m.takenOver = false
		s.send(m, emptyCall(m.responseID, s.am.progress))
		return
	}
	a := s.am.request(m.home)
	a.ResponseId = proto.Int32(m.responseID)
	s.ledger.fill(a, m, s.now, s.silent())
	next := &Send{Allocate: a, Distributed: m.terms != nil}
	if len(m.fresh) > 0 {
		next.Placed = m.announce()
	}
	if next.Distributed {
		next.Unplaced = s.ledger.placing(m)
	}
	s.send(m, next)
}
