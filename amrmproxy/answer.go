// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// onAnswered processes a member's answer, or the failure to get one.
func (s *Session) onAnswered(e Answered) {
	m := s.member(e.Member)
	if !m.call.answers(e.Seq) {
		return
	}
	if e.Err != nil {
		s.onError(m, e.Err)
		return
	}
	if e.Allocate != nil && m.call.repeats() {
		s.onReplayed(m, e.Allocate)
		return
	}
	under := m.call.under
	m.call.answered()
	switch {
	case e.Register != nil && under.Register != nil:
		s.onRegistered(m, e.Register, e.Terms)
	case e.Allocate != nil && under.Allocate != nil:
		if under.Distributed {
			m.take(e.Loaded)
		}
		s.onAllocated(m, e.Allocate, len(under.Placed) > 0)
		m.call.proceed(m.responseID)
	case e.Finish != nil && under.Finish != nil:
		s.onFinished(m, e.Finish)
	default:
		m.call.queue(under)
		s.onError(m, &creel.Error{Kind: creel.ErrUnavailable, What: "empty answer"})
	}
}

// onRegistered processes a registration's answer: the attempt may allocate in the member now.
func (s *Session) onRegistered(
	m *link,
	r *yarnpb.RegisterApplicationMasterResponseProto,
	terms *yarnpb.RegisterDistributedSchedulingAMResponseProto,
) {
	if m.state != linkRegistering {
		return // the UAM is ending by now
	}
	m.state, m.responseID, m.news = linkUp, 0, true
	m.called = !m.home || s.phase != phaseRegistering
	s.ledger.renew(m)
	var left []*yarnpb.ContainerProto
	for _, c := range r.GetContainersFromPreviousAttempts() {
		if s.ledger.learn(m, c.GetId()) {
			m.used, left = true, append(left, c)
		}
	}
	m.worked, m.memoryOnly = s.now, comparesMemoryOnly(r)
	s.local.begin(m, terms)
	switch {
	case m.home && s.phase == phaseRegistering:
		s.am.answer = r
		s.home.gen = s.record.registered(r)
		if !s.ledger.restored && s.record.endsWithAttempt() { // the reported containers ended with an earlier attempt
			s.am.out.CompletedContainerStatuses, s.record.Completions, s.record.unread = nil, nil, delivered
		}
	default:
		into := s.am.out
		if s.phase == phaseRegistering {
			into = s.am.attached
		}
		if m.heritage == inherited { // otherwise this AM was informed when they were granted
			if s.phase == phaseRunning {
				left = s.inherit(m, left)
			}
			into.ContainersFromPreviousAttempts = append(into.ContainersFromPreviousAttempts, left...)
		}
		into.NmTokens = append(into.NmTokens, r.GetNmTokensFromPreviousAttempts()...)
	}
}

// onAllocated merges a member's answer into the AM's next answer, and updates the session.
func (s *Session) onAllocated(m *link, r *yarnpb.AllocateResponseProto, placed bool) {
	m.responseID = r.GetResponseId()
	m.hear(r)
	s.ledger.keepWanted(m, r, s.now, s.phase == phaseRunning)
	if placed {
		s.ledger.reported(m, r)
	}
	s.ledger.keepCompletions(m, r, s.am.out, s.now)
	if m.delivery = delivered; s.phase == phaseRunning && m.saysOnce(r) {
		m.delivery = toDeliver
	}
	s.ledger.landed(m)
	s.ledger.takeFound(m, r, s.record.endsWithAttempt())
	if m.home {
		s.am.homeAnswered = true
		s.ledger.scheduling.rejected(r.GetRejectedSchedulingRequests())
		if r.ApplicationPriority != nil {
			s.am.priority = r.ApplicationPriority
		}
	} else if r.AmRmToken != nil {
		// The UAM's ResourceManager rolled its key, and this proxy is the UAM's AM.
		m.token = r.AmRmToken
		s.recordUAM(m)
	}
	if s.phase == phaseRunning {
		s.am.add(r, m.home)
	}
}

// onReplayed handles the answer that a member sent to the earlier proxy. A call without a valid response id makes the
// member repeat that answer.
//
// Completions and tokens in it are passed on: the AM may not have them, and a repeat does no harm. Grants are not
// passed on: they may run already, and the others expire.
//
// Then an empty call follows, and after it the due call. A late call of the earlier proxy has the next response id.
// If it arrives first, the member takes this proxy's call for its repeat and does not read it.
func (s *Session) onReplayed(m *link, r *yarnpb.AllocateResponseProto) {
	m.responseID = r.GetResponseId()
	m.call.replayed(m.responseID, s.am.progress)
	s.ledger.keepCompletions(m, r, s.am.out, s.now)
	r.AllocatedContainers = nil
	s.ledger.takeFound(m, r, s.record.endsWithAttempt())
	if m.saysOnce(r) {
		m.delivery = toDeliver
		s.am.add(r, m.home)
		s.am.homeAnswered = s.am.homeAnswered || m.home
	}
}

// onFinished processes the answer to a finish. The member has unregistered the attempt, or requires another call.
func (s *Session) onFinished(m *link, r *yarnpb.FinishApplicationMasterResponseProto) {
	if m.home {
		s.am.finished = r
		if s.blind && r.GetIsUnregistered() {
			s.blind = false
			s.finishUAMs()
		}
		return
	}
	if r.GetIsUnregistered() && s.phase < phaseFinishing {
		s.uamGone(m, idleWhy)
		return
	}
	if r.GetIsUnregistered() {
		s.gone(m)
		return
	}
	m.call.failed(s.now, &s.cfg)
}

