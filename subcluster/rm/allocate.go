// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// RegisterAM is registerApplicationMaster: it opens the conversation of an
// attempt. Response ids start at 0.
func (m *Machine) RegisterAM(now time.Time, r *RegisterAM) (Registered, error) {
	m.at(now)
	t, err := m.conversing(r.Attempt)
	if err != nil {
		return Registered{}, err
	}
	a := t.app
	if r.Constraints && !m.cfg.SchedulingAsks {
		return Registered{}, &creel.Error{
			Kind: creel.ErrNotEnabled,
			What: "Found non empty placement constraints in register request",
			Why:  "yarn.resourcemanager.placement-constraints.handler is disabled",
			Try:  "set it to scheduler or placement-processor",
		}
	}
	again := a.sub.Unmanaged && a.sub.KeepContainers
	if t.registered && !again {
		return Registered{}, &creel.Error{
			Kind: ErrAlreadyRegistered,
			What: "Application Master is already registered : " + a.id.String(),
		}
	}
	switch t.state {
	case tLaunched, tRunning:
	case tAllocated: // the AM was quicker than the answer of its node
		m.launched(t)
	default:
		return Registered{}, &creel.Error{
			Kind: ErrOutOfStep,
			What: fmt.Sprintf("Application Master of %s must register after it is LAUNCHED", t.id),
			Why:  "the attempt is " + t.state.String(),
			Try:  "wait for the state LAUNCHED in its report",
		}
	}
	m.alive(t)
	t.host, t.port, t.url = r.Host, r.Port, r.TrackingURL
	t.responseID = 0
	t.state = tRunning
	if a.state == appAccepted {
		a.state = appRunning
	}
	q := a.Queue()
	out := Registered{
		Queue:         q.Path(),
		MaxAllocation: m.sizes.Resource(q.Largest()),
		MemoryOnly:    m.sizes.Check == 1,
	}
	if a.sub.KeepContainers {
		if t.registered {
			t.previous = t.previous[:0]
			for c := range t.containers() {
				if c.state != cAllocated && !c.am {
					t.previous = append(t.previous, c.id())
				}
			}
			t.nodeSets.DropAll(nodeset.Token) // it asks for all of them again
			// It never acknowledged its last answer: the completions in it are told again.
			t.done = append(slices.Clone(t.told()), t.done...)
			t.unconfirmed, t.acks = false, t.acks[:0]
		}
		out.Previous, out.NMTokens = m.takePrevious(t, nil, nil)
	}
	t.registered, t.answer = true, nil
	m.settle()
	return out, nil
}

// conversing finds the attempt an AM speaks for, if it is the current one
// and not over.
func (m *Machine) conversing(id creel.AttemptID) (*attempt, error) {
	a := m.apps[id.Application]
	if a == nil || a.current == nil || a.current.id.Attempt != id.Attempt || a.current.over() || a.state.ended() {
		return nil, noAttempt(id)
	}
	return a.current, nil
}

