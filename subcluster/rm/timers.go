// SPDX-License-Identifier: Apache-2.0

package rm

import "time"

// timer is a deadline with an individual length.
type timer struct {
	at   int64
	seq  int64
	slot int32
	fire func()
}

// timer arms a timer; stop disarms it.
func (m *Machine) timer(at int64, fire func()) *timer {
	m.timerSeq++
	t := &timer{at: at, seq: m.timerSeq, fire: fire}
	m.timers.Push(t)
	return t
}

func (m *Machine) stop(t **timer) {
	if *t != nil {
		m.timers.Remove(*t)
		*t = nil
	}
}

// NextDeadline is the time when Tick is due next; zero if nothing waits.
func (m *Machine) NextDeadline() time.Time {
	at := int64(0)
	earlier := func(t int64) {
		if at == 0 || t < at {
			at = t
		}
	}
	if m.timers.Len() > 0 {
		earlier(m.timers.Top().at)
	}
	if t := m.sched.NextDeadline(); t != 0 {
		earlier(t)
	}
	if n := m.nodeHeartbeats.First; n != nil && m.cfg.NodeExpiry > 0 {
		earlier(n.heartbeat + int64(m.cfg.NodeExpiry))
	}
	if t := m.amHeartbeats.First; t != nil && m.cfg.AMExpiry > 0 {
		earlier(t.heartbeat + int64(m.cfg.AMExpiry))
	}
	if c := m.unlaunched.Oldest(); c != nil && m.cfg.ContainerExpiry > 0 {
		earlier(m.containerDeadline(c))
	}
	return instant(at)
}

// containerDeadline is the time at which a container that its node has not reported expires. After a pause of this
// process, the full time starts again.
func (m *Machine) containerDeadline(c *container) int64 {
	return max(c.created*int64(time.Millisecond), m.resumed) + int64(m.cfg.ContainerExpiry)
}

// Paused reports that the caller did not run for the last d and so received nothing (package internal/pauseclock).
// That time does not count as silence of nodes, AMs and containers: their last heartbeats move forward by d.
func (m *Machine) Paused(now time.Time, d time.Duration) {
	m.at(now)
	if d <= 0 {
		return
	}
	for n := range m.nodeHeartbeats.All() {
		n.heartbeat = min(n.heartbeat+int64(d), m.now)
	}
	for t := range m.amHeartbeats.All() {
		t.heartbeat = min(t.heartbeat+int64(d), m.now)
	}
	m.resumed = m.now
}

// Tick processes the deadlines reached by now, in order of kind and then of time.
func (m *Machine) Tick(now time.Time) {
	m.at(now)
	m.sched.Tick()
	m.preempt()
	for m.timers.Len() > 0 && m.timers.Top().at <= m.now {
		t := m.timers.Top()
		m.timers.Remove(t)
		t.fire()
	}
	for m.cfg.NodeExpiry > 0 && m.nodeHeartbeats.First != nil &&
		m.nodeHeartbeats.First.heartbeat+int64(m.cfg.NodeExpiry) <= m.now {
		m.nodeLost(m.nodeHeartbeats.First)
	}
	for m.cfg.AMExpiry > 0 && m.amHeartbeats.First != nil &&
		m.amHeartbeats.First.heartbeat+int64(m.cfg.AMExpiry) <= m.now {
		m.amSilent(m.amHeartbeats.First)
	}
	for m.cfg.ContainerExpiry > 0 {
		c := m.unlaunched.Oldest()
		if c == nil || m.containerDeadline(c) > m.now {
			break
		}
		m.containerExpired(c)
	}
	m.settle()
}
