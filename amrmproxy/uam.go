// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"slices"

	"github.com/creelrm/creel/internal/yarnpb"
)

// wantUAM requests a UAM. The UAM is recorded first, then launched. If the member had one before and does not accept
// its id again, the member is first asked for another id.
func (s *Session) wantUAM(m *link) {
	numbered := m.spent && s.renumbers(m)
	if m.plan(s.now, numbered); !numbered {
		s.recordUAM(m)
	}
}

// refuseAsks refuses the heartbeat with the asks.
func (s *Session) refuseAsks(err error) { s.am.refuseWaiting(err) }

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

// endIdleUAMs ends the UAMs that have been idle for Config.IdleAfter, so that ResourceManagers have no idle
// applications. It records the intention first: a proxy that was paused while another took over its attempt must not
// end a UAM that the other uses (docs/adr/0016-two-proxies.md). The AM's asks go elsewhere meanwhile. After
// Config.UAMRetry the member may get asks again.
func (s *Session) endIdleUAMs() {
	if s.phase != phaseRunning || !s.ledger.spoken {
		return
	}
	for _, m := range s.members {
		switch {
		case m.home || m.state != linkUp || s.now.Sub(m.worked) < s.cfg.IdleAfter:
		case m.live > 0 || s.ledger.outstanding(m) > 0:
			m.worked = s.now // checked again after another IdleAfter
		case !m.keeps(s.record.Type, &s.cfg) && m.atRest() && s.ledger.settled(m):
			m.state, m.gen = linkEnding, s.record.changed()
		}
	}
}

// dropUAM kills a UAM that cannot be used. It is launched again later.
func (s *Session) dropUAM(m *link) {
	m.drop(s.now)
	s.ledger.spoil()
}

// uamGone reports to the AM the containers that ended with a UAM. The record retains the completions that the AM may
// not have received, since no member can repeat them. They are written together with the UAM's removal.
func (s *Session) uamGone(m *link, why string) {
	var last []*yarnpb.ContainerStatusProto
	if s.record.unread == inAnswer { // another UAM ended just before
		last = s.am.last.CompletedContainerStatuses
	}
	s.ledger.lose(m, why, s.am.out, s.now)
	if untold := slices.Concat(last, s.am.out.CompletedContainerStatuses); len(untold) > 0 {
		s.record.keep(keepCompletions(untold))
		s.record.changed()
	}
	if m.state != linkNumbering && s.renumbers(m) {
		m.spent = true
		why += "; the next has an id of its own"
	}
	s.gone(m)
	m.lose(why, s.now.Add(s.cfg.UAMRetry))
}

// gone removes an ended UAM from the record.
func (s *Session) gone(m *link) {
	m.gone()
	s.record.drop(m.id)
}