// Allocate is one heartbeat of an AM: it changes its asks, gives back
// containers, and fetches what it was given. Room that its own asks find now
// is in the same answer.
func (m *Machine) Allocate(now time.Time, id creel.AttemptID, r *AllocateRequest) (*Answer, error) {
	m.at(now)
	t, err := m.conversing(id)
	if err != nil {
		return nil, err
	}
	if !t.registered || t.state != tRunning {
		return nil, &creel.Error{
			Kind: creel.ErrNotRegistered,
			What: "AM is not registered for known application attempt: " + id.String() + " or RM had restarted after AM registered. AM should re-register.",
		}
	}
	m.alive(t)
	switch {
	case r.ResponseID == t.responseID:
	case t.answer != nil && (r.ResponseID+1)&0x7fffffff == t.responseID:
		t.answer.Duplicate = true
		return t.answer, nil
	default:
		return nil, &creel.Error{
			Kind: ErrOutOfStep,
			What: fmt.Sprintf(
				"Invalid responseId in AllocateRequest from application attempt: %s, expect responseId to be %d but get %d",
				id,
				t.responseID,
				r.ResponseID,
			),
		}
	}
	sizes, err := m.checkAllocate(t, r)
	if err != nil {
		return nil, err
	}
	a := t.app
	if len(r.Asks) > 0 {
		m.prefetchCall(t, r.Asks)
	}
	m.acknowledged(t)
	t.reuseAnswer()
	if p := r.Progress; p >= 0 && p <= 1 {
		a.progress = p
	} else if p > 1 {
		a.progress = 1
	} else {
		a.progress = 0
	}
	if r.TrackingURL != "" {
		t.url = r.TrackingURL
	}
	a.Avoid(r.BlacklistAdd, r.BlacklistRemove)
	t.inCall = true
	for rest := r.Release; len(rest) > 0; {
		k := min(len(rest), sched.Prefetched)
		m.releaseAll(t, rest[:k])
		rest = rest[k:]
	}
	var last *sched.Ask
	for i := range r.Asks {
		k := &r.Asks[i]
		last = m.sched.Request(&a.App, last, &sched.Request{
			Priority:            k.Priority,
			Count:               k.Count,
			AllocationRequestID: k.AllocationRequestID,
			ResourceName:        k.ResourceName,
			ExecutionType:       k.ExecutionType,
			StrictLocality:      k.StrictLocality,
		}, &sizes[i])
	}
	if len(r.Scheduling) > 0 {
		t.keepScheduling(r.Scheduling)
	}
	for i := range r.Updates {
		m.update(t, &r.Updates[i])
	}
	m.sched.Enroll(&a.App)
	m.settle()
	if len(r.Asks) > 0 || len(r.BlacklistRemove) > 0 {
		m.sched.Serve(&a.App)
		m.settle()
	}
	out := m.answerFor(t)
	t.inCall = false
	return out, nil
}

// checkAllocate refuses a request as a whole before any of it is done, and
// gives the normalized sizes of its asks.
func (m *Machine) checkAllocate(t *attempt, r *AllocateRequest) ([]amounts.Vec, error) {
	largest := t.app.Queue().Largest()
	sizes := m.normalized[:0]
	for i := range r.Asks {
		q := &r.Asks[i]
		if q.Count < 0 {
			return nil, &creel.Error{
				Kind: creel.ErrInvalidResource,
				What: fmt.Sprintf(
					"Invalid resource request, requested number of containers < 0, numContainers=%d",
					q.Count,
				),
			}
		}
		if q.Label != "" && q.Label != "*" {
			return nil, &creel.Error{
				Kind: ErrInvalidLabel,
				What: "Invalid resource request, node label not enabled but request contains label expression",
			}
		}
		var v amounts.Vec
		if q.ResourceName == sched.AnyPlace || q.ResourceName == "" || q.Resource.MemoryMB < 0 ||
			q.Resource.MemoryMB > largest.Memory {
			var err error
			if v, err = m.sizes.Normalize(q.Resource, largest); err != nil {
				return nil, err
			}
		}
		sizes = append(sizes, v)
	}
	m.normalized = sizes
	for _, name := range r.BlacklistAdd {
		if name == sched.AnyPlace {
			return nil, &creel.Error{Kind: ErrInvalidBlacklist, What: "Cannot add * to the blacklist!"}
		}
	}
	for i := range r.Release {
		if cid := &r.Release[i]; cid.Attempt != t.id {
			if !t.app.sub.KeepContainers {
				return nil, &creel.Error{
					Kind: ErrInvalidRelease,
					What: fmt.Sprintf(
						"Cannot release container : %s not belonging to this application attempt : %s",
						cid,
						t.id,
					),
				}
			}
		}
	}
	if len(r.Scheduling) > 0 && !m.cfg.SchedulingAsks {
		return nil, &creel.Error{
			Kind: creel.ErrNotEnabled,
			What: "Found non empty SchedulingRequest in AllocateRequest",
			Why:  "yarn.resourcemanager.placement-constraints.handler is disabled",
			Try:  "use resource requests, or set it to scheduler or placement-processor",
		}
	}
	return sizes, nil
}

