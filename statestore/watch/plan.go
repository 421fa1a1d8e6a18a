// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// PlanReader decides when the rebalancer's plan is read, and evaluates the reads. It does no reading itself, and has
// one owner. The zero value has no plan.
type PlanReader struct {
	plan   *subcluster.Plan
	of     []string  // leaf names of the queues that it was read with
	read   time.Time // the owner's clock
	bad    int64     // version of the last one that could not be parsed
	failed bool      // the last read
}

// Plan is the plan as it was read last, which may be another's before; nil without one.
func (r *PlanReader) Plan() *subcluster.Plan { return r.plan }

// Due reports whether the plan is to be read: after an announcement or a failed read, when a queue is not among those
// of the last read, and otherwise each Unheard.
func (r *PlanReader) Due(heard bool, queues []string, now time.Time) bool {
	return heard || r.failed || r.lacks(queues) || now.Sub(r.read) >= Unheard
}

func (r *PlanReader) lacks(queues []string) bool {
	return slices.ContainsFunc(queues, func(q string) bool { return !slices.Contains(r.of, q) })
}

// Read evaluates a read of the document, with the rows of these queues (nil: of all). After a failed one, or a
// document that is no plan, the plan before holds until its lease is over; the error reports the latter, once for a
// version.
func (r *PlanReader) Read(d statestore.Document, err error, queues []string, now time.Time) error {
	if r.failed = err != nil; r.failed {
		return nil
	}
	r.read = now
	more := r.lacks(queues)
	switch {
	case d.Version == 0:
		r.plan, r.of = nil, queues
		return nil
	case r.plan != nil && r.plan.Version == d.Version && !more:
		return nil
	case r.bad == d.Version:
		r.of = queues // they are not in it either
		return nil
	}
	r.of = queues
	plan, err := subcluster.ParsePlan(d.Data, d.Version, d.Time)
	if err != nil {
		r.bad = d.Version
		return err
	}
	r.plan = plan
	return nil
}
