// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// ConstraintHandler says what becomes of scheduling requests.
type ConstraintHandler uint8

// Handlers, by Hadoop's names.
const (
	ConstraintsOff   ConstraintHandler = iota // disabled: who asks is refused
	ConstraintsKept                           // scheduler: a request waits until it can be placed, if ever
	ConstraintsTried                          // placement-processor: it is rejected after some calls
)

// placing is a scheduling request of which something is outstanding.
type placing struct {
	ask   SchedulingAsk
	want  *sched.Want
	calls int // of its AM since it came
}

func (p *placing) request() *sched.Request {
	return &sched.Request{
		Priority: p.ask.Priority, AllocationRequestID: p.ask.AllocationRequestID, Count: p.ask.Count,
		ExecutionType: creel.Guaranteed,
	}
}

// constrain takes the constraints that an AM registers with. As in Hadoop the first
// registration of an application counts, and those of more or less than one tag do not.
func (a *app) constrain(list []TagConstraint) {
	if a.constraints != nil || len(list) == 0 {
		return
	}
	a.constraints = map[string]*sched.Constraint{}
	for _, c := range list {
		if len(c.Tags) == 1 {
			a.constraints[c.Tags[0]] = c.Constraint
		}
	}
}

// constraintOf is what holds for a request: what it says itself, and what its application
// registered for its tag, if it has one tag.
func (a *app) constraintOf(k *SchedulingAsk) *sched.Constraint {
	if len(k.Tags) != 1 {
		return k.Constraint
	}
	return sched.Both(a.constraints[k.Tags[0]], k.Constraint)
}

// checkScheduling refuses a call with wrong scheduling requests, and appends their
// normalized sizes.
func (m *Machine) checkScheduling(t *attempt, list []SchedulingAsk, sizes []amounts.Vec) ([]amounts.Vec, error) {
	if m.cfg.Constraints == ConstraintsOff {
		return nil, &creel.Error{
			Kind: creel.ErrNotEnabled,
			What: "Found non empty SchedulingRequest in AllocateRequest",
			Why:  "yarn.resourcemanager.placement-constraints.handler is disabled",
			Try:  "use resource requests, or set it to scheduler or placement-processor",
		}
	}
	if m.cfg.Constraints == ConstraintsKept && !m.sched.KeepsConstraints() {
		return nil, invalid(
			"Found non empty SchedulingRequest of AllocateRequest for application="+t.id.String()+
				", however the configured scheduler=FairScheduler cannot handle placement constraints, "+
				"rejecting this allocate operation",
			"yarn.resourcemanager.placement-constraints.handler is scheduler, which Hadoop has for CapacityScheduler",
			"set it to placement-processor",
		)
	}
	for i := range list {
		k := &list[i]
		if k.Count < 0 {
			return nil, &creel.Error{Kind: creel.ErrInvalidResource, What: fmt.Sprintf(
				"Invalid resource request, requested number of containers < 0, numContainers=%d", k.Count)}
		}
		if k.ExecutionType == creel.Opportunistic {
			return nil, &creel.Error{
				Kind: creel.ErrInvalidResource, What: "Only GUARANTEED execution type is supported.",
			}
		}
		if k.Label != "" {
			if m.cfg.Labels == LabelsOff {
				return nil, errLabelsUnused()
			}
			say := LabelExpression{k.Label, true}
			if _, err := m.labelChecker(t.app.Queue().Path()).label(sched.AnyPlace, say); err != nil {
				return nil, err
			}
		}
		v, err := m.sizes.Normalize(k.Resource, t.app.Queue().Largest())
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, v)
	}
	return sizes, nil
}

// placingOrder gives the requests of one call in the order in which the processor takes
// them: as they are listed, or those first whose most frequent tag more of them have.
func (m *Machine) placingOrder(list []SchedulingAsk) []int {
	if len(list) == 0 {
		return nil // as in most calls
	}
	order := make([]int, len(list))
	for i := range list {
		order[i] = i
	}
	if !m.cfg.PopularTagsFirst {
		return order
	}
	// An AM may send many requests with many tags: each is looked at twice, not once for each other.
	type use struct{ requests, last int } // last: the request that was counted last, from 1
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

// place takes one scheduling request. The scheduler's handler takes its number for what is
// outstanding at its key and tags; the processor's for so many more.
func (m *Machine) place(t *attempt, k *SchedulingAsk, size *amounts.Vec) {
	ask := *k
	p := placing{ask: ask, want: sched.NewWant(k.Tags, t.app.constraintOf(k), k.Label, &ask)}
	left := m.sched.Place(&t.app.App, p.request(), p.want, size, m.cfg.Constraints == ConstraintsTried)
	if m.cfg.Constraints != ConstraintsTried && !p.want.Constraint.Senseless() {
		return
	}
	t.placing = slices.DeleteFunc(t.placing, p.same)
	if left > 0 {
		t.placing = append(t.placing, p)
	}
}

// same reports whether two have one key and the same tags.
func (p *placing) same(x placing) bool {
	return x.ask.Priority == p.ask.Priority && x.ask.AllocationRequestID == p.ask.AllocationRequestID &&
		slices.Equal(x.want.Tags, p.want.Tags)
}

// placeAgain: a container of a request ended before its AM heard of it, so it is
// outstanding again, and tried as often as a new one.
func (m *Machine) placeAgain(t *attempt, want *sched.Want) {
	if want == nil || m.cfg.Constraints != ConstraintsTried {
		return
	}
	p := placing{ask: *want.Owner.(*SchedulingAsk), want: want}
	t.placing = append(slices.DeleteFunc(t.placing, p.same), p)
}

// giveUp rejects the requests that were tried in as many calls as they may be. Where
// requests wait until they can be placed, those that never can are rejected at once.
func (m *Machine) giveUp(t *attempt, out []Rejected) []Rejected {
	a := &t.app.App
	left := t.placing[:0]
	for _, p := range t.placing {
		count, refused := m.sched.Wanting(a, p.request(), p.want)
		if m.cfg.Constraints != ConstraintsTried {
			p.calls, refused = m.cfg.PlacementTries, false // Hadoop's scheduler has one reason for all
		}
		if p.calls++; count > 0 && p.calls < m.cfg.PlacementTries {
			left = append(left, p)
			continue
		}
		if count > 0 {
			none := p.request()
			none.Count = 0
			m.sched.Place(a, none, p.want, &amounts.Vec{}, false)
			out = append(out, Rejected{Ask: p.ask, Count: count, NoPlace: refused})
		}
	}
	clear(t.placing[len(left):])
	t.placing = left
	if len(out) > 0 {
		m.sched.Enroll(a)
		m.settle()
	}
	return out
}
