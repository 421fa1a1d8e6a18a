// SPDX-License-Identifier: Apache-2.0

package rm

import "time"

// NextDeadline is the time when Tick is due next; zero if nothing waits.
func (m *Machine) NextDeadline() time.Time {
	at := int64(0)
	earlier := func(t int64) {
		if at == 0 || t < at {
			at = t
		}
	}
	if m.timers.heap.Len() > 0 {
		earlier(m.timers.heap.Top().at)
	}
	if t := m.sched.NextDeadline(); t != 0 {
		earlier(t)
	}
	if n := m.nodes.heartbeats.First; n != nil && m.cfg.NodeExpiry > 0 {
		earlier(n.heartbeat + int64(m.cfg.NodeExpiry))
	}
	if t := m.attempts.heartbeats.First; t != nil && m.cfg.AMExpiry > 0 {
		earlier(t.heartbeat + int64(m.cfg.AMExpiry))
	}
	if c := m.containers.unlaunched.Oldest(); c != nil && m.cfg.ContainerExpiry > 0 {
		earlier(m.containers.deadline(c))
	}
	return instant(at)
}

// deadline is the time at which a container that its node has not reported expires. After a pause of this
// process, the full time starts again.
func (l *containerLife) deadline(c *container) int64 {
	m := l.m
	return max(c.created*int64(time.Millisecond), m.resumed) + int64(m.cfg.ContainerExpiry)
}

// Paused reports that the caller did not run for the last d and so received nothing (package internal/pauseclock).
// That time does not count as silence of nodes, AMs and containers: their last heartbeats move forward by d.
func (m *Machine) Paused(now time.Time, d time.Duration) {
	m.at(now)
	if d <= 0 {
		return
	}
	for n := range m.nodes.heartbeats.All() {
		n.heartbeat = min(n.heartbeat+int64(d), m.now)
	}
	for t := range m.attempts.heartbeats.All() {
		t.heartbeat = min(t.heartbeat+int64(d), m.now)
	}
	m.resumed = m.now
}

// Tick processes the deadlines reached by now, in order of kind and then of time.
func (m *Machine) Tick(now time.Time) {
	m.at(now)
	m.sched.Tick()
	m.victims.apply()
	for {
		t, due := m.timers.due(m.now)
		if !due {
			break
		}
		t.fire()
	}
	for m.cfg.NodeExpiry > 0 && m.nodes.heartbeats.First != nil &&
		m.nodes.heartbeats.First.heartbeat+int64(m.cfg.NodeExpiry) <= m.now {
		m.nodes.lost(m.nodes.heartbeats.First)
	}
	for m.cfg.AMExpiry > 0 && m.attempts.heartbeats.First != nil &&
		m.attempts.heartbeats.First.heartbeat+int64(m.cfg.AMExpiry) <= m.now {
		m.attempts.silent(m.attempts.heartbeats.First)
	}
	for m.cfg.ContainerExpiry > 0 {
		c := m.containers.unlaunched.Oldest()
		if c == nil || m.containers.deadline(c) > m.now {
			break
		}
		m.containers.expired(c)
	}
	m.settle()
}
