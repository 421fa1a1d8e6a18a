// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
)

// An attempt's last answer is kept, for its AM may call for it again, and its
// memory is that of the next one: the machine owns it, and who hands it to
// another goroutine clones it. Answers that belong to the caller would spare the
// server a copy of what is in them, 1 to 2 KB of the 70 KB that an allocate of ten
// containers costs (BenchmarkContainers in rm/rpc), and cost the machine 17 % of
// the grants a second that large answers reach (BenchmarkEqualAsks).

// Clone returns a copy of the answer that the machine does not write to again.
// What its grants and nodes point at never changes and is shared.
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

// reuseAnswer makes room for the next answer in the place of the last, which the
// call that begins has acknowledged. Completions of this call go straight there.
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

// answerFor gathers what the attempt is to be told.
func (m *Machine) answerFor(t *attempt) *Answer {
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
	m.prefetchTokens(t)
	for _, c := range t.fresh {
		if c.state == cAllocated {
			c.state = cAcquired
		}
		out.Granted = append(out.Granted, m.grantOf(c))
		if m.token(t, c.node) {
			out.NMTokens = append(out.NMTokens, c.node.at)
		}
	}
	clear(t.fresh)
	t.fresh = t.fresh[:0]
	out.FromPrevious, out.NMTokens = m.takePrevious(t, out.FromPrevious, out.NMTokens)
	out.Completed, t.done = t.done, out.Completed
	t.unconfirmed = true
	for i := range out.Completed {
		c := &out.Completed[i]
		t.acks = append(t.acks, ack{c.ID.ID, c.ID.Attempt.Attempt, c.node})
	}
	out.Updated = append(out.Updated, t.updated...)
	t.updated = t.updated[:0]
	out.UpdateErrors = append(out.UpdateErrors, t.errors...)
	t.errors = t.errors[:0]
	out.UpdatedNodes = append(out.UpdatedNodes, t.nodes...)
	t.nodes = t.nodes[:0]
	room := m.sched.Headroom(&t.app.App)
	total, nodes := m.sched.Total()
	out.Headroom = m.sizes.Resource(&room)
	out.Nodes = int32(nodes)
	out.Priority = t.app.Priority()
	_, out.PendingContainers = t.app.Pending()
	out.ActiveCores = int32(min(total.VCores, 1<<31-1))
	t.newsSent = false
	if len(t.victims) > 0 {
		m.underNotice(t, out)
	}
	return out
}

// takePrevious tells of the kept containers that still live, and of the nodes
// they need tokens for. An AM that is registered was told of those of its own attempt when
// they were granted, as with Hadoop's (SchedulerApplicationAttempt.addRMContainer); a UAM's
// proxy may be another that was not.
func (m *Machine) takePrevious(t *attempt, grants []Grant, tokens []*Place) ([]Grant, []*Place) {
	for _, id := range t.previous {
		if t.registered && id.Attempt == t.id && !t.app.sub.Unmanaged {
			continue
		}
		if c := m.container(id); c != nil && c.owner() == t {
			grants = append(grants, m.grantOf(c))
			if m.token(t, c.node) {
				tokens = append(tokens, c.node.at)
			}
		}
	}
	t.previous = nil
	return grants, tokens
}

// token reports whether the attempt needs an NM token for a node: its first
// container there, or the first since the node registered or a key was rolled.
func (m *Machine) token(t *attempt, n *node) bool {
	if t.tokenEpoch != m.tokenEpoch {
		t.tokenEpoch = m.tokenEpoch
		t.nodeSets.DropAll(nodeset.Token)
	}
	if t.nodeSets.Has(nodeset.Token, n.Serial()) {
		return false
	}
	t.nodeSets.Add(nodeset.Token, n.Serial())
	// The application's end must be told where anything of it ran, or the node
	// keeps it, and its logs, for ever.
	t.nodeSets.Add(nodeset.Ran, n.Serial())
	return true
}

// voidTokens: a node has registered anew, so AMs need new tokens for it.
func (m *Machine) voidTokens(n *node) {
	for _, a := range m.appList {
		if t := a.current; t != nil {
			t.nodeSets.Drop(nodeset.Token, n.Serial())
		}
	}
}

// acknowledged: the AM calls again, so it has its last answer; nodes may forget
// the completions it was told of.
func (m *Machine) acknowledged(t *attempt) {
	m.prefetchAcks(t.acks)
	id := creel.ContainerID{Attempt: t.id}
	for _, k := range t.acks {
		id.Attempt.Attempt, id.ID = k.attempt, k.seq
		m.commands.Forget(k.node, id)
	}
	t.unconfirmed, t.acks = false, t.acks[:0]
}

// ackAll lets nodes forget all completions of an attempt that nobody will fetch.
// The next attempt, which keeps the containers, hears again of those in an answer that this one
// has not acknowledged: it may have died before that came.
func (m *Machine) ackAll(t *attempt) {
	if t.app.sub.KeepContainers && !t.app.state.ended() {
		t.done = append(slices.Clone(t.told()), t.done...)
		t.unconfirmed, t.acks = false, t.acks[:0]
		return
	}
	m.acknowledged(t)
	m.forgetEnds(t)
}

// forgetEnds lets nodes forget the ends of containers that an attempt has not fetched.
func (m *Machine) forgetEnds(t *attempt) {
	for i := range t.done {
		m.commands.Forget(t.done[i].node, t.done[i].ID)
	}
	t.done = nil
}

// news tells once that there is something to fetch.
func (m *Machine) news(t *attempt) {
	if !t.newsSent && !t.inCall {
		t.newsSent = true
		m.act(News{Attempt: t.id})
	}
}
