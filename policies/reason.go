// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"
	"strconv"
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
	Numbers  Numbers            `json:"numbers,omitzero"`   // what the score was made from
}

// Numbers is what a score was made from. Thousands of reasons are made for one
// that is read, so they are put into words only then.
type Numbers struct {
	text string // or:

	of                     string // "queue" or "cluster"
	free, pending, assumed creel.Resource
	apps                   int64
	entitled, used         float64 // of the federation, by the plan; 0 without one
	starting               float64 // the part of its size that it counts with by the plan; 0: all
}

// words makes Numbers whose text is already written.
func words(format string, args ...any) Numbers { return Numbers{text: fmt.Sprintf(format, args...)} }

// IsZero tells that there are none.
func (n Numbers) IsZero() bool { return n.text == "" && n.of == "" }

// String is empty without numbers.
func (n Numbers) String() string {
	if n.of == "" {
		return n.text
	}
	text := n.of + " free " + n.free.String() + ", pending " + n.pending.String() + ", assumed " + n.assumed.String() +
		" of " + strconv.FormatInt(n.apps, 10) + " applications"
	if n.entitled > 0 {
		text += fmt.Sprintf(", entitled to %.1f%%, using %.1f%% of the federation", 100*n.entitled, 100*n.used)
	}
	if n.starting > 0 {
		text += fmt.Sprintf(", starting slowly with %.0f%% of its size", 100*n.starting)
	}
	return text
}

// MarshalJSON writes String's.
func (n Numbers) MarshalJSON() ([]byte, error) { return json.Marshal(n.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Numbers) UnmarshalJSON(b []byte) error {
	*n = Numbers{}
	return json.Unmarshal(b, &n.text)
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
		if !c.Numbers.IsZero() {
			b.WriteString(" (" + c.Numbers.String() + ")")
		}
	}
	return b.String()
}
