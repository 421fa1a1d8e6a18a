// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Allocate is one heartbeat of an AM: it changes its asks, releases containers, and fetches its grants. The same
// response has the grants that its own asks cause now.
func (m *Machine) Allocate(now time.Time, id creel.AttemptID, r *AllocateRequest) (*Answer, error) {
	m.at(now)
	t, err := m.apps.conversing(id)
	if err != nil {
		return nil, err
	}
	if !t.registered || t.state != tRunning {
		return nil, refusal(creel.ErrNotRegistered, amNotRegistered, id)
	}
	m.attempts.alive(t)
	switch {
	case r.ResponseID == t.responseID:
	case t.answer != nil && (r.ResponseID == t.answeredID || (r.ResponseID+1)&0x7fffffff == t.responseID):
		t.done = append(t.done, takePlaced(m, t, r.Placed)...)
		t.answer.Duplicate = true
		return t.answer, nil
	default:
		return nil, refusal(ErrOutOfStep, wrongResponseID, id, t.responseID, r.ResponseID)
	}
	sizes, err := m.checkAllocate(t, r)
	if err != nil {
		return nil, err
	}
	a := t.app
	if len(r.Asks) > 0 {
		m.prefetchCall(t, r.Asks)
	}
	m.attempts.acknowledged(t)
	t.reuseAnswer()
	a.progress = 0
	if r.Progress >= 0 { // and not NaN
		a.progress = min(r.Progress, 1)
	}
	if r.TrackingURL != "" {
		t.url = r.TrackingURL
	}
	a.Avoid(r.BlacklistAdd, r.BlacklistRemove)
	t.inCall = true
	refused := takePlaced(m, t, r.Placed)
	t.unplaced = r.Unplaced
	for rest := r.Release; len(rest) > 0; {
		k := min(len(rest), sched.Prefetched)
		m.releaseAll(t, rest[:k])
		rest = rest[k:]
	}
	t.request(m, r.Asks, sizes)
	order := m.placingOrder(r.Scheduling)
	if len(order) > 1 && m.cfg.Constraints == ConstraintsTried {
		m.sched.Enroll(&a.App)
		m.settle()
	}
	for k, i := range order {
		p := m.place(t, &r.Scheduling[i], &sizes[len(r.Asks)+i])
		if k < len(order)-1 && m.cfg.Constraints == ConstraintsTried {
			m.sched.Tags().Serve(&a.App, p.request(), p.want) // each is placed before the next is considered
		}
	}
	if len(r.Updates) > 0 {
		(&updates{m: m, t: t}).apply(r.Updates)
	}
	if len(r.Asks)+len(r.Scheduling) > 0 || len(r.BlacklistRemove) > 0 {
		m.serve(t)
	} else {
		m.sched.Enroll(&a.App)
		m.settle()
	}
	if m.opportunistic != nil {
		m.opportunistic.serve(t)
	}
	out := m.answerFor(t)
	t.done = append(t.done, refused...) // for the next answer: with this one the AM gets these containers
	if len(t.placing.list) > 0 {
		out.Rejected = m.giveUp(t, out.Rejected)
	}
	t.inCall = false
	return out, nil
}

// request applies the asks of a call, with their normalized sizes.
func (t *attempt) request(m *Machine, asks []Ask, sizes []amounts.Vec) {
	labels := m.labels.asked
	var last *sched.Ask
	for i := range asks {
		k := &asks[i]
		label := ""
		if len(labels) > 0 {
			label = labels[i]
		}
		if k.ExecutionType == creel.Opportunistic && m.opportunistic != nil {
			m.opportunistic.ask(t, k, label, &sizes[i])
			continue
		}
		last = m.sched.Request(&t.app.App, last, &sched.Request{
			Label:               label,
			Priority:            k.Priority,
			Count:               k.Count,
			AllocationRequestID: k.AllocationRequestID,
			ResourceName:        k.ResourceName,
			ExecutionType:       k.ExecutionType,
			StrictLocality:      k.StrictLocality,
			Enforced:            k.EnforceExecution,
		}, &sizes[i])
	}
}

// serve grants an attempt the containers that its asks can get at once.
func (m *Machine) serve(t *attempt) {
	m.sched.Enroll(&t.app.App)
	m.settle()
	m.sched.Serve(&t.app.App)
	m.settle()
}

// checkAllocate rejects an invalid request as a whole, before any of it is applied. It returns the normalized sizes
// of the asks.
func (m *Machine) checkAllocate(t *attempt, r *AllocateRequest) ([]amounts.Vec, error) {
	largest := t.app.Queue().Largest()
	labels, err := m.labels.ofAsks(t, r.Asks)
	if err != nil {
		return nil, err
	}
	m.labels.asked = labels
	sizes := m.normalized[:0]
	for i := range r.Asks {
		q := &r.Asks[i]
		if q.Count < 0 {
			return nil, refusal(creel.ErrInvalidResource, negativeCount, q.Count)
		}
		var v amounts.Vec
		if q.ResourceName == sched.AnyPlace || q.ResourceName == "" || q.Resource.MemoryMB < 0 ||
			q.Resource.MemoryMB > largest.Memory || q.ExecutionType == creel.Opportunistic {
			var err error
			if v, err = m.sizes.Normalize(q.Resource, largest); err != nil {
				return nil, err
			}
		}
		sizes = append(sizes, v)
	}
	if len(r.Scheduling) > 0 {
		if sizes, err = m.checkScheduling(t, r.Scheduling, sizes); err != nil {
			return nil, err
		}
	}
	m.normalized = sizes
	for _, name := range r.BlacklistAdd {
		if name == sched.AnyPlace {
			return nil, refusal(ErrInvalidBlacklist, blacklistOfAll)
		}
	}
	for i := range r.Release {
		if cid := &r.Release[i]; cid.Attempt != t.id {
			if !t.app.sub.KeepContainers {
				return nil, refusal(ErrInvalidRelease, foreignRelease, cid, t.id)
			}
		}
	}
	return sizes, nil
}

// releaseAll releases the containers among these ids that belong to the attempt.
func (m *Machine) releaseAll(t *attempt, ids []creel.ContainerID) {
	var list [sched.Prefetched]*container
	n := 0
	for i := range ids {
		c := t.live.Get(ids[i].ID)
		if ids[i].Attempt != t.id {
			c = m.apps.container(ids[i]) // retained from an earlier attempt
		}
		if c != nil {
			list[n] = c
			n++
		} else {
			m.releaseLater(t, ids[i])
		}
	}
	m.containers.prefetchCompletions(list[:n])
	for _, c := range list[:n] {
		if c.owner() == t && !c.am { // an id that occurs twice has no owner the second time
			m.containers.release(c)
		}
	}
}

// mostReleased limits the stored releases of earlier epochs' containers whose nodes have not registered yet.
const mostReleased = 10_000

// releaseLater records the release of a container of an earlier epoch whose node has not registered yet. It is
// released when the node reports it. Hadoop's scheduler stores such releases too
// (SchedulerApplicationAttempt.getPendingRelease).
func (m *Machine) releaseLater(t *attempt, id creel.ContainerID) {
	of := m.apps.attempt(id.Attempt)
	if of == nil || of.app != t.app || !of.recovered || id == of.am || id.Epoch() >= m.cfg.Epoch ||
		len(of.released) >= mostReleased {
		return
	}
	if _, known := of.endedBefore[id.ID]; known {
		return
	}
	if of.released == nil {
		of.released = map[int64]struct{}{}
	}
	of.released[id.ID] = struct{}{}
}
