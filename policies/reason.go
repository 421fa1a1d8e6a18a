// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
)

// Reason tells why a decision fell as it did. It is kept for `creel app why`
// and printed by String; as JSON its keys are stable.
type Reason struct {
	Policy     string             `json:"policy"`           // name of the rule: "balanced"
	Chosen     creel.SubclusterID `json:"chosen,omitempty"` // the home; "" when nobody was, and for splits
	Because    string             `json:"because"`          // one sentence
	Candidates []Candidate        `json:"candidates"`       // every member of the view, by id
}

// Candidate is one member as the decision saw it.
type Candidate struct {
	Member   creel.SubclusterID `json:"member"`
	Excluded string             `json:"excluded,omitempty"` // why it was out of the question; "" if it was in
	Score    float64            `json:"score"`              // larger is better, in the rule's own measure
	Numbers  string             `json:"numbers,omitempty"`  // what the score was made from
}

// String is the reason on several lines, the decision first.
func (r Reason) String() string {
	var b strings.Builder
	b.WriteString(r.Policy)
	if r.Chosen != "" {
		b.WriteString(" chose " + string(r.Chosen))
	}
	b.WriteString(": " + r.Because)
	for _, c := range r.Candidates {
		fmt.Fprintf(&b, "\n  %s: ", c.Member)
		if c.Excluded != "" {
			b.WriteString("excluded, " + c.Excluded)
			continue
		}
		fmt.Fprintf(&b, "score %.3f", c.Score)
		if c.Numbers != "" {
			b.WriteString(" (" + c.Numbers + ")")
		}
	}
	return b.String()
}
