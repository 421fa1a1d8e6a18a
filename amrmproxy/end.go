// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

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

// endUAMs ends every UAM: by a finish where the member can receive it, by a kill otherwise.
func (s *Session) endUAMs(how linkState) {
	for _, m := range s.members {
		if m.home || !m.inUse() || m.state >= linkEnding {
			continue
		}
		m.end(how == linkEnding, s.record.isUnsaved(m.gen), s.record.gen)
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

// endIfDone ends the session if no UAM is left.
func (s *Session) endIfDone() {
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
		s.saveRecord()
		return
	}
	s.phase = phaseDone
	s.acts.do(Done{Why: s.am.why})
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