// onError decides the next step after a failed call.
func (s *Session) onError(m *link, err error) {
	if n, ok := expectedID(err); ok && m.call.under.Allocate != nil {
		// The member's response id differs: another proxy has called, or an answer was lost. The last answer to that
		// proxy may not have reached the AM. So the member must repeat it, and once more if a late call of that proxy
		// comes in between.
		if m.responseID != unknownID {
			m.contested, m.gen = true, s.record.changed()
		}
		m.responseID = m.call.mismatched(n, s.am.progress)
		return
	}
	switch {
	case errors.Is(err, creel.ErrNotRegistered):
		s.onNotRegistered(m, m.call.content())
	case errors.Is(err, creel.ErrAttemptNotFound), errors.Is(err, creel.ErrApplicationNotFound):
		under := m.call.content()
		m.call.answered()
		s.onUnknownAttempt(m, under, err)
	case errors.Is(err, creel.ErrInvalidRequest),
		errors.Is(err, creel.ErrInvalidResource),
		errors.Is(err, creel.ErrNotEnabled),
		errors.Is(err, creel.ErrNotPermitted),
		errors.Is(err, creel.ErrInvalidToken):
		under := m.call.content()
		m.call.answered()
		s.onRefused(m, under, err)
	default:
		m.call.failed(s.now, &s.cfg) // the member may or may not have processed the call
	}
}

// onNotRegistered handles the restart of a ResourceManager: the attempt registers there again and sends everything
// again.
func (s *Session) onNotRegistered(m *link, under *Send) {
	if m.state == linkEnding {
		m.call.answered()
		m.state = linkDropping
		return
	}
	if under.Register != nil { // a registration itself cannot fail with this error; retry it
		m.call.failed(s.now, &s.cfg)
		return
	}
	m.call.answered()
	if m.home && s.blind {
		s.unblind(&creel.Error{
			Kind: creel.ErrNotRegistered,
			What: "Application Master is trying to unregister before registering for: " + s.attempt.Application.String(),
			Try:  "Let AM re-register",
		})
		return
	}
	if a := under.Allocate; a != nil {
		// renew sends asks, releases and the blacklist again.
		m.updates = append(a.UpdateRequests, m.updates...)
		m.release = append(a.Release, m.release...)
		if m.home {
			s.ledger.scheduling.untaken(a.SchedulingRequests)
			s.am.untaken(a)
		}
	}
	if m.home {
		s.ledger.scheduling.lost()
	}
	m.state = linkRegistering
	s.ledger.unplace(m)
	m.forget()
	s.ledger.renew(m)
}

// onUnknownAttempt handles a member's answer that the attempt does not exist.
func (s *Session) onUnknownAttempt(m *link, under *Send, err error) {
	if m.home {
		if under.Finish != nil && m.hadoop {
			// Hadoop's ResourceManager drops an attempt when it accepts its finish, so this is the answer to a
			// repeated finish. Creel's ResourceManager still confirms an accepted finish. If it does not know the
			// attempt, it gave up the attempt earlier.
			s.onFinished(m, &yarnpb.FinishApplicationMasterResponseProto{IsUnregistered: proto.Bool(true)})
			return
		}
		s.abandon("home reported the attempt over: "+err.Error(), err)
		return
	}
	if s.phase >= phaseFinishing && (m.state == linkEnding || m.state == linkDropping) {
		s.gone(m)
		return
	}
	why := "the UAM in " + string(m.id) + " is gone: " + err.Error()
	if m.state == linkEnding {
		why = idleWhy // the answer to the finish was lost
	}
	s.uamGone(m, why)
}

// unknownToken reports whether a ResourceManager has no attempt for the token, so that the attempt is over there.
func unknownToken(err error) bool {
	return errors.Is(err, creel.ErrInvalidToken) && strings.Contains(err.Error(), "not found in AMRMTokenSecretManager")
}

// onRefused handles a member's refusal of a request.
func (s *Session) onRefused(m *link, under *Send, err error) {
	switch {
	case under.Register != nil && m.home:
		s.am.refuseRegisters(err)
		s.phase, m.state = phaseNew, linkNone
	case under.Register != nil:
		s.dropUAM(m)
	case under.Finish != nil && m.home && unknownToken(err):
		s.onUnknownAttempt(m, under, err)
	case under.Finish != nil && m.home && s.blind:
		s.unblind(err)
	case under.Finish != nil && m.home:
		s.am.refuseFinishes(err)
	case under.Finish != nil:
		m.state = linkDropping
	default:
		a := under.Allocate
		if len(under.Placed) > 0 {
			m.unannounced()
		}
		g := s.ledger.refused(m)
		m.release = append(a.Release, m.release...)
		if m.home && unknownToken(err) {
			s.abandon("home has no such attempt", err)
			return
		}
		if m.home {
			// The cause is the AM's request or token, so the AM receives the error.
			s.am.refuseWaiting(err)
			return
		}
		if errors.Is(err, creel.ErrInvalidToken) || errors.Is(err, creel.ErrNotPermitted) {
			s.uamGone(m, "the UAM in "+string(m.id)+" lost its token: "+err.Error())
			return
		}
		if g != nil || m.singly { // otherwise these requests were the cause
			m.untaken(a)
		}
		if g != nil {
			g.barred = append(g.barred, m)
			g.dirty = true
		}
		m.call.retryAt, m.news = s.now.Add(s.cfg.Retry), true // the rest of the request is sent again
	}
}

// expectedID reads the expected response id from a ResourceManager's refusal: "... expect responseId to be 7 but get
// 3".
func expectedID(err error) (int32, bool) {
	_, rest, ok := strings.Cut(err.Error(), "expect responseId to be ")
	if !ok {
		return 0, false
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

func isStale(err error) bool {
	return errors.Is(err, creel.ErrStale) || errors.Is(err, creel.ErrConflict)
}