// releaseAll gives back those of ids that the attempt has.
func (m *Machine) releaseAll(t *attempt, ids []creel.ContainerID) {
	var list [sched.Prefetched]*container
	n := 0
	for i := range ids {
		c := t.live.Get(ids[i].ID)
		if ids[i].Attempt != t.id {
			c = m.container(ids[i]) // kept from an earlier attempt
		}
		if c != nil {
			list[n] = c
			n++
		}
	}
	m.prefetchCompletions(list[:n])
	for _, c := range list[:n] {
		if c.owner() == t && !c.am { // an id given twice is nobody's the second time
			m.release(c)
		}
	}
}

// keepScheduling keeps the latest of each (priority, allocation request id).
func (t *attempt) keepScheduling(asks []SchedulingAsk) {
	for _, s := range asks {
		same := func(x SchedulingAsk) bool {
			return x.Priority == s.Priority && x.AllocationRequestID == s.AllocationRequestID &&
				x.ExecutionType == s.ExecutionType &&
				slices.Equal(x.Tags, s.Tags)
		}
		i := slices.IndexFunc(t.scheduling, same)
		switch {
		case s.Count <= 0 && i >= 0:
			t.scheduling = slices.Delete(t.scheduling, i, i+1)
		case s.Count <= 0:
		case i >= 0:
			t.scheduling[i] = s
		default:
			t.scheduling = append(t.scheduling, s)
		}
	}
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
	}
	t.responseID = (t.responseID + 1) & 0x7fffffff
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
	return out
}

// takePrevious tells of the kept containers that still live, and of the nodes
// they need tokens for.
func (m *Machine) takePrevious(t *attempt, grants []Grant, tokens []*Place) ([]Grant, []*Place) {
	for _, id := range t.previous {
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

// news tells once that there is something to fetch.
func (m *Machine) news(t *attempt) {
	if !t.newsSent && !t.inCall {
		t.newsSent = true
		m.act(News{Attempt: t.id})
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
func (m *Machine) ackAll(t *attempt) {
	m.acknowledged(t)
	if t.app.sub.KeepContainers && !t.app.state.ended() {
		return
	}
	for i := range t.done {
		m.commands.Forget(t.done[i].node, t.done[i].ID)
	}
	t.done = nil
}

// FinishAM is finishApplicationMaster. It answers false until the end is
// durable; AMs ask again.
func (m *Machine) FinishAM(now time.Time, r *FinishAM) (bool, error) {
	m.at(now)
	if t := m.attempt(r.Attempt); t != nil && t.app.current == t && t.app.state.ended() {
		return true, nil
	}
	t, err := m.conversing(r.Attempt)
	if err != nil {
		return false, err
	}
	a := t.app
	if !t.registered {
		return false, &creel.Error{
			Kind: creel.ErrNotRegistered,
			What: "Application Master is trying to unregister before registering for: " + a.id.String(),
		}
	}
	if t.state == tRunning {
		m.alive(t)
		t.before, t.target, t.final = tRunning, tFinished, r.Status
		t.state = tFinalSaving
		t.diag = join(t.diag, r.Diagnostics)
		t.url = or(r.TrackingURL, t.url)
		t.finished = m.now
		m.stateChanged(a)
		m.saveAttempt(t, func() {
			if t.state == tFinalSaving {
				t.state = tFinishing
			}
			m.unregistered(t)
		})
		m.finishApp(a, appFinished, r.Status, r.Diagnostics)
		m.settle()
	}
	return t.state != tFinalSaving && a.state != appFinalSaving, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// unregistered: the end is durable. An AM without a container, or whose
// container is gone, is over; another has time to exit.
func (m *Machine) unregistered(t *attempt) {
	if t.app.sub.Unmanaged || m.container(t.am) == nil {
		m.attemptOver(t, tFinished)
		return
	}
	m.dropAsks(t)
	m.stateChanged(t.app)
	m.alive(t)
}
