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
	c := allocation{m: m, t: t, AllocateRequest: r}
	repeated := t.answer != nil && (r.ResponseID == t.answeredID || (r.ResponseID+1)&0x7fffffff == t.responseID)
	switch {
	case r.ResponseID == t.responseID:
		if err := c.check(); err != nil {
			return nil, err
		}
		repeated = false
	case !repeated:
		return nil, refusal(ErrOutOfStep, wrongResponseID, id, t.responseID, r.ResponseID)
	}
	refused := takePlaced(m, t, r.Placed)
	if repeated {
		t.answer.Duplicate = true
	} else {
		c.apply()
	}
	t.done = append(t.done, refused...) // for the next answer: with this one the AM gets these containers
	return t.answer, nil
}

// allocation is the call of an AM: check reads it and rejects it as a whole, before apply changes anything.
type allocation struct {
	*AllocateRequest
	m *Machine
	t *attempt

	sizes  []amounts.Vec // normalized, of Asks and then of Scheduling
	labels []string      // of Asks; none while labels are off
}

// apply changes what the AM asks for, serves it, and collects the answer.
func (c *allocation) apply() {
	m, t := c.m, c.t
	if len(c.Asks) > 0 {
		c.prefetch()
	}
	m.attempts.acknowledged(t)
	t.reuseAnswer()
	a := t.app
	a.progress = 0
	if c.Progress >= 0 { // and not NaN
		a.progress = min(c.Progress, 1)
	}
	if c.TrackingURL != "" {
		t.url = c.TrackingURL
	}
	a.Avoid(c.BlacklistAdd, c.BlacklistRemove)
	t.inCall = true
	t.unplaced = c.Unplaced
	for rest := c.Release; len(rest) > 0; {
		k := min(len(rest), sched.Prefetched)
		m.containers.releaseOf(t, rest[:k])
		rest = rest[k:]
	}
	c.ask()
	c.place()
	if len(c.Updates) > 0 {
		(&updates{m: m, t: t}).apply(c.Updates)
	}
	m.sched.Enroll(&a.App)
	m.settle()
	if len(c.Asks)+len(c.Scheduling) > 0 || len(c.BlacklistRemove) > 0 {
		m.sched.Serve(&a.App)
		m.settle()
	}
	if m.opportunistic != nil {
		m.opportunistic.serve(t)
	}
	out := m.attempts.answer(t)
	if len(t.placing.list) > 0 {
		out.Rejected = c.giveUp(out.Rejected)
	}
	t.inCall = false
}

// ask applies the asks.
func (c *allocation) ask() {
	m, t := c.m, c.t
	var last *sched.Ask
	for i := range c.Asks {
		k := &c.Asks[i]
		label := ""
		if len(c.labels) > 0 {
			label = c.labels[i]
		}
		if k.ExecutionType == creel.Opportunistic && m.opportunistic != nil {
			m.opportunistic.ask(t, k, label, &c.sizes[i])
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
		}, &c.sizes[i])
	}
}

// check rejects an invalid call, and sets the sizes and labels of its asks.
func (c *allocation) check() error {
	m, largest := c.m, c.t.app.Queue().Largest()
	var err error
	if c.labels, err = m.labels.ofAsks(c.t, c.Asks); err != nil {
		return err
	}
	m.labels.asked = c.labels
	c.sizes = m.normalized[:0]
	for i := range c.Asks {
		q := &c.Asks[i]
		if q.Count < 0 {
			return refusal(creel.ErrInvalidResource, negativeCount, q.Count)
		}
		var v amounts.Vec
		if q.ResourceName == sched.AnyPlace || q.ResourceName == "" || q.Resource.MemoryMB < 0 ||
			q.Resource.MemoryMB > largest.Memory || q.ExecutionType == creel.Opportunistic {
			var err error
			if v, err = m.sizes.Normalize(q.Resource, largest); err != nil {
				return err
			}
		}
		c.sizes = append(c.sizes, v)
	}
	if len(c.Scheduling) > 0 {
		if err := c.checkScheduling(); err != nil {
			return err
		}
	}
	m.normalized = c.sizes
	for _, name := range c.BlacklistAdd {
		if name == sched.AnyPlace {
			return refusal(ErrInvalidBlacklist, blacklistOfAll)
		}
	}
	for i := range c.Release {
		if cid := &c.Release[i]; cid.Attempt != c.t.id && !c.t.app.sub.KeepContainers {
			return refusal(ErrInvalidRelease, foreignRelease, cid, c.t.id)
		}
	}
	return nil
}

// prefetch reads the memory that a call with asks will touch. This is its application, the names in it, and the
// places of its containers and its answer.
func (c *allocation) prefetch() {
	m, t, asks := c.m, c.t, c.Asks
	m.sched.PrefetchApp(&t.app.App, asks[0].Priority)
	sum := int64(t.live.Prefetch(t.lastSeq))
	for i := range asks[:min(len(asks), sched.Prefetched)] {
		if s := asks[i].ResourceName; s != "" {
			sum += int64(s[0])
		}
	}
	if last := t.answer; last != nil {
		for i := range last.Granted[:min(len(last.Granted), sched.Prefetched)] {
			sum += last.Granted[i].Created
		}
	}
	m.prefetched += int32(sum)
}
