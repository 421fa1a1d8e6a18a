// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"time"
)

// Wake returns the next time at which a Tick may have an effect. A driver of a few sessions may tick every
// Config.Tick. A driver of thousands sets its timers by Wake.
func (s *Session) Wake() time.Time {
	// For stuck asks, a silent AM and empty groups. It counts from the last Tick: counted from now, frequent events
	// would postpone it for ever.
	latest := s.ticked.Add(time.Second)
	at := latest
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if s.phase == phaseDone {
		return s.now.Add(time.Hour)
	}
	if at, due := s.placer.wake(); due && s.asks() {
		sooner(at)
	}
	if len(s.am.waiting) > 0 {
		if d := s.am.began.Add(s.cfg.HomeWait); s.now.Before(d) {
			sooner(d)
		} else {
			sooner(s.now.Add(s.cfg.Tick))
		}
	}
	if s.phase == phaseRegistering {
		sooner(s.am.began.Add(s.cfg.AttachWait))
	}
	if at, due := s.record.saveDue(); due {
		sooner(at)
	}
	for _, m := range s.members {
		switch {
		case m.call.busy():
			if !m.closed {
				sooner(m.call.sent.Add(s.cfg.SlowAfter))
			}
		case m.state == linkNone || m.state == linkGone:
		case s.now.Before(m.call.retryAt):
			sooner(m.call.retryAt)
		case m.state != linkUp || s.phase != phaseRunning || m.delivery != delivered:
		case m.news || !m.home && s.ledger.outstanding(m) > 0:
			sooner(m.call.sent.Add(s.cfg.UAMHeartbeat))
		}
	}
	if soonest := s.now.Add(s.cfg.Tick / 10); at.Before(soonest) {
		at = soonest
	}
	if latest.Before(at) {
		return latest
	}
	return at
}
