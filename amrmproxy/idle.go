// SPDX-License-Identifier: Apache-2.0

package amrmproxy

const idleWhy = "the UAM there was idle and was ended"

// giveBack ends the UAMs that have been idle for Config.IdleAfter, so that ResourceManagers have no idle
// applications. It records the intention first: a proxy that was paused while another took over its attempt must not
// end a UAM that the other uses (docs/adr/0016-two-proxies.md). The AM's asks go elsewhere meanwhile. After
// Config.UAMRetry the member may get asks again.
func (s *Session) giveBack() {
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
