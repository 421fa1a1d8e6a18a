// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel/subcluster/rm/queues"

// Orders say who is served next: among the applications of a leaf, and among
// the children of a parent. Each policy has a file with its comparison; rank
// holds what is compared between queues, recomputed when a queue's use changes
// and the queue waits for something (an idle queue costs nothing).
type rank struct {
	ratio  float64 // used over guaranteed, or share over weight
	needy  bool    // FairScheduler: below its minimum share
	needed float64 // FairScheduler: used over minimum share
	under  bool    // at most its guarantee
}

// appOrder is the order of applications in a leaf.
func (q *queue) appOrder() func(a, b *app) bool {
	switch q.policy {
	case queues.FairShare, queues.DRF, queues.HDRF:
		return fairApps
	case queues.PriorityFirst:
		return priorityApps
	case queues.PolicyDefault:
		if q.m.tree.spec.Scheduler == queues.FairScheduler {
			return fairApps
		}
	}
	return fifoApps
}

// queueOrder is the order of the children of a parent.
func (q *queue) queueOrder() func(a, b *queue) bool {
	switch q.effective() {
	case queues.FairShare, queues.DRF:
		return fairQueues
	case queues.HDRF:
		return hdrfQueues
	case queues.PriorityUtilization:
		return priorityUseQueues
	case queues.Fifo:
		return fifoQueues
	case queues.PriorityFirst:
		return priorityQueues
	}
	return useQueues
}

// effective is the policy with the scheduler's default filled in.
func (q *queue) effective() queues.Policy {
	if q.policy != queues.PolicyDefault {
		return q.policy
	}
	switch {
	case q.m.tree.spec.Scheduler == queues.FairScheduler:
		return queues.FairShare
	case q.leaf != nil:
		return queues.Fifo
	}
	return queues.Utilization
}

// rerank notes that the queue's use changed: its place among those that wait is
// another. It moves when the order is asked for, so that ten containers that
// end together move it once; until then all keep the rank they had.
func (q *queue) rerank() {
	if !q.outranked && q.slot != 0 {
		q.outranked = true
		q.m.outranked = append(q.m.outranked, q)
	}
}

// order moves those whose use changed to their places. It is called before the
// order of service is asked for.
func (m *Machine) order() {
	for _, q := range m.outranked {
		q.outranked = false
		if q.slot == 0 {
			continue
		}
		if h := &q.parent.ready; h.len() > 1 {
			q.rank = q.ranked()
			h.fix(q)
		} // else it waits alone, and is ranked when another comes (enter)
	}
	m.outranked = m.outranked[:0]
}

func (q *queue) ranked() rank {
	switch q.parent.effective() {
	case queues.FairShare:
		return fairRank(q)
	case queues.DRF:
		return drfRank(q)
	case queues.HDRF:
		return hdrfRank(q)
	case queues.Fifo, queues.PriorityFirst:
		return rank{}
	}
	return useRank(q)
}

// rerank recomputes what the application is ordered by, and moves it.
func (a *app) rerank() {
	if a.slot == 0 || !a.queue.byUse {
		return
	}
	a.ratio = a.share()
	u := a.user
	u.apps.fix(a)
	u.q.users.fix(u)
}

// share is the application's use over its weight, by the leaf's policy.
func (a *app) share() float64 {
	m := a.queue.m
	switch a.queue.effective() {
	case queues.FairShare:
		return float64(a.used.mem)
	case queues.DRF, queues.HDRF, queues.PriorityFirst:
		return m.t.dominant(&a.used, &m.total)
	}
	return 0
}
