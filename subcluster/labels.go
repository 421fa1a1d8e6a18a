// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Labels is a member's published data about node labels: the resources of each partition, and the labels that a
// queue's asks may name.
type Labels struct {
	// Known is false if the member publishes no labels: they are unknown.
	Known      bool
	Partitions []Partition // sorted by label; without the default partition, of nodes without a label
	// Queues lists queues whose accessible labels or default label differ from their parent's; sorted. At the root
	// every label is accessible, and there is no default.
	Queues []QueueLabels
	// AMs is the label of AMs whose submission names none, "" for their queue's default.
	AMs string
}

// Partition is the nodes of a member that have a label.
type Partition struct {
	Label string
	// Shared: asks without a label may use idle resources here.
	Shared               bool
	Total, Used, Pending creel.Resource // of its active nodes
}

// Free returns the unused resources.
func (p *Partition) Free() creel.Resource { return p.Total.Sub(p.Used).Max(creel.Resource{}) }

// QueueLabels are the labels of a queue.
type QueueLabels struct {
	Queue      creel.QueuePath
	Accessible []string // labels that asks may name; "*" stands for all
	Default    string   // label of asks that name none, "" for the default partition
}

// Find finds a partition by its label; nil if there is none.
func (l *Labels) Find(label string) *Partition {
	i, ok := slices.BinarySearchFunc(l.Partitions, label, func(p Partition, label string) int {
		return strings.Compare(p.Label, label)
	})
	if !ok {
		return nil
	}
	return &l.Partitions[i]
}

// Put adds a partition, or replaces the one with the same label.
func (l *Labels) Put(p Partition) {
	i, there := slices.BinarySearchFunc(l.Partitions, p.Label, func(p Partition, label string) int {
		return strings.Compare(p.Label, label)
	})
	if there {
		l.Partitions[i] = p
		return
	}
	l.Partitions = slices.Insert(l.Partitions, i, p)
}

// queue finds the rule of a queue: its own, or its nearest ancestor's.
func (l *Labels) queue(q creel.QueuePath) *QueueLabels {
	for ; q != ""; q = q.Parent() {
		i, ok := slices.BinarySearchFunc(l.Queues, q, func(x QueueLabels, q creel.QueuePath) int {
			return strings.Compare(string(x.Queue), string(q))
		})
		if ok {
			return &l.Queues[i]
		}
	}
	return nil
}

// Default is the default label of asks in a queue, by its full path.
func (l *Labels) Default(q creel.QueuePath) string {
	if rule := l.queue(q); rule != nil {
		return rule.Default
	}
	return ""
}

// May reports whether asks in a queue, by its full path, may name a label.
func (l *Labels) May(q creel.QueuePath, label string) bool {
	rule := l.queue(q)
	return rule == nil || label == "" ||
		slices.Contains(rule.Accessible, "*") || slices.Contains(rule.Accessible, label)
}

// Add adds the rule of a queue, unless it equals its parent's; parents must be added first.
func (l *Labels) Add(q creel.QueuePath, accessible []string, byDefault string) {
	above := QueueLabels{Accessible: []string{"*"}}
	if rule := l.queue(q.Parent()); rule != nil {
		above = *rule
	}
	if byDefault == above.Default && slices.Equal(accessible, above.Accessible) {
		return
	}
	rule := QueueLabels{Queue: q, Accessible: accessible, Default: byDefault}
	i, _ := slices.BinarySearchFunc(l.Queues, q, func(x QueueLabels, q creel.QueuePath) int {
		return strings.Compare(string(x.Queue), string(q))
	})
	l.Queues = slices.Insert(l.Queues, i, rule)
}

// In is the federation reduced to the nodes with a label: members have the size of that partition and its queue rows.
// For the default partition ("") it is v itself. A member without such nodes, or without a report of them, is empty.
func (v *View) In(label string) *View {
	if label == "" || v == nil {
		return v
	}
	out := *v
	out.Plan = v.Plan.In(label)
	out.Members = slices.Clone(v.Members)
	for i := range out.Members {
		m := &out.Members[i]
		m.Load = m.Load.in(label)
	}
	return &out
}

// In is View.In for one member.
func (m *Status) In(label string) *Status {
	if label == "" {
		return m
	}
	out := *m
	out.Load = m.Load.in(label)
	return &out
}

