// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Labels is a member's published data about node labels: the resources of each of its partitions, and which of them
// the asks of a queue may name.
type Labels struct {
	// Known is false for a member that publishes no labels: its labels are unknown.
	Known      bool
	Partitions []Partition // sorted by label; without the default one, of nodes without a label
	// Queues that may use other labels than the queue above them, or have another
	// default; sorted. Above the root every label may be used, and none is the default.
	Queues []QueueLabels
	// AMs is the label of AMs whose submission names none, "" for that of their queue.
	AMs string
}

// Partition is the nodes of a member that have a label.
type Partition struct {
	Label string
	// Shared: idle resources here are lent to asks without a label.
	Shared               bool
	Total, Used, Pending creel.Resource // of its active nodes
}

// Free returns the unused resources.
func (p *Partition) Free() creel.Resource { return p.Total.Sub(p.Used).Max(creel.Resource{}) }

// QueueLabels are the labels of a queue.
type QueueLabels struct {
	Queue      creel.QueuePath
	Accessible []string // that asks may name; "*" stands for all
	Default    string   // of asks that name none, "" for the default partition
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

// Put adds a partition, or replaces the one of its label.
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

// queue finds the rule of a queue: its own, or that of the nearest above it.
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

// Default is the label of asks in a queue, by its full path, that name none.
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

// Add adds the rule of a queue, unless it is that of the queue above it; parents come before their children.
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

// In is the federation as its nodes with a label are alone: members have the size of that
// partition and the rows that they report of it, of the default one ("") v itself. A member
// that has no such nodes, or reports nothing of them, has nothing.
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

// Labels are those of nodes that members in the view have, sorted.
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

// in is the load of the nodes with a label.
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

// Check rejects labels that must not be published.
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

// form is the published form, nil if nothing is published.
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

// labels reads the published form; nil is that of a member that publishes none.
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
