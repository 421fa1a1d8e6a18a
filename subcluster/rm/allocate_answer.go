// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
)

// An attempt's last answer is retained, because its AM may request it again; the next answer reuses its memory. The
// machine owns it; code that passes it to another goroutine clones it first. If callers owned answers, the server
// would save a copy of their content. That is 1 to 2 KB of the 70 KB that an allocate of ten containers costs
// (BenchmarkContainers in rm/rpc). But the machine would lose 17 % of its grants per second with large answers
// (BenchmarkEqualAsks).

// Clone returns a copy of the answer that the machine does not modify. Its grants and nodes point to shared,
// immutable data.
func (a *Answer) Clone() Answer {
	out := *a
	out.Granted, out.FromPrevious = slices.Clone(a.Granted), slices.Clone(a.FromPrevious)
	out.Completed = slices.Clone(a.Completed)
	out.Updated, out.UpdateErrors = slices.Clone(a.Updated), slices.Clone(a.UpdateErrors)
	out.Rejected = slices.Clone(a.Rejected)
	out.UpdatedNodes, out.NMTokens = slices.Clone(a.UpdatedNodes), slices.Clone(a.NMTokens)
	out.Preempt = slices.Clone(a.Preempt)
	return out
}

// reuseAnswer prepares the memory of the last answer, which the new call has acknowledged, for the next one.
// Completions of this call are written there directly.
func (t *attempt) reuseAnswer() {
	if t.answer == nil {
		t.answer = &Answer{}
	}
	clear(t.answer.Completed)
	t.answer.Completed = t.answer.Completed[:0]
	if len(t.done) == 0 {
		t.done, t.answer.Completed = t.answer.Completed, t.done
	}
}

// answer collects the attempt's next answer.
func (l *attemptLife) answer(t *attempt) *Answer {
	m := l.m
	out := t.answer
	*out = Answer{
		Granted:      out.Granted[:0],
		Completed:    out.Completed[:0],
		Updated:      out.Updated[:0],
		UpdateErrors: out.UpdateErrors[:0],
		FromPrevious: out.FromPrevious[:0],
		UpdatedNodes: out.UpdatedNodes[:0],
		NMTokens:     out.NMTokens[:0],
		Preempt:      out.Preempt[:0],
		Rejected:     out.Rejected[:0],
	}
	t.answeredID, t.responseID = t.responseID, (t.responseID+1)&0x7fffffff
	if t.resumeAt != 0 {
		t.responseID, t.resumeAt = t.resumeAt, 0
	}
	out.ResponseID = t.responseID
	l.prefetchTokens(t)
	for _, c := range t.fresh {
		if c.state == cAllocated {
			c.state = cAcquired
		}
		out.Granted = append(out.Granted, m.containers.grantOf(c))
		if l.token(t, c.node) {
			out.NMTokens = append(out.NMTokens, c.node.at)
		}
	}
	clear(t.fresh)
	t.fresh = t.fresh[:0]
	out.FromPrevious, out.NMTokens = l.takePrevious(t, out.FromPrevious, out.NMTokens)
	out.Completed, t.done = t.done, out.Completed
	t.unconfirmed = true
	for i := range out.Completed {
		if c := &out.Completed[i]; c.node != nowhere {
			t.acks = append(t.acks, ack{c.ID.ID, c.ID.Attempt.Attempt, c.node})
		}
	}
	for i := range t.updated {
		if c := m.apps.container(t.updated[i].Grant.ID); c != nil && l.token(t, c.node) {
			out.NMTokens = append(out.NMTokens, c.node.at)
		}
	}
	out.Updated = append(out.Updated, t.updated...)
	t.updated = t.updated[:0]
	out.UpdateErrors = append(out.UpdateErrors, t.errors...)
	t.errors = t.errors[:0]
	out.UpdatedNodes = append(out.UpdatedNodes, t.nodes...)
	t.nodes = t.nodes[:0]
	room := t.app.App.Headroom()
	total, nodes := m.sched.Total()
	out.Headroom = m.sizes.Resource(&room)
	out.Nodes = int32(nodes)
	out.Priority = t.app.Priority()
	_, out.PendingContainers = t.app.Pending()
	out.ActiveCores = int32(min(total.VCores, 1<<31-1))
	t.newsSent = false
	if len(t.victims) > 0 {
		m.victims.underNotice(t, out)
	}
	return out
}

