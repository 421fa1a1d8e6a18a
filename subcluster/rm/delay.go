// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math"

	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Delay scheduling: an ask that names places passes up rooms elsewhere for a
// while, because a local one soon frees itself. The wait is counted in
// opportunities, as in Hadoop: rooms on other nodes that the ask could have
// had. Room is offered the moment it appears, so an opportunity is either such
// an offer or, for rooms that lie free, a heartbeat of a node that has one.
// One counter serves all waiting asks; each keeps the value at which it may go
// one level further.

// delay starts the wait of an ask that found no local room, or lets it go
// further at once if none is configured.
func (m *Machine) delay(w *want) {
	if w.since >= 0 || !w.placed() {
		return
	}
	w.since = m.opps
	m.wait(w)
}

// wait arms the next level of the wait; levels without a wait are passed.
func (m *Machine) wait(w *want) {
	for w.level < atAny {
		if at := m.patience(w); at > m.opps-w.since {
			w.relaxAt = w.since + at
			if w.serial == 0 {
				m.wantSerial++
				w.serial = m.wantSerial
			}
			m.delayed.push(w)
			d := m.tree.spec.NodeLocalityWait
			if w.level == atRack {
				d = m.tree.spec.RackLocalityWait
			}
			if d > 0 {
				w.wake = m.timer(m.now+int64(d), func() { m.relax(w) })
			}
			return
		}
		w.level++
	}
}

// patience is the number of opportunities, since the wait began, after which
// the ask may go beyond its present level.
func (m *Machine) patience(w *want) int64 {
	q := m.tree.spec
	nodes := float64(m.active)
	if q.Scheduler == queues.FairScheduler {
		t := q.NodeLocalityThreshold
		if w.level == atRack {
			t = max(q.NodeLocalityThreshold, 0) + q.RackLocalityThreshold
			if q.RackLocalityThreshold < 0 {
				return 0
			}
		}
		return int64(math.Ceil(max(t, 0) * nodes))
	}
	toRack := min(float64(q.NodeLocalityDelay), nodes)
	var toAny float64
	if extra := q.RackLocalityAdditionalDelay; extra >= 0 {
		toAny = min(max(toRack, 0)+float64(extra), nodes)
	} else {
		unique := float64(max(len(w.hosts)+len(w.racks), 1))
		toAny = float64(w.count) * min(unique/max(nodes, 1), 1)
	}
	if q.NodeLocalityDelay < 0 {
		toRack, toAny = -1, -1
	}
	beyond := toAny
	if w.level == atNode && len(w.hosts) > 0 {
		beyond = toRack
		if toAny <= toRack {
			// The whole wait is shorter than that for the rack: one jump.
			beyond = toAny
		}
	}
	if beyond < 0 {
		return 0
	}
	return int64(math.Floor(beyond)) + 1
}

// opportunity counts one room passed up and lets those go further that have
// waited long enough.
func (m *Machine) opportunity() {
	if m.delayed.len() == 0 {
		return
	}
	m.opps++
	for m.delayed.len() > 0 && m.delayed.top().relaxAt <= m.opps {
		m.relax(m.delayed.top())
	}
}

// relax raises the level of a waiting ask and tries it.
func (m *Machine) relax(w *want) {
	m.delayed.remove(w)
	m.stop(&w.wake)
	if w.level < atAny {
		w.level++
	}
	m.wait(w)
	m.retry(w.attempt.app.queue)
}

// endDelay forgets the wait: a local container was given, or the ask is gone.
func (m *Machine) endDelay(w *want) {
	w.level, w.since = atNode, -1
	m.delayed.remove(w)
	m.stop(&w.wake)
}
