// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// QueueCap is this subcluster's part of a queue's federation-wide maximum. It
// binds beside the queue's own maximum, and only until its lease is over: then
// nothing more is allocated in the queue.
type QueueCap struct {
	Queue   creel.QueuePath
	Cap     creel.Resource // memory and vcores bind; of other types those that Maximum names
	Until   time.Time      // by the machine's time
	Version int64          // an older one than is in force is ignored
	Maximum creel.Resource // of the federation, for Why
	Short   creel.Resource // asked for and not given yet, for Why
	Reason  string         // why it is not, for Why
}

// queueCap is one in force.
type queueCap struct {
	QueueCap
	amount vec
	until  int64
}

// SetQueueCap puts a cap in force; it holds for a queue that does not exist yet
// too. What runs above it goes on running.
func (m *Machine) SetQueueCap(now time.Time, c QueueCap) {
	m.at(now)
	old := m.caps[c.Queue]
	if old != nil && c.Version < old.Version {
		return
	}
	k := &queueCap{QueueCap: c, amount: m.t.vec(c.Cap), until: nanos(c.Until)}
	for i := 2; i < m.t.n; i++ {
		if c.Maximum.Get(m.t.names[i]) == 0 {
			k.amount.set(i, unbounded)
		}
	}
	if m.caps == nil {
		m.caps = map[creel.QueuePath]*queueCap{}
	}
	m.caps[c.Queue] = k
	m.capChanged(old, k)
}

// ClearQueueCap lifts a queue's cap: it has no federation-wide maximum any more.
func (m *Machine) ClearQueueCap(now time.Time, q creel.QueuePath) {
	m.at(now)
	if old := m.caps[q]; old != nil {
		delete(m.caps, q)
		m.capChanged(old, nil)
	}
}

// capChanged has those tried again that the old cap stopped. A longer lease of
// the same amount changes nothing for anybody, unless the old one was over.
func (m *Machine) capChanged(old, now *queueCap) {
	if old != nil && now != nil {
		if q := m.tree.byPath[now.Queue]; q != nil {
			q.cap = now
		}
		if old.amount.is(&now.amount) && m.now < old.until {
			return
		}
		m.loosen()
	} else {
		m.resize()
	}
	m.settle()
}

// underCap asks a queue's cap whether it may use have and need together.
func (m *Machine) underCap(q *queue, have, need *vec) bool {
	return m.now < q.cap.until && m.t.fitsPlus(have, need, &q.cap.amount)
}

// limitByCap cuts what a queue may use by its cap.
func (m *Machine) limitByCap(q *queue, v *vec) {
	if m.now >= q.cap.until {
		*v = vec{}
		return
	}
	v.min(&q.cap.amount)
}

// QueueUse is what the escrow of a queue asks for: containers and reservations,
// and with what its applications wait for. False if there is no such queue.
func (m *Machine) QueueUse(path creel.QueuePath) (uses, needs creel.Resource, ok bool) {
	q := m.tree.byPath[path]
	if q == nil || q.removed {
		return uses, needs, false
	}
	u := q.used
	u.add(&q.held)
	n := u
	n.add(&q.pending)
	return m.t.resource(&u), m.t.resource(&n), true
}

// whyCap tells of an ask that a queue's cap stops.
func (m *Machine) whyCap(q *queue, need creel.Resource, w *Why) {
	c := q.cap
	have := q.used
	have.add(&q.held)
	w.Used, w.Bound = m.t.resource(&have), c.Cap
	w.Text = fmt.Sprintf(
		"Queue %s may use %s here of %s in the federation until %s and uses %s; one more container needs %s.",
		q.path, c.Cap, c.Maximum, c.Until.UTC().Format(time.TimeOnly), w.Used, need)
	if m.now >= c.until {
		w.Bound = creel.Resource{}
		w.Text = fmt.Sprintf(
			"The right of queue %s to use %s here of %s in the federation was over at %s and is not renewed.",
			q.path, c.Cap, c.Maximum, c.Until.UTC().Format(time.TimeOnly))
	}
	if !c.Short.IsZero() {
		w.Text += fmt.Sprintf(" %s more is asked for", c.Short)
		if c.Reason != "" {
			w.Text += ": " + c.Reason
		}
		w.Text += "."
	}
	w.Try = "wait until containers of the queue end anywhere in the federation, or raise its maximum " +
		"in the federation's queue tree"
}
