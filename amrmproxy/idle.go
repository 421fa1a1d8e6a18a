// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import "slices"

const idleWhy = "the UAM there was idle and was ended"

// giveBack ends the UAMs that have been idle for Config.IdleAfter, so that no ResourceManager carries applications it
// does nothing for. The intention is recorded first: a proxy that was paused while another took over its attempt must
// not end a UAM that the other uses (docs/adr/0016-two-proxies.md). The AM's asks go elsewhere meanwhile; after
// Config.UAMRetry the member is treated like any other.
func (s *Session) giveBack() {
	if s.phase != phaseRunning || !s.spoken {
		return
	}
	for _, m := range s.members {
		switch {
		case m.home || m.state != memberUp || s.now.Sub(m.worked) < s.cfg.IdleAfter:
		case m.live > 0 || s.ledger.outstanding(m) > 0:
			m.worked = s.now // looked at again when it may have been idle for so long
		case !s.keeps(m) && s.atRest(m):
			m.state, m.gen = memberEnding, s.changed()
		}
	}
}

// keeps reports whether a UAM stays although it is idle: its nodes may have data that
// other containers read, which goes with it, or the member would never take another. One
// that is drained is to have none.
func (s *Session) keeps(m *member) bool {
	return !m.begins && !m.draining && !s.renumbers(m) ||
		m.used && (s.record.Type == "" || slices.Contains(s.cfg.Shuffling, s.record.Type))
}

// atRest reports whether a member and the session agree about everything: no call is under way between the two, and
// nothing waits to be sent to either.
func (s *Session) atRest(m *member) bool {
	return !m.busy && !m.again && !m.replay && !m.contested && !m.closed && m.badSince.IsZero() &&
		m.delivery == delivered && len(m.release)+len(m.updates) == 0 && s.ledger.settled(m)
}