// takePrevious adds the retained containers that are still live, and the nodes they need tokens for. A registered AM
// received its own attempt's containers when they were granted, as in Hadoop
// (SchedulerApplicationAttempt.addRMContainer). A UAM's proxy may have been replaced by one that did not receive
// them.
func (l *attemptLife) takePrevious(t *attempt, grants []Grant, tokens []*Place) ([]Grant, []*Place) {
	m := l.m
	for _, id := range t.previous {
		if t.registered && id.Attempt == t.id && !t.app.sub.Unmanaged {
			continue
		}
		if c := m.apps.container(id); c != nil && c.owner() == t {
			grants = append(grants, m.containers.grantOf(c))
			if l.token(t, c.node) {
				tokens = append(tokens, c.node.at)
			}
		}
	}
	t.previous = nil
	return grants, tokens
}

// token reports whether the attempt needs an NM token for a node. It does for its first container there, and for the
// first since the node registered or a key was rolled.
func (l *attemptLife) token(t *attempt, n *node) bool {
	if t.tokenEpoch != l.tokenEpoch {
		t.tokenEpoch = l.tokenEpoch
		t.nodeSets.DropAll(nodeset.Token)
	}
	if t.nodeSets.Has(nodeset.Token, n.Serial()) {
		return false
	}
	t.nodeSets.Add(nodeset.Token, n.Serial())
	// Every node that ran a part of the application must learn of its end. Otherwise the node never deletes the
	// application and its logs.
	t.nodeSets.Add(nodeset.Ran, n.Serial())
	return true
}

// voidTokens runs after a node has registered again: AMs need new tokens for it.
func (l *attemptLife) voidTokens(n *node) {
	for _, a := range l.m.apps.list {
		if t := a.current; t != nil {
			t.nodeSets.Drop(nodeset.Token, n.Serial())
		}
	}
}

// acknowledged runs when the AM calls again, which proves that it received its last answer: nodes may delete the
// completions in that answer.
func (l *attemptLife) acknowledged(t *attempt) {
	m := l.m
	l.prefetchAcks(t.acks)
	id := creel.ContainerID{Attempt: t.id}
	for _, k := range t.acks {
		id.Attempt.Attempt, id.ID = k.attempt, k.seq
		m.nodes.commands.Forget(k.node, id)
	}
	t.unconfirmed, t.acks = false, t.acks[:0]
}

// ackAll lets nodes delete all completions of an attempt that no call will fetch. If the next attempt retains the
// containers, it receives the completions of an unacknowledged answer again: this attempt may have died before the
// answer arrived.
func (l *attemptLife) ackAll(t *attempt) {
	if t.app.sub.KeepContainers && !t.app.state.ended() {
		t.done = append(slices.Clone(t.unacknowledged()), t.done...)
		t.unconfirmed, t.acks = false, t.acks[:0]
		return
	}
	l.acknowledged(t)
	l.forgetEnds(t)
}

// forgetEnds lets nodes delete the completions that an attempt has not fetched.
func (l *attemptLife) forgetEnds(t *attempt) {
	for i := range t.done {
		if t.done[i].node != nowhere {
			l.m.nodes.commands.Forget(t.done[i].node, t.done[i].ID)
		}
	}
	t.done = nil
}

// news reports once that the attempt has something to fetch.
func (l *attemptLife) news(t *attempt) {
	if !t.newsSent && !t.inCall {
		t.newsSent = true
		l.m.out.act(News{Attempt: t.id})
	}
}
