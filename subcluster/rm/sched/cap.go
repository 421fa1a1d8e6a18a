// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// QueueCap is this subcluster's part of a queue's federation-wide maximum. It applies beside the queue's own maximum.
// When its lease expires, no more is allocated in the queue. With a label it limits the queue's whole use of nodes
// with that label, including borrowed resources.
type QueueCap struct {
	Queue   creel.QueuePath
	Label   string         // "" for nodes without one
	Cap     creel.Resource // applies to memory and vcores, and to other types that Maximum names
	Until   time.Time      // by the scheduler's time
	Version int64          // a version older than the current one is ignored
	Maximum creel.Resource // of the federation, for Why
	Short   creel.Resource // requested and not granted yet, for Why
	Reason  string         // why it is not granted, for Why
}

// queueCap is a cap in force.
type queueCap struct {
	QueueCap
	amount amounts.Vec
	until  int64
}

// capKey identifies a cap.
type capKey struct {
	queue creel.QueuePath
	label string
}

// SetCap sets a cap, even for a queue or label that does not exist yet. Containers above it keep running. Schedule is
// due.
func (s *Scheduler) SetCap(c QueueCap) {
	of := capKey{c.Queue, c.Label}
	old := s.caps[of]
	if old != nil && c.Version < old.Version {
		return
	}
	k := &queueCap{QueueCap: c, amount: s.sizes.Vec(c.Cap)}
	if !c.Until.IsZero() {
		k.until = c.Until.UnixNano()
	}
	for i := 2; i < s.sizes.N; i++ {
		if c.Maximum.Get(s.sizes.Names[i]) == 0 {
			k.amount.Set(i, amounts.Unbounded)
		}
	}
	s.caps[of] = k
	if p := s.partition(c.Label); p != nil {
		p.capChanged(old, k)
	}
}

// ClearCap removes a queue's cap on nodes of a label: it has no federation-wide maximum there any more.
func (s *Scheduler) ClearCap(q creel.QueuePath, label string) {
	of := capKey{q, label}
	if old := s.caps[of]; old != nil {
		delete(s.caps, of)
		if p := s.partition(label); p != nil {
			p.capChanged(old, nil)
		}
	}
}

// capChanged retries the asks that the old cap stopped. A longer lease of the same amount has no effect, unless the
// old lease had expired.
func (s *Scheduler) capChanged(old, to *queueCap) {
	if old != nil && to != nil {
		if q := s.tree.byPath[to.Queue]; q != nil {
			q.cap = to
			q.limit()
		}
		if old.amount.Is(&to.amount) && s.now < old.until {
			return
		}
		s.loosen()
	} else {
		s.resize()
	}
}

// underCap reports whether a queue's cap permits have and need together.
func (q *Queue) underCap(have, need *amounts.Vec) bool {
	return q.s.now < q.cap.until && q.s.sizes.FitsPlus(have, need, &q.cap.amount)
}

// underCaps reports whether the caps of a queue and its ancestors permit need more. Borrowing asks (lend.go) are
// subject only to these.
func (q *Queue) underCaps(need *amounts.Vec) bool {
	for ; q != nil; q = q.parent {
		if q.sized().cap == nil {
			continue
		}
		have := q.used
		have.Add(&q.held)
		if !q.underCap(&have, need) {
			return false
		}
	}
	return true
}

// limit computes a queue's limit from its maximum and its cap, so that a cap costs an allocation no further
// comparison.
func (q *Queue) limit() {
	q.most, q.until = q.max, math.MaxInt64
	if q.cap != nil {
		q.most.Min(&q.cap.amount)
		q.until = q.cap.until
	}
}

// limitByCap reduces a queue's limit to its cap.
func (q *Queue) limitByCap(v *amounts.Vec) {
	if q.s.now >= q.cap.until {
		*v = amounts.Vec{}
		return
	}
	v.Min(&q.cap.amount)
}
