// SPDX-License-Identifier: Apache-2.0

package queues

import "slices"

// AnyLabel in Queue.Labels stands for every label.
const AnyLabel = "*"

// LabelShare is a queue's share of the partition of one label.
type LabelShare struct {
	Label        string
	Capacity     Amount  // of the parent's part of the partition [0]
	MaxCapacity  Amount  // [100 percent of the parent's]
	MaxAMPercent float64 // share 0..1 that AMs may use there [the queue's MaxAMPercent]
}

// Accesses reports whether a queue with these labels may use the nodes of a label. Every queue may use nodes without
// a label.
func Accesses(labels []string, label string) bool {
	return label == "" || slices.Contains(labels, AnyLabel) || slices.Contains(labels, label)
}

// LabelNames returns the labels that queues have a share of, sorted.
func (s *Spec) LabelNames() []string {
	var out []string
	var look func(q *Queue)
	look = func(q *Queue) {
		for i := range q.Shares {
			out = append(out, q.Shares[i].Label)
		}
		for i := range q.Children {
			look(&q.Children[i])
		}
	}
	look(&s.Root)
	slices.Sort(out)
	return slices.Compact(out)
}

// ListedLabels returns the labels that queues list or have a share of, sorted, without AnyLabel.
func (s *Spec) ListedLabels() []string {
	out := s.LabelNames()
	var look func(q *Queue)
	look = func(q *Queue) {
		for _, label := range q.Labels {
			if label != AnyLabel && label != "" {
				out = append(out, label)
			}
		}
		for i := range q.Children {
			look(&q.Children[i])
		}
	}
	look(&s.Root)
	slices.Sort(out)
	return slices.Compact(out)
}

// Partition returns the tree for the nodes of one label: the same queues with their shares of it. A queue that may
// not use the label has capacity and maximum 0. Limits in numbers of applications do not apply to a partition.
func (s *Spec) Partition(label string) Spec { return s.partition(label, false) }

// partition is Partition; configured counts shares of queues that may not use the label too.
func (s *Spec) partition(label string, configured bool) Spec {
	out := *s
	out.MaxApplications, out.UserMaxApps, out.UserMaxAppsDefault = 0, nil, 0
	out.Root = partition(&s.Root, label, []string{AnyLabel}, configured)
	out.Root.Capacity, out.Root.MaxCapacity = PercentOf(100), Amount{}
	return out
}

// PartitionOfMade returns a created queue's share of one label; above are the labels that its parent may use. Without
// a configured share the queue gets nothing there, as in Hadoop, even if it may use the label.
func (q *Queue) PartitionOfMade(label string, above []string) Queue {
	out := partition(q, label, above, false)
	if out.Capacity.Unit == Unset {
		out.Capacity, out.MaxCapacity = WeightOf(0), PercentOf(0)
	}
	return out
}

func partition(q *Queue, label string, inherited []string, configured bool) Queue {
	labels := inherited
	if q.Labels != nil {
		labels = q.Labels
	}
	out := *q
	out.Labels, out.Shares, out.Settings = labels, nil, nil
	out.MaxApps, out.MaxParallelApps = 0, 0
	out.Capacity, out.MaxCapacity, out.Written = Amount{}, Amount{}, nil
	if configured || Accesses(labels, label) {
		if s := q.Share(label); s != nil {
			out.Capacity, out.MaxCapacity = s.Capacity, s.MaxCapacity
			if s.MaxAMPercent > 0 {
				out.MaxAMPercent = s.MaxAMPercent
			}
		}
	} else {
		out.MaxCapacity = PercentOf(0)
	}
	out.Children = make([]Queue, len(q.Children))
	unit := Percent
	for i := range q.Children {
		out.Children[i] = partition(&q.Children[i], label, labels, configured)
		c := &out.Children[i].Capacity
		if c.Unit == Percent && c.Value == 0 {
			c.Unit = Unset
		}
		if c.Unit != Unset {
			unit = c.Unit
		}
	}
	for i := range out.Children { // an absent share is 0 in its siblings' unit
		if c := &out.Children[i].Capacity; c.Unit == Unset {
			c.Unit = unit
		}
	}
	return out
}

// Share returns the queue's own share of a label, nil if none is configured.
func (q *Queue) Share(label string) *LabelShare {
	for i := range q.Shares {
		if q.Shares[i].Label == label {
			return &q.Shares[i]
		}
	}
	return nil
}
