// SPDX-License-Identifier: Apache-2.0

package rm

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
	case FairShare, DRF, HDRF:
		return fairApps
	case PriorityFirst:
		return priorityApps
	case PolicyDefault:
		if q.m.tree.spec.Scheduler == Fair {
			return fairApps
		}
	}
	return fifoApps
}

// queueOrder is the order of the children of a parent.
func (q *queue) queueOrder() func(a, b *queue) bool {
	switch q.effective() {
	case FairShare, DRF:
		return fairQueues
	case HDRF:
		return hdrfQueues
	case PriorityUtilization:
		return priorityUseQueues
	case Fifo:
		return fifoQueues
	case PriorityFirst:
		return priorityQueues
	}
	return useQueues
}

// effective is the policy with the scheduler's default filled in.
func (q *queue) effective() Policy {
	if q.policy != PolicyDefault {
		return q.policy
	}
	switch {
	case q.m.tree.spec.Scheduler == Fair:
		return FairShare
	case q.leaf != nil:
		return Fifo
	}
	return Utilization
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
	case FairShare:
		return fairRank(q)
	case DRF:
		return drfRank(q)
	case HDRF:
		return hdrfRank(q)
	case Fifo, PriorityFirst:
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
	case FairShare:
		return float64(a.used.mem)
	case DRF, HDRF, PriorityFirst:
		return m.t.dominant(&a.used, &m.total)
	}
	return 0
}
