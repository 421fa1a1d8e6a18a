// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// An ask uses the label that it names. If it names none, the queue's default applies. The default may differ between
// members.

// askLabel returns the label of an ask in a queue at a member. given: the ask names label explicitly, which may be
// "".
func askLabel(m *subcluster.Status, q creel.QueuePath, label string, given bool) string {
	if label != "" || given {
		return label
	}
	if len(m.Load.Labels.Queues) == 0 {
		return ""
	}
	return m.Load.Labels.Default(pathIn(m, q))
}

// pathIn returns the full path of a queue at a member, "" if there is none. Clients may send only the leaf name.
func pathIn(m *subcluster.Status, q creel.QueuePath) creel.QueuePath {
	if q == "" || q.IsFull() {
		return q
	}
	if l := m.QueueOn(q, ""); l != nil {
		return l.Queue
	}
	return ""
}

// mayName returns the reason why asks in a queue may not name a label at a member, "" if they may.
func mayName(m *subcluster.Status, q creel.QueuePath, label string) string {
	if label == "" || len(m.Load.Labels.Queues) == 0 {
		return ""
	}
	path := pathIn(m, q)
	if path == "" || m.Load.Labels.May(path, label) {
		return ""
	}
	return fmt.Sprintf("asks in queue %q may not name node label %q there", path, label)
}

// label returns the label of the submission's AM at a member.
func (d *homeDecision) label(i int) string { return d.facts[i].label }

// label returns the label of the group at a member within reach.
func (d *splitDecision) label(i int) string {
	m, ok := d.view.Member(d.reach[i].Member)
	if !ok {
		return d.group.Label
	}
	return askLabel(m, d.queue, d.group.Label, d.group.LabelGiven)
}

// partitionCannotHold returns the reason why no node of a label's partition can ever run a container of that size, at
// a member that publishes its labels. lent: resources that shared partitions lend count as resources without a label.
// That is so for all containers but AMs.
func partitionCannotHold(m *subcluster.Status, size creel.Resource, label string, lent bool) (Exclusion, string) {
	if label != "" {
		p := m.Load.Labels.Find(label)
		if p == nil {
			return ExcludedLabel, fmt.Sprintf("it has no node label %q", label)
		}
		return cannotFit(size, p.Total, "its nodes of label "+label)
	}
	total := m.Load.Metrics.Total()
	if len(size.Others) > 0 { // only queues report further types, and there may be hundreds of queues
		for i := range m.Load.Queues {
			if q := &m.Load.Queues[i]; q.Label == "" {
				for _, a := range q.Capacity.Add(q.Free).Others {
					total = total.With(a.Name, max(a.Value, total.Get(a.Name)))
				}
			}
		}
	}
	code, why := cannotFit(size, total, "its total")
	if code == "" || !lent {
		return code, why
	}
	for i := range m.Load.Labels.Partitions {
		p := &m.Load.Labels.Partitions[i]
		if other, _ := cannotFit(size, p.Total, ""); p.Shared && !p.Total.IsZero() && other == "" {
			return "", ""
		}
	}
	return code, why
}

// hasNodes reports whether a member has nodes, with labels or without.
func hasNodes(m *subcluster.Status) bool {
	return !m.Load.Metrics.Total().IsZero() || slices.ContainsFunc(m.Load.Labels.Partitions,
		func(p subcluster.Partition) bool { return !p.Total.IsZero() })
}

// cannotFit returns the reason why a container does not fit into the total of some nodes. Without nodes it returns
// "": nodes may join.
func cannotFit(size, total creel.Resource, nodes string) (Exclusion, string) {
	if total.MemoryMB == 0 && total.VCores == 0 {
		return "", ""
	}
	for _, a := range size.Others {
		if a.Value > 0 && total.Get(a.Name) == 0 {
			return ExcludedResource, "it has no " + a.Name
		}
	}
	if size.MemoryMB > total.MemoryMB || size.VCores > total.VCores {
		return ExcludedTooLarge, fmt.Sprintf("%v is more than %s, %v", size, nodes, total)
	}
	return "", ""
}

// refused returns the error for a submission that names a label, or needs a resource type, that the federation lacks.
// It applies only if all members publish their labels and types, and none is known to be missing.
func (d *homeDecision) refused() error {
	if d.sub.Label == "" && len(d.sub.Size.Others) == 0 || d.view == nil || d.view.Freeze != nil {
		return nil
	}
	var lacking error
	for i := range d.view.Members {
		m := d.status(i)
		if m.State == subcluster.StateDeregistered {
			continue
		}
		if !m.Load.Labels.Known {
			return nil
		}
		switch code, _ := partitionCannotHold(m, d.sub.Size, d.label(i), false); code {
		case ExcludedLabel:
			if lacking == nil {
				lacking = noSuchLabel(d.view, d.sub.Label)
			}
		case ExcludedResource:
			lacking = noSuchType(d.view, d.sub.Size)
		default:
			return nil
		}
		if !hasNodes(m) {
			return nil // its nodes have not joined yet
		}
	}
	return lacking
}

