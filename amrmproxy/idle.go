// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import "slices"

const idleWhy = "the UAM there was idle and was ended"

// giveBack ends the UAMs that have been idle for Config.IdleAfter, so that ResourceManagers have no idle
// applications. It records the intention first: a proxy that was paused while another took over its attempt must not
// end a UAM that the other uses (docs/adr/0016-two-proxies.md). The AM's asks go elsewhere meanwhile. After
// Config.UAMRetry the member may get asks again.
func (s *Session) giveBack() {
	if s.phase != phaseRunning || !s.spoken {
		return
	}
	for _, m := range s.members {
		switch {
		case m.home || m.state != memberUp || s.now.Sub(m.worked) < s.cfg.IdleAfter:
		case m.live > 0 || s.ledger.outstanding(m) > 0:
			m.worked = s.now // checked again after another IdleAfter
		case !s.keeps(m) && s.atRest(m):
			m.state, m.gen = memberEnding, s.record.changed()
		}
	}
}

// keeps reports whether an idle UAM stays. It stays if nodes may have data that other containers read, since nodes
// delete it with the UAM. It also stays if the member would never accept another UAM and is not being drained.
func (s *Session) keeps(m *member) bool {
	return !m.begins && !m.draining && !s.renumbers(m) ||
		m.used && (s.record.Type == "" || slices.Contains(s.cfg.Shuffling, s.record.Type))
}

// atRest reports whether a member and the session agree: no call between them is under way, and nothing waits to be
// sent to the member or to the AM.
func (s *Session) atRest(m *member) bool {
	return m.call.atRest() && !m.contested && !m.closed &&
		m.delivery == delivered && len(m.release)+len(m.updates) == 0 && s.ledger.settled(m)
}