// Labels returns the node labels of all members in the view, sorted.
func (v *View) Labels() (labels []string) {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		m := &v.Members[i]
		if m.State == StateDeregistered || m.State == StateLost {
			continue
		}
		for j := range m.Load.Labels.Partitions {
			if p := &m.Load.Labels.Partitions[j]; !p.Total.IsZero() {
				labels = append(labels, p.Label)
			}
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// in returns the load of the nodes with a label.
func (l *Load) in(label string) Load {
	p := l.Labels.Find(label)
	if p == nil {
		return Load{}
	}
	free := p.Free()
	out := Load{Metrics: ClusterMetrics{
		TotalMB: p.Total.MemoryMB, TotalVirtualCores: p.Total.VCores,
		AllocatedMB: p.Used.MemoryMB, AllocatedVirtualCores: p.Used.VCores,
		PendingMB: p.Pending.MemoryMB, PendingVirtualCores: p.Pending.VCores,
		AvailableMB: free.MemoryMB, AvailableVirtualCores: free.VCores,
	}}
	for i := range l.Queues {
		if q := l.Queues[i]; q.Label == label {
			q.Label = ""
			out.Queues = append(out.Queues, q)
		}
	}
	for _, x := range l.Preempted {
		if x.Label == label {
			x.Label = ""
			out.Preempted = append(out.Preempted, x)
		}
	}
	return out
}

// Bounds of the labels accepted from one member.
const (
	maxLabels     = 1000
	maxLabelBytes = 255 // of a name, as in YARN
)

// Check rejects labels that are too many or too long to publish.
func (l *Labels) Check() error {
	if len(l.Partitions) > maxLabels {
		return fmt.Errorf("it has more than %d node labels", maxLabels)
	}
	for i := range l.Partitions {
		if name := l.Partitions[i].Label; name == "" || len(name) > maxLabelBytes {
			return fmt.Errorf("node label %.40q has no name, or more than %d bytes", name, maxLabelBytes)
		}
	}
	return nil
}

// labelsJSON and the types below are the published form; members without labels write {}.
type labelsJSON struct {
	Partitions []partitionJSON   `json:"partitions,omitempty"`
	Queues     []queueLabelsJSON `json:"queues,omitempty"`
	AMs        string            `json:"ams,omitempty"`
}

type partitionJSON struct {
	Label   string       `json:"label"`
	Shared  bool         `json:"shared,omitempty"`
	Total   resourceJSON `json:"total"`
	Used    resourceJSON `json:"used"`
	Pending resourceJSON `json:"pending"`
}

type queueLabelsJSON struct {
	Queue      string   `json:"queue"`
	Accessible []string `json:"accessible,omitempty"`
	Default    string   `json:"default,omitempty"`
}

// form returns the published form, nil if there are no labels to publish.
func (l *Labels) form() *labelsJSON {
	if !l.Known {
		return nil
	}
	j := &labelsJSON{AMs: l.AMs}
	for _, p := range l.Partitions {
		j.Partitions = append(j.Partitions,
			partitionJSON{p.Label, p.Shared, toJSON(p.Total), toJSON(p.Used), toJSON(p.Pending)})
	}
	for _, q := range l.Queues {
		j.Queues = append(j.Queues, queueLabelsJSON{string(q.Queue), q.Accessible, q.Default})
	}
	return j
}

// labels parses the published form; nil is that of a member without labels.
func (j *labelsJSON) labels() (Labels, error) {
	if j == nil {
		return Labels{}, nil
	}
	l := Labels{Known: true, AMs: j.AMs}
	for _, p := range j.Partitions {
		l.Partitions = append(l.Partitions,
			Partition{p.Label, p.Shared, p.Total.resource(), p.Used.resource(), p.Pending.resource()})
	}
	slices.SortFunc(l.Partitions, func(a, b Partition) int { return strings.Compare(a.Label, b.Label) })
	for _, q := range j.Queues {
		path, err := creel.ParseQueuePath(q.Queue)
		if err != nil {
			return l, err
		}
		l.Queues = append(l.Queues, QueueLabels{path, q.Accessible, q.Default})
	}
	slices.SortStableFunc(l.Queues, func(a, b QueueLabels) int {
		return strings.Compare(string(a.Queue), string(b.Queue))
	})
	return l, l.Check()
}
