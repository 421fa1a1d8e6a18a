// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// PlanReader decides when the rebalancer's plan must be read, and evaluates the reads. It does not read by itself, and
// has one owner. The zero value has no plan.
type PlanReader struct {
	plan   *subcluster.Plan
	of     []string  // leaf names of the queues in the last read
	read   time.Time // the owner's clock
	bad    int64     // version of the last plan that could not be parsed
	failed bool      // the last read
}

// Plan is the last plan read, which may be a previous leader's; nil without one.
func (r *PlanReader) Plan() *subcluster.Plan { return r.plan }

// Due reports whether the plan must be read. The reasons are an announcement, a failed read, a queue that the last
// read lacked, and Unheard since that read.
func (r *PlanReader) Due(heard bool, queues []string, now time.Time) bool {
	return heard || r.failed || r.lacks(queues) || now.Sub(r.read) >= Unheard
}

func (r *PlanReader) lacks(queues []string) bool {
	return slices.ContainsFunc(queues, func(q string) bool { return !slices.Contains(r.of, q) })
}

// Read evaluates a read of the document, with the rows of these queues (nil: all queues). After a failed read or an
// unreadable document, the previous plan is used until its lease ends. The error reports an unreadable document, once
// per version.
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
		r.of = queues // the unreadable document lacks them too
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
