// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// PreemptionBudget is the amount that may be taken back from others for one queue, and those below it, in one
// interval of the store's clock. Members may do it up to their shares, which sum to no more than Most; a member
// without one takes nothing. Amounts that members took outside the budget count first, and may be more.
type PreemptionBudget struct {
	Queue creel.QueuePath `json:"queue"`
	// Most is the queue's in the document; types that it does not name have no bound.
	Most creel.Resource `json:"most"`
	// Lacks is the difference between the queue's entitlement in the whole federation and its use when the plan was
	// made.
	Lacks   creel.Resource     `json:"lacks"`
	Begins  time.Time          `json:"begins"`
	Ends    time.Time          `json:"ends"`
	Members []PreemptionMember `json:"members,omitempty"` // by id
}

// PreemptionMember is a member's share.
type PreemptionMember struct {
	Member creel.SubclusterID `json:"member"`
	Share  creel.Resource     `json:"share"`
	// Unbound: the member takes back by its own settings, and Share is the amount it took.
	Unbound bool `json:"unbound,omitempty"`
}

// PreemptionSpent is the amount that a member took back in the interval of a budget, as an agent counts it for
// Hadoop's ResourceManager. That does not report for which queue: it is all that was taken while the queue was short
// there.
type PreemptionSpent struct {
	Queue   creel.QueuePath
	Label   string    // of the nodes that the budget is of
	Begins  time.Time // of the interval
	Taken   creel.Resource
	Unbound bool // the budget does not bind the member
}

// Share returns a member's limit for taking back; zero without a share.
func (b *PreemptionBudget) Share(id creel.SubclusterID) creel.Resource {
	for i := range b.Members {
		if b.Members[i].Member == id {
			return b.Members[i].Share
		}
	}
	return creel.Resource{}
}

// PreemptionOf is the budget of a queue; nil for none, or on a nil plan.
func (p *Plan) PreemptionOf(q creel.QueuePath) *PreemptionBudget {
	if p == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(p.Preemption, q, func(b PreemptionBudget, q creel.QueuePath) int {
		return cmp.Compare(b.Queue, q)
	})
	if !ok {
		return nil
	}
	return &p.Preemption[i]
}

// Text describes a budget for people, on nodes of a label, "" for those without one.
func (b *PreemptionBudget) Text(label string) string {
	var parts []string
	for _, m := range b.Members {
		part := fmt.Sprintf("%s %s", m.Member, m.Share)
		if m.Unbound {
			part += " taken by its own settings"
		}
		parts = append(parts, part)
	}
	shares := strings.Join(parts, ", ")
	if shares == "" {
		shares = "nothing: it lacks nothing in the federation"
	}
	on := ""
	if label != "" {
		on = " on nodes of label " + label
	}
	until := b.Ends.UTC().Format(time.TimeOnly)
	return fmt.Sprintf("taken back for %s%s until %s at most: %s", b.Queue, on, until, shares)
}
