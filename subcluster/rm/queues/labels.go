// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"slices"

	"github.com/creelrm/creel"
)

// AnyLabel in Queue.Labels stands for every label.
const AnyLabel = "*"

// LabelShare is what a queue has of the partition of one label.
type LabelShare struct {
	Label        string
	Capacity     Amount  // of the parent's part of the partition [0]
	MaxCapacity  Amount  // [100 percent of the parent's]
	MaxAMPercent float64 // share 0..1 that AMs may use there [the queue's MaxAMPercent]
}

// Accesses reports whether a queue whose labels these are may use the nodes of a
// label; every queue may use those without one.
func Accesses(labels []string, label string) bool {
	return label == "" || slices.Contains(labels, AnyLabel) || slices.Contains(labels, label)
}

// AccessibleLabels are the labels that the queue of a path may use: its own, or
// those of the nearest queue above it that lists some; every label below a root
// that lists none. A queue that is not configured (made on demand) has none.
func (s *Spec) AccessibleLabels(path creel.QueuePath) []string {
	labels := []string{AnyLabel}
	q, ok := s.walk(path, func(q *Queue) {
		if q.Labels != nil {
			labels = q.Labels
		}
	})
	if q == nil || !ok {
		return nil
	}
	return labels
}

// DefaultLabel is the label of asks that name none in the queue of a path: its own
// default, or that of its parent where it may use all that the parent may.
func (s *Spec) DefaultLabel(path creel.QueuePath) string {
	labels, label := []string{AnyLabel}, ""
	_, ok := s.walk(path, func(q *Queue) {
		mine := labels
		if q.Labels != nil {
			mine = q.Labels
		}
		switch {
		case q.DefaultLabel != "":
			label = q.DefaultLabel
		case slices.ContainsFunc(labels, func(l string) bool { return !Accesses(mine, l) }):
			label = ""
		}
		labels = mine
	})
	if !ok {
		return ""
	}
	return label
}

// walk shows the queues from the root to path, and gives the last that there is;
// false if that is not the one of the path.
func (s *Spec) walk(path creel.QueuePath, each func(*Queue)) (*Queue, bool) {
	names := path.Parts()
	if len(names) == 0 || names[0] != s.Root.Name {
		return nil, false
	}
	q := &s.Root
	each(q)
	for _, name := range names[1:] {
		i := slices.IndexFunc(q.Children, func(c Queue) bool { return c.Name == name })
		if i < 0 {
			return q, false
		}
		q = &q.Children[i]
		each(q)
	}
	return q, true
}

// LabelNames are the labels that queues have a share of, sorted.
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

// UserOf is the first queue whose own list names a label, "" if none does.
func (s *Spec) UserOf(label string) creel.QueuePath {
	var look func(q *Queue, path creel.QueuePath) creel.QueuePath
	look = func(q *Queue, path creel.QueuePath) creel.QueuePath {
		if slices.Contains(q.Labels, label) {
			return path
		}
		for i := range q.Children {
			if found := look(&q.Children[i], path.Child(q.Children[i].Name)); found != "" {
				return found
			}
		}
		return ""
	}
	return look(&s.Root, creel.RootQueue)
}

// Partition is the tree that shares the nodes of one label: the same queues with
// what they have of it. A queue that may not use the label has nothing and may grow
// to nothing. Limits in numbers of applications are not of a partition.
func (s *Spec) Partition(label string) Spec {
	out := *s
	out.MaxApplications, out.UserMaxApps, out.UserMaxAppsDefault = 0, nil, 0
	out.Root = partition(&s.Root, label, []string{AnyLabel})
	out.Root.Capacity, out.Root.MaxCapacity = PercentOf(100), Amount{}
	return out
}

func partition(q *Queue, label string, inherited []string) Queue {
	labels := inherited
	if q.Labels != nil {
		labels = q.Labels
	}
	out := *q
	out.Labels, out.Shares, out.Settings = labels, nil, nil
	out.MaxApps, out.MaxParallelApps = 0, 0
	out.Capacity, out.MaxCapacity = Amount{}, Amount{}
	if Accesses(labels, label) {
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
		out.Children[i] = partition(&q.Children[i], label, labels)
		c := &out.Children[i].Capacity
		if c.Unit == Percent && c.Value == 0 {
			c.Unit = Unset
		}
		if c.Unit != Unset {
			unit = c.Unit
		}
	}
	for i := range out.Children { // who has nothing has nothing of the unit that its siblings have
		if c := &out.Children[i].Capacity; c.Unit == Unset {
			c.Unit = unit
		}
	}
	return out
}

// Share is what the queue itself has of a label, nil if nothing is said.
func (q *Queue) Share(label string) *LabelShare {
	for i := range q.Shares {
		if q.Shares[i].Label == label {
			return &q.Shares[i]
		}
	}
	return nil
}
