// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// mostScheduling limits the scheduling requests of an attempt: each waiting one is tried again whenever tags change.
const mostScheduling = 10_000

// placing is a scheduling request with an outstanding number.
type placing struct {
	ask   SchedulingAsk
	want  *constraints.Want
	calls int // calls of its AM since the request
}

func (p *placing) request() *sched.Request {
	return &sched.Request{
		Priority: p.ask.Priority, AllocationRequestID: p.ask.AllocationRequestID, Count: p.ask.Count,
		ExecutionType: creel.Guaranteed,
	}
}

// placingKey identifies a request: a later one with the same key replaces it.
type placingKey struct {
	priority int32
	alloc    int64
	tags     string
}

// placings are an attempt's outstanding scheduling requests, in order of arrival. An AM may have thousands.
type placings struct {
	list []placing // a replaced entry has no want
	at   map[placingKey]int
}

// put replaces the request with the same key, or removes it if nothing is outstanding.
func (l *placings) put(p placing, outstanding bool) {
	key := p.key()
	if i, has := l.at[key]; has {
		l.list[i].want = nil
		delete(l.at, key)
	}
	if !outstanding {
		return
	}
	if l.at == nil {
		l.at = map[placingKey]int{}
	}
	l.at[key] = len(l.list)
	l.list = append(l.list, p)
}

// keep removes the requests for which is returns false.
func (l *placings) keep(is func(*placing) bool) {
	n := 0
	for i := range l.list {
		p := &l.list[i]
		if p.want == nil {
			continue
		}
		if !is(p) {
			delete(l.at, p.key())
			continue
		}
		if n != i {
			l.list[n] = *p
			l.at[p.key()] = n
		}
		n++
	}
	clear(l.list[n:])
	l.list = l.list[:n]
}

// constrain stores the constraints of an AM's registration. As in Hadoop, only an application's first registration
// counts, and constraints with no tag or several tags are ignored.
func (a *app) constrain(list []TagConstraint) {
	if a.constraints != nil || len(list) == 0 {
		return
	}
	a.constraints = map[string]*constraints.Constraint{}
	for _, c := range list {
		if len(c.Tags) == 1 {
			a.constraints[c.Tags[0]] = c.Constraint
		}
	}
}

// constraintOf returns the constraint of a request: its own and, if it has one tag, the one that its application
// registered for the tag.
func (a *app) constraintOf(k *SchedulingAsk) *constraints.Constraint {
	if len(k.Tags) != 1 {
		return k.Constraint
	}
	return constraints.Both(a.constraints[k.Tags[0]], k.Constraint)
}

// checkScheduling rejects a call with invalid scheduling requests, and appends the requests' normalized sizes.
func (c *allocation) checkScheduling() error {
	m, t, list := c.m, c.t, c.Scheduling
	if m.cfg.Constraints == ConstraintsOff {
		return &creel.Error{
			Kind: creel.ErrNotEnabled,
			What: schedulingUnhandled,
			Why:  "yarn.resourcemanager.placement-constraints.handler is disabled",
			Try:  "use resource requests, or set it to scheduler or placement-processor",
		}
	}
	if m.cfg.Constraints == ConstraintsKept && !m.sched.Policy().KeepsConstraints() {
		return invalid(
			fmt.Sprintf(schedulingUnderFair, t.id),
			"yarn.resourcemanager.placement-constraints.handler is scheduler, which Hadoop has for CapacityScheduler",
			"set it to placement-processor",
		)
	}
	if n := t.app.Wants(); n+len(list) > mostScheduling {
		return &creel.Error{
			Kind: creel.ErrInvalidResource,
			What: fmt.Sprintf(tooMuchScheduling, len(list), n),
			Why:  fmt.Sprintf("an attempt may have %d", mostScheduling),
			Try:  "ask for several containers by one request, or for the rest when some are placed",
		}
	}
	for i := range list {
		k := &list[i]
		if k.Count < 0 {
			return refusal(creel.ErrInvalidResource, negativeCount, k.Count)
		}
		if k.ExecutionType == creel.Opportunistic {
			return refusal(creel.ErrInvalidResource, onlyGuaranteed)
		}
		if k.Label != "" {
			if m.cfg.Labels == LabelsOff {
				return errLabelsUnused()
			}
			say := LabelExpression{k.Label, true}
			if _, err := m.labels.checker(t.app.Queue().Path()).label(sched.AnyPlace, say); err != nil {
				return err
			}
		}
		v, err := m.sizes.Normalize(k.Resource, t.app.Queue().Largest())
		if err != nil {
			return err
		}
		c.sizes = append(c.sizes, v)
	}
	return nil
}

