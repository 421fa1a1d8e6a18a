// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// Reason explains a decision. It is stored for `creel app why`; String prints it. Its JSON keys are stable.
type Reason struct {
	Policy     string             `json:"policy"`              // name of the rule: "balanced"
	Version    int64              `json:"version,omitempty"`   // of the document that names the rule; 0: none
	PolicyOf   creel.QueuePath    `json:"policy_of,omitempty"` // the queue that the document was written for
	Chosen     creel.SubclusterID `json:"chosen,omitempty"`    // the home; "" if none was chosen, and for splits
	Because    string             `json:"because"`             // one sentence
	Candidates []Candidate        `json:"candidates"`          // members of the view, by id
	LeftOut    int                `json:"left_out,omitempty"`  // number of members that are not listed
}

// Candidate is one member at the time of the decision.
type Candidate struct {
	Member   creel.SubclusterID `json:"member"`
	Code     Exclusion          `json:"code,omitempty"`     // reason why it could not be the home, "" if it could
	Excluded string             `json:"excluded,omitempty"` // the same as text
	Score    float64            `json:"score"`              // larger is better; the unit depends on the rule
	Numbers  Numbers            `json:"numbers,omitzero"`   // the numbers behind the score
}

// Exclusion is the code of the reason why a member could not be the home. For a member that was not active it is the
// name of its state: draining, suspect, lost, deregistered.
type Exclusion string

// The other exclusions.
const (
	ExcludedTried       Exclusion = "tried"       // it got the submission and did not accept it
	ExcludedReservation Exclusion = "reservation" // another member has the reservation
	ExcludedTooLarge    Exclusion = "too_large"   // the AM is larger than the member's total
	ExcludedLabel       Exclusion = "no_label"    // it has no such node label
	ExcludedResource    Exclusion = "no_resource" // it lacks a resource type that the AM needs
	ExcludedPlace       Exclusion = "not_there"   // the AM may run only on places that are elsewhere
	ExcludedNodes       Exclusion = "no_nodes"    // it has no nodes, but other members have
	ExcludedQueue       Exclusion = "no_queue"    // it has no such queue
	ExcludedWeight      Exclusion = "no_weight"   // the policy assigns it no weight
	ExcludedFull        Exclusion = "full"        // it has no free capacity, but other members have
	ExcludedStarting    Exclusion = "starting"    // it is in slow start, and its part is used
	ExcludedEntitlement Exclusion = "entitlement" // the queue has used its entitlement there by the plan
)

// Text returns the exclusion as text, without details.
func (e Exclusion) Text() string {
	switch e {
	case "":
		return ""
	case ExcludedTried:
		return "it was tried and did not accept it"
	case ExcludedReservation:
		return "another member holds the reservation"
	case ExcludedTooLarge:
		return "the AM is larger than its total resources"
	case ExcludedLabel:
		return "it has no such node label"
	case ExcludedResource:
		return "it lacks a resource type that the AM needs"
	case ExcludedPlace:
		return "the AM may run only on places that are elsewhere"
	case ExcludedNodes:
		return "it has no nodes"
	case ExcludedQueue:
		return "it has no such queue"
	case ExcludedWeight:
		return "the policy assigns it no weight"
	case ExcludedFull:
		return "it is full and others are not"
	case ExcludedStarting:
		return "it is in slow start and has used its part"
	case ExcludedEntitlement:
		return "by the plan the queue has used its entitlement there, and not elsewhere"
	}
	return "it was " + string(e)
}

// Out returns Excluded, with the numbers behind it if the member is full or in slow start.
func (c Candidate) Out() string {
	if (c.Code == ExcludedFull || c.Code == ExcludedStarting) && !c.Numbers.IsZero() {
		return c.Excluded + " (" + c.Numbers.String() + ")"
	}
	return c.Excluded
}

// Numbers are the numbers behind a score. Only one of thousands of reasons is ever read, so the text is composed on
// reading.
type Numbers struct {
	// Of is the scope of the numbers: "queue", "cluster", or "label" for the nodes of Label. It is "memory" if the
	// rule uses only the cluster's memory.
	Of      string         `json:"of,omitempty"`
	Label   string         `json:"label,omitempty"`
	Free    creel.Resource `json:"free,omitzero"`
	Pending creel.Resource `json:"pending,omitzero"`
	// Assumed is the load of the Apps applications sent there since its last heartbeat.
	Assumed creel.Resource `json:"assumed,omitzero"`
	Apps    int64          `json:"assumed_apps,omitempty"`
	// Entitled and Used are shares of the federation, or of its nodes of Label, by the plan; 0 without a plan.
	Entitled float64 `json:"entitled,omitempty"`
	Used     float64 `json:"used,omitempty"`
	// Starting is the counted part of a member in slow start, of its size or of its nodes of Label; 0: all.
	Starting float64 `json:"starting,omitempty"`
	// Text is set by rules that use other numbers.
	Text string `json:"text,omitempty"`
}

// words makes Numbers from a text.
func words(format string, args ...any) Numbers { return Numbers{Text: fmt.Sprintf(format, args...)} }

// IsZero reports whether there are no numbers.
func (n Numbers) IsZero() bool { return n.Text == "" && n.Of == "" }

// String returns "" if there are no numbers.
func (n Numbers) String() string {
	switch n.Of {
	case "":
		return n.Text
	case "memory":
		return fmt.Sprintf(
			"available %d MiB, assumed %d MiB of %d applications",
			n.Free.MemoryMB,
			n.Assumed.MemoryMB,
			n.Apps,
		)
	}
	of := n.Of
	if n.Label != "" {
		of += " " + n.Label
	}
	text := of + " free " + n.Free.String() + ", pending " + n.Pending.String() + ", assumed " + n.Assumed.String() +
		" of " + strconv.FormatInt(n.Apps, 10) + " applications"
	if n.Entitled > 0 {
		text += fmt.Sprintf(", entitled to %.1f%%, using %.1f%% of %s", 100*n.Entitled, 100*n.Used, WholeOf(n.Label))
	}
	if n.Starting > 0 {
		size := "size"
		if n.Label != "" {
			size = "nodes of label " + n.Label
		}
		text += fmt.Sprintf(", in slow start with %.0f%% of its %s", 100*n.Starting, size)
	}
	return text
}

// String returns the reason on several lines, the decision first.
func (r Reason) String() string {
	var b strings.Builder
	b.WriteString(r.Policy)
	if r.Chosen != "" {
		b.WriteString(" chose " + string(r.Chosen))
	}
	if r.Version != 0 {
		fmt.Fprintf(&b, " (version %d of %s)", r.Version, r.PolicyOf)
	}
	b.WriteString(": " + r.Because)
	for i := range r.Candidates {
		c := &r.Candidates[i]
		fmt.Fprintf(&b, "\n  %s: ", c.Member)
		if c.Excluded != "" {
			b.WriteString("excluded, " + c.Out())
			continue
		}
		fmt.Fprintf(&b, "score %.3f", c.Score)
		if !c.Numbers.IsZero() {
			b.WriteString(" (" + c.Numbers.String() + ")")
		}
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(&b, "\n  %d more candidates", r.LeftOut)
	}
	return b.String()
}
