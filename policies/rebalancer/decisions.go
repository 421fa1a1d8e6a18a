// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// The store's documents that accompany the plan. They form a separate class, since routers and proxies read all
// documents of the plan's class.
const (
	ControlClass  = "rebalancer"
	PauseName     = "pause"     // Pause, while plans are paused
	DecisionsName = "decisions" // Decisions
	AuditName     = "audit"     // AuditReport
)

// Pause stops the publishing of plans. The last plan applies until its lease expires; after that routers and proxies
// decide without a plan.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"` // store's clock
}

// Decision is a change of one queue's entitlement from one plan to the next.
type Decision struct {
	At     time.Time       `json:"at"` // store's clock at the plan
	Term   int64           `json:"term"`
	Queue  creel.QueuePath `json:"queue"`
	Label  string          `json:"label,omitempty"` // of the nodes that all parts refer to
	Was    float64         `json:"was"`             // entitlement, of the federation
	Is     float64         `json:"is"`
	Wants  float64         `json:"wants"`
	Uses   float64         `json:"uses"`
	Reason string          `json:"reason"`
	Moved  string          `json:"moved,omitempty"` // the member whose weight changed most, and how
	// Capacity is the member in which the queue's capacity changed most, and how.
	Capacity string `json:"capacity,omitempty"`
}

// Decisions is the log of the latest decisions, newest first.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
}

// keptDecisions bounds the log.
const keptDecisions = 256

// far is the part of the federation by which a value must change to be reported, or to start the next plan early.
const far = 0.01

// furthest returns a text for the member in which a queue's values changed most, "" if none changed.
func furthest(
	q, was *subcluster.QueuePlan, of func(*subcluster.QueuePlan, creel.SubclusterID) float64,
) (text string) {
	by := far
	for _, m := range q.Members {
		before, now := of(was, m.Member), of(q, m.Member)
		if change := math.Abs(now - before); change > by {
			by, text = change, fmt.Sprintf("%s %.1f%% to %.1f%%", m.Member, 100*before, 100*now)
		}
	}
	return text
}

// Add records the entitlements and weights that differ between two plans by more than a hundredth of the federation.
// before may be nil. It reports whether any differed.
func (d *Decisions) Add(before, now *subcluster.Plan, at time.Time) (changed bool) {
	var fresh []Decision
	for q, label := range now.EachQueue {
		was := before.In(label).Queue(q.Queue)
		if was == nil {
			was = &subcluster.QueuePlan{}
		}
		moved := furthest(q, was, (*subcluster.QueuePlan).Given)
		if math.Abs(q.Entitled-was.Entitled) <= far && moved == "" {
			continue
		}
		fresh = append(fresh, Decision{
			At: at, Term: now.Term, Queue: q.Queue, Label: label, Was: was.Entitled, Is: q.Entitled,
			Wants: q.Wants, Uses: q.Uses,
			Reason: q.Reason, Moved: moved, Capacity: furthest(q, was, (*subcluster.QueuePlan).Capacity),
		})
	}
	all := append(fresh, d.Decisions...)
	d.Decisions = all[:min(len(all), keptDecisions)]
	return len(fresh) > 0
}