// placingOrder returns the order in which the processor handles the requests of one call: as listed, or first those
// whose most frequent tag is in more requests.
func (c *allocation) placingOrder() []int {
	list := c.Scheduling
	if len(list) == 0 {
		return nil // as in most calls
	}
	order := make([]int, len(list))
	for i := range list {
		order[i] = i
	}
	if !c.m.cfg.PopularTagsFirst {
		return order
	}
	// An AM may send many requests with many tags: the loops read each twice, not once per other request.
	type use struct{ requests, last int } // last: the last counted request, from 1
	uses := map[string]use{}
	for i := range list {
		for _, tag := range list[i].Tags {
			if u := uses[tag]; u.last != i+1 {
				uses[tag] = use{u.requests + 1, i + 1}
			}
		}
	}
	popularity := make([]int, len(list))
	for i := range list {
		for _, tag := range list[i].Tags {
			popularity[i] = max(popularity[i], uses[tag].requests)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return popularity[b] - popularity[a] })
	return order
}

// place applies the scheduling requests.
func (c *allocation) place() {
	m, a := c.m, &c.t.app.App
	tried := m.cfg.Constraints == ConstraintsTried
	order := c.placingOrder()
	if len(order) > 1 && tried {
		m.sched.Enroll(a)
		m.settle()
	}
	for k, i := range order {
		p := c.placeOne(&c.Scheduling[i], &c.sizes[len(c.Asks)+i])
		if k < len(order)-1 && tried {
			m.sched.Tags().Serve(a, p.request(), p.want) // each is placed before the next is considered
		}
	}
}

// placeOne applies one scheduling request. The scheduler's handler sets the outstanding number at its key and tags; the
// processor's adds to it.
func (c *allocation) placeOne(k *SchedulingAsk, size *amounts.Vec) placing {
	m, t := c.m, c.t
	ask := *k
	p := placing{ask: ask, want: constraints.NewWant(k.Tags, t.app.constraintOf(k), k.Label, &ask)}
	left := m.sched.Tags().Place(&t.app.App, p.request(), p.want, size, m.cfg.Constraints == ConstraintsTried)
	if m.cfg.Constraints == ConstraintsTried || p.want.Constraint.Senseless() {
		t.placing.put(p, left > 0)
	}
	return p
}

func (p *placing) key() placingKey {
	return placingKey{p.ask.Priority, p.ask.AllocationRequestID, p.want.Key()}
}

// placeAgain runs when a container of a request ended before its AM received it. The request is outstanding again,
// with as many tries as a new one.
func (l *attemptLife) placeAgain(t *attempt, want *constraints.Want) {
	if want == nil || l.m.cfg.Constraints != ConstraintsTried {
		return
	}
	t.placing.put(placing{ask: *want.Owner.(*SchedulingAsk), want: want}, true)
}

// giveUp rejects the requests whose number of calls has reached its limit. With the scheduler's handler, it rejects
// at once the requests that can never be placed.
func (c *allocation) giveUp(out []Rejection) []Rejection {
	m, t, a := c.m, c.t, &c.t.app.App
	t.placing.keep(func(p *placing) bool {
		count := m.sched.Tags().Wanting(a, p.request(), p.want)
		if m.cfg.Constraints != ConstraintsTried {
			p.calls = m.cfg.PlacementTries
		}
		if p.calls++; count > 0 && p.calls < m.cfg.PlacementTries {
			return true
		}
		if count > 0 {
			// Hadoop's scheduler has only one reason.
			noPlace := m.cfg.Constraints == ConstraintsTried && m.sched.Tags().Refused(a, p.request(), p.want)
			none := p.request()
			none.Count = 0
			m.sched.Tags().Place(a, none, p.want, &amounts.Vec{}, false)
			out = append(out, Rejection{Ask: p.ask, Count: count, NoPlace: noPlace})
		}
		return false
	})
	if len(out) > 0 {
		m.sched.Enroll(a)
		m.settle()
	}
	return out
}
