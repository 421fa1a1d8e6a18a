// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

const (
	labelList    = "accessible-node-labels"
	labelPrefix  = labelList + "."
	labelDefault = "default-node-label-expression"
)

// labelShares are the last parts of the keys for a queue's share of one label.
var labelShares = []string{"capacity", "maximum-capacity", "maximum-am-resource-percent"}

// isLabelSetting reports whether a setting of a queue is a supported one about labels.
func isLabelSetting(setting string) bool {
	if setting == labelList || setting == labelDefault {
		return true
	}
	rest, ok := strings.CutPrefix(setting, labelPrefix)
	label, what, _ := strings.Cut(rest, ".")
	return ok && label != "" && slices.Contains(labelShares, what)
}

// templateLabels is labels for queues created below path. written are the keys in their template.
func (r *capacityReader) templateLabels(
	path creel.QueuePath, get lookup, written []queues.Setting, q *queues.Queue,
) {
	names := make([]string, len(written))
	for i := range written {
		names[i] = written[i].Key
	}
	r.labels(path.Child("*"), get, names, q)
}

// labels reads a queue's accessible labels and its shares of them.
func (r *capacityReader) labels(path creel.QueuePath, get lookup, names []string, q *queues.Queue) {
	if p, ok := get(labelList); ok {
		q.Labels = splitList(p.Value)
		switch {
		case path == creel.RootQueue:
			if !slices.Equal(q.Labels, []string{queues.AnyLabel}) {
				r.warnAt(p, "has no effect: the root may use every label")
			}
			q.Labels = nil
		case slices.Contains(q.Labels, queues.AnyLabel):
			q.Labels = []string{queues.AnyLabel}
		case q.Labels == nil:
			q.Labels = []string{} // an empty list: no labels, not the parent's
		}
	}
	if p, ok := get(labelDefault); ok {
		q.DefaultLabel = strings.TrimSpace(p.Value)
		if strings.Contains(q.DefaultLabel, "&&") {
			r.failAt(p, "%q names more than one label", q.DefaultLabel)
		}
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, labelPrefix)
		label, what, _ := strings.Cut(rest, ".")
		if !ok || !isLabelSetting(name) || what == "" {
			continue
		}
		if q.Share(label) != nil {
			continue // already read with its first key
		}
		own := func(what string) (Property, bool) { return get(labelPrefix + label + "." + what) }
		s := queues.LabelShare{
			Label:        label,
			Capacity:     setting(r, own, "capacity", r.capacity, queues.Amount{}),
			MaxCapacity:  setting(r, own, "maximum-capacity", r.maximum, queues.Amount{}),
			MaxAMPercent: setting(r, own, "maximum-am-resource-percent", share, 0),
		}
		if path == creel.RootQueue {
			if p, ok := own("capacity"); ok && !isWhole(s.Capacity) {
				r.failAt(p, "the root has 100 percent of every label; it cannot be given another capacity")
			}
			continue
		}
		if p, ok := own("maximum-capacity"); ok {
			r.checkMaximum(p, s.Capacity, s.MaxCapacity)
		}
		q.Shares = append(q.Shares, s)
	}
	slices.SortFunc(q.Shares, func(a, b queues.LabelShare) int { return strings.Compare(a.Label, b.Label) })
}

// checkAccess rejects a queue that may use labels its parent may not use. The root may use all.
func (r *capacityReader) checkAccess(path creel.QueuePath, get lookup, own, above []string) {
	p, ok := get(labelList)
	if !ok || slices.Contains(above, queues.AnyLabel) {
		return
	}
	for _, label := range own {
		if !slices.Contains(above, label) {
			r.failAt(p, "%s may not use nodes of label %q; add it to the parent's %s", path, label, labelList)
		}
	}
}

// checkLabelUnits rejects children whose shares of labels have another unit than their capacities, as Hadoop does in
// legacy mode. It compares the labels that their parent has keys of.
func (r *capacityReader) checkLabelUnits(path creel.QueuePath, q *queues.Queue, unit queues.Unit) {
	for i := range q.Children {
		for _, s := range q.Children[i].Shares {
			own := s.Capacity.Unit
			if own == queues.Unset || own == unit || own == queues.Percent && s.Capacity.Value == 0 ||
				!r.configures(path, s.Label) {
				continue
			}
			child := path.Child(q.Children[i].Name)
			r.failAt(
				r.perQueue[string(child)][labelPrefix+s.Label+".capacity"],
				"the queues below %s mix percentages, weights and resources over labels; use one of them for all, or %s",
				path, vectorMode,
			)
			return
		}
	}
}

// configures reports whether a queue has a key of a label.
func (r *capacityReader) configures(path creel.QueuePath, label string) bool {
	return slices.ContainsFunc(r.keys[string(path)], func(key string) bool {
		return strings.HasPrefix(key, labelPrefix+label+".")
	})
}
