// SPDX-License-Identifier: Apache-2.0

package rm

import "time"

// link is an element's place in a list.
type link[T comparable] struct{ prev, next T }

// list is a doubly linked list through its elements, oldest first. Waits of
// one length each (silent nodes, silent masters, containers nobody started)
// are kept this way: a new start of the wait moves to the end in O(1), and the
// first to expire is at the front.
type list[T comparable] struct {
	first, last T
	link        func(T) *link[T]
}

func (l *list[T]) append(x T) {
	var none T
	l.remove(x)
	k := l.link(x)
	k.prev, k.next = l.last, none
	if l.last != none {
		l.link(l.last).next = x
	} else {
		l.first = x
	}
	l.last = x
}

func (l *list[T]) remove(x T) {
	var none T
	k := l.link(x)
	switch {
	case k.prev != none:
		l.link(k.prev).next = k.next
	case l.first == x:
		l.first = k.next
	default:
		return
	}
	if k.next != none {
		l.link(k.next).prev = k.prev
	} else {
		l.last = k.prev
	}
	*k = link[T]{}
}

// timer is a deadline of its own length.
type timer struct {
	at   int64
	seq  int64
	slot int32
	fire func()
}

// after arms a timer; stop it with m.timers.remove.
func (m *Machine) timer(at int64, fire func()) *timer {
	m.timerSeq++
	t := &timer{at: at, seq: m.timerSeq, fire: fire}
	m.timers.push(t)
	return t
}

func (m *Machine) stop(t **timer) {
	if *t != nil {
		m.timers.remove(*t)
		*t = nil
	}
}

// NextDeadline is when Tick is due next; the zero time when nothing waits.
func (m *Machine) NextDeadline() time.Time {
	at := int64(0)
	earlier := func(t int64) {
		if at == 0 || t < at {
			at = t
		}
	}
	if m.timers.len() > 0 {
		earlier(m.timers.top().at)
	}
	if n := m.nodeBeats.first; n != nil && m.cfg.NodeExpiry > 0 {
		earlier(n.beat + int64(m.cfg.NodeExpiry))
	}
	if a := m.masterBeats.first; a != nil && m.cfg.MasterExpiry > 0 {
		earlier(a.beat + int64(m.cfg.MasterExpiry))
	}
	if c := m.unlaunched.oldest(); c != nil && m.cfg.ContainerExpiry > 0 {
		earlier(m.containerDeadline(c))
	}
	return instant(at)
}

// containerDeadline is when a container that its node has not reported is given
// up. After a pause of our own all of them have their whole time again.
func (m *Machine) containerDeadline(c *container) int64 {
	return max(c.created*int64(time.Millisecond), m.resumed) + int64(m.cfg.ContainerExpiry)
}

// Paused tells that the caller did not run for d until now, and so heard nobody
// (package internal/awake). Nodes, AMs and containers are not judged by that
// time: whoever was heard of d before counts as heard of now.
func (m *Machine) Paused(now time.Time, d time.Duration) {
	m.at(now)
	if d <= 0 {
		return
	}
	for n := m.nodeBeats.first; n != nil; n = n.beatLink.next {
		n.beat = min(n.beat+int64(d), m.now)
	}
	for a := m.masterBeats.first; a != nil; a = a.beatLink.next {
		a.beat = min(a.beat+int64(d), m.now)
	}
	m.resumed = m.now
}

// Tick lets time pass: deadlines reached by now take effect, in order of kind
// and then of time.
func (m *Machine) Tick(now time.Time) {
	m.at(now)
	for m.timers.len() > 0 && m.timers.top().at <= m.now {
		t := m.timers.top()
		m.timers.remove(t)
		t.fire()
	}
	for m.cfg.NodeExpiry > 0 && m.nodeBeats.first != nil && m.nodeBeats.first.beat+int64(m.cfg.NodeExpiry) <= m.now {
		m.nodeLost(m.nodeBeats.first)
	}
	for m.cfg.MasterExpiry > 0 && m.masterBeats.first != nil && m.masterBeats.first.beat+int64(m.cfg.MasterExpiry) <= m.now {
		m.masterSilent(m.masterBeats.first)
	}
	for m.cfg.ContainerExpiry > 0 {
		c := m.unlaunched.oldest()
		if c == nil || m.containerDeadline(c) > m.now {
			break
		}
		m.containerExpired(c)
	}
	m.settle()
}
