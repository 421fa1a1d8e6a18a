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

// PreemptionBudget is the amount that may be preempted for one queue, and the queues below it, in one interval of the
// store's clock. Members may preempt up to their shares, which sum to at most Most; a member without a share preempts
// nothing. Amounts that members preempted outside the budget count first, and may exceed it.
type PreemptionBudget struct {
	Queue creel.QueuePath `json:"queue"`
	// Most is the budget in the document; types that it does not name are unlimited.
	Most creel.Resource `json:"most"`
	// Lacks is the difference between the queue's entitlement and its use in the whole federation at the time of the
	// plan.
	Lacks   creel.Resource     `json:"lacks"`
	Begins  time.Time          `json:"begins"`
	Ends    time.Time          `json:"ends"`
	Members []PreemptionMember `json:"members,omitempty"` // by id
}

// PreemptionMember is a member's share.
type PreemptionMember struct {
	Member creel.SubclusterID `json:"member"`
	Share  creel.Resource     `json:"share"`
	// Unbound: the member preempts by its own settings, and Share is the amount it preempted.
	Unbound bool `json:"unbound,omitempty"`
}

// PreemptionSpent is the amount that a member preempted in the interval of a budget. An agent counts it for Hadoop's
// ResourceManager. Hadoop does not report the queue that benefits: so this is everything preempted while the queue
// was short there.
type PreemptionSpent struct {
	Queue   creel.QueuePath
	Label   string    // of the budget's nodes
	Begins  time.Time // of the interval
	Taken   creel.Resource
	Unbound bool // the budget does not bind the member
}

// Share returns a member's limit for preemption; zero without a share.
func (b *PreemptionBudget) Share(id creel.SubclusterID) creel.Resource {
	for i := range b.Members {
		if b.Members[i].Member == id {
			return b.Members[i].Share
		}
	}
	return creel.Resource{}
}

// PreemptionOf returns the budget of a queue; nil if there is none, or on a nil plan.
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

// Text describes a budget in a sentence, on nodes of a label, "" for nodes without one.
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
