// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A plan can be read in parts, like a load. The rebalancer cuts it (Plan.Cut), and the store has the parts beside the
// whole, of the same version. A partial read returns the head and the rows of the named queues (JoinParts); ParsePlan
// parses it like a whole plan.

// planRows are the rows of queues with one leaf name, on nodes without a label and on nodes with each label.
type planRows struct {
	Queues []QueuePlan     `json:"queues,omitempty"`
	Labels []labelPlanRows `json:"labels,omitempty"`
}

type labelPlanRows struct {
	Label  string      `json:"label"`
	Queues []QueuePlan `json:"queues"`
}

// Cut returns the parts of a plan, the head first, then rows by leaf name. The head has the data that homes and
// splits need beside their queues' rows. It lacks members' sizes and budgets: members follow these, and read the
// whole plan.
func (p *Plan) Cut() ([]Part, error) {
	head, rows := p.head(), map[string]*planRows{}
	of := func(q *QueuePlan) *planRows {
		leaf := q.Queue.Leaf()
		if rows[leaf] == nil {
			rows[leaf] = &planRows{}
		}
		return rows[leaf]
	}
	for i := range p.Queues {
		r := of(&p.Queues[i])
		r.Queues = append(r.Queues, p.Queues[i])
	}
	for i := range p.Labels {
		l := &p.Labels[i]
		head.Labels = append(head.Labels, LabelPlan{l.Label, l.head()})
		for j := range l.Queues {
			r := of(&l.Queues[j])
			if n := len(r.Labels); n == 0 || r.Labels[n-1].Label != l.Label {
				r.Labels = append(r.Labels, labelPlanRows{Label: l.Label})
			}
			on := &r.Labels[len(r.Labels)-1]
			on.Queues = append(on.Queues, l.Queues[j])
		}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	parts := []Part{{Text: text}}
	for _, leaf := range slices.Sorted(maps.Keys(rows)) {
		if text, err = json.Marshal(rows[leaf]); err != nil {
			return nil, err
		}
		parts = append(parts, Part{leaf, text})
	}
	return parts, nil
}

// head is the plan without the fields that Cut leaves out, and without labels.
func (p *Plan) head() Plan {
	head := *p
	head.Queues, head.Members, head.Preemption, head.Labels, head.leaves = nil, nil, nil, nil, nil
	return head
}

// decode parses a stored plan, whole or in parts.
func (p *Plan) decode(data []byte) error {
	if !bytes.HasPrefix(data, []byte(partSeparator)) {
		return json.Unmarshal(data, p)
	}
	parts := partsOf(string(data))
	if err := json.Unmarshal([]byte(parts[0]), p); err != nil {
		return err
	}
	for _, part := range parts[1:] {
		var rows planRows
		if err := json.Unmarshal([]byte(part), &rows); err != nil {
			return err
		}
		p.Queues = append(p.Queues, rows.Queues...)
		for _, l := range rows.Labels {
			if on := p.In(l.Label); on != nil {
				on.Queues = append(on.Queues, l.Queues...)
			}
		}
	}
	p.sortQueues()
	for i := range p.Labels {
		p.Labels[i].sortQueues()
	}
	return nil
}

func (p *Plan) sortQueues() {
	slices.SortFunc(p.Queues, func(a, b QueuePlan) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
}