// noSuchLabel returns the error for an unknown label, with the text that ResourceManagers use.
func noSuchLabel(view *subcluster.View, label string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidLabel,
		What: fmt.Sprintf("Invalid label resource request, no subcluster contains label= %s", label),
		Why:  labelsOf(view),
		Try:  "name one of these labels, or none",
	}
}

func noSuchType(view *subcluster.View, size creel.Resource) error {
	var names, have []string
	for _, a := range size.Others {
		names = append(names, a.Name)
	}
	for i := range view.Members {
		m := &view.Members[i]
		if types := typesOf(m); len(types) > 0 && m.State != subcluster.StateDeregistered {
			have = append(have, fmt.Sprintf("%s has %s", m.ID, strings.Join(types, ", ")))
		}
	}
	return &creel.Error{
		Kind: creel.ErrInvalidResource,
		What: "Invalid resource request, no subcluster has nodes with " + strings.Join(names, " and "),
		Why:  cmp.Or(some(have), "no subcluster has resources but memory and vcores"),
		Try:  "ask for less, or see `creel subcluster list`",
	}
}

// typesOf returns the named resource types of a member.
func typesOf(m *subcluster.Status) (types []string) {
	add := func(r creel.Resource) {
		for _, a := range r.Others {
			if !slices.Contains(types, a.Name) {
				types = append(types, a.Name)
			}
		}
	}
	for i := range m.Load.Queues {
		add(m.Load.Queues[i].Capacity)
		add(m.Load.Queues[i].Free)
	}
	for i := range m.Load.Labels.Partitions {
		add(m.Load.Labels.Partitions[i].Total)
	}
	return types
}

// labelsOf lists the known labels and their members.
func labelsOf(view *subcluster.View) string {
	var have []string
	for i := range view.Members {
		m := &view.Members[i]
		if len(m.Load.Labels.Partitions) == 0 || m.State == subcluster.StateDeregistered {
			continue
		}
		var labels []string
		for _, p := range m.Load.Labels.Partitions {
			labels = append(labels, p.Label)
		}
		have = append(have, fmt.Sprintf("%s has %s", m.ID, some(labels)))
	}
	return cmp.Or(some(have), "no subcluster has node labels")
}

// some lists the first few.
func some(of []string) string {
	const most = 8
	if more := len(of) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(of[:most], ", "), more)
	}
	return strings.Join(of, ", ")
}

// lacks returns the reason why a member within reach, which may be home, must not get the group for its label or
// resource types; "" if it may. A member that publishes nothing is not excluded.
func (d *splitDecision) lacks(i int) (Exclusion, string) {
	m, ok := d.view.Member(d.reach[i].Member)
	if !ok || !m.Load.Labels.Known {
		return "", ""
	}
	label := d.label(i)
	code, why := partitionCannotHold(m, d.group.Size, label, true)
	if code == ExcludedLabel || code == ExcludedResource {
		return code, why
	}
	if why := mayName(m, d.queue, label); why != "" {
		return ExcludedLabel, why
	}
	return "", ""
}

// nowhere handles a group whose label or resource type home lacks, and that no member can get now. The group is sent
// to no member: home would reject it together with the whole request of the AM. It returns an error for a label that
// no member can ever get. For such a resource type home decides, and because is "".
func (d *splitDecision) nowhere(lacks Exclusion, alone bool) (because string, err error) {
	label := d.label(d.home)
	var has []string
	for i := range d.view.Members {
		m := &d.view.Members[i]
		if m.State == subcluster.StateDeregistered || alone {
			continue
		}
		label := askLabel(m, d.queue, d.group.Label, d.group.LabelGiven)
		code, _ := cannotHold(m, d.group.Size, label, true)
		if code == "" && mayName(m, d.queue, label) == "" && !d.lacksQueue(m) &&
			(lacks == ExcludedLabel || d.hasTypes(m)) {
			has = append(has, string(m.ID))
		}
	}
	if len(has) > 0 {
		return fmt.Sprintf("%d wait: %s could run them, and cannot be asked now", d.group.Count, some(has)), nil
	}
	if lacks == ExcludedResource {
		return "", nil
	}
	e := noSuchLabel(d.view, label).(*creel.Error)
	e.What = fmt.Sprintf("Invalid label resource request, asks in queue %q can have label= %s in no subcluster",
		d.queue, label)
	if alone {
		e.What = fmt.Sprintf("Invalid label resource request, the policy of queue %q asks home alone, "+
			"where its asks cannot have label= %s", d.queue, label)
	}
	return e.What, e
}

// hasTypes reports whether a member is known to have each resource type of the group. A member that reports nothing
// is not.
func (d *splitDecision) hasTypes(m *subcluster.Status) bool {
	types := typesOf(m)
	return !slices.ContainsFunc(d.group.Size.Others, func(a creel.Amount) bool {
		return a.Value > 0 && !slices.Contains(types, a.Name)
	})
}
