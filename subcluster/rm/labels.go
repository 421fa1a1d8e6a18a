// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// enabled rejects calls about labels while labels are off.
func (x *nodeLabels) enabled() error {
	if x.m.cfg.Labels == LabelsOff {
		return refusal(creel.ErrNotEnabled, labelsDisabled)
	}
	return nil
}

const longestLabel = 255

var labelForm = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z_-]*$`)

// AddLabels adds labels to the cluster. A known label stays unchanged; its exclusivity cannot be changed.
func (m *Machine) AddLabels(now time.Time, list []Label) error {
	m.at(now)
	if err := m.labels.enabled(); err != nil {
		return err
	}
	for i := range list {
		l := &list[i]
		l.Name = strings.TrimSpace(l.Name)
		if l.Name == "" || len(l.Name) > longestLabel {
			return refusal(creel.ErrInvalidRequest, labelLength, longestLabel)
		}
		if !labelForm.MatchString(l.Name) {
			return refusal(creel.ErrInvalidRequest,
				labelCharacters,
				l.Name,
			)
		}
		if exclusive, known := m.labels.set.cluster[l.Name]; known && exclusive != l.Exclusive {
			return refusal(creel.ErrInvalidRequest, labelExclusivity,
				l.Name, l.Exclusive)
		}
	}
	for _, l := range list {
		m.labels.set.cluster[l.Name] = l.Exclusive
	}
	m.labels.changed()
	return nil
}

// RemoveLabels removes labels from the cluster and from nodes; none of them if one is unknown or a queue names it.
func (m *Machine) RemoveLabels(now time.Time, names []string) error {
	m.at(now)
	if err := m.labels.enabled(); err != nil {
		return err
	}
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if name = names[i]; name == "" {
			return refusal(creel.ErrInvalidRequest, removedLabelEmpty)
		}
		if _, known := m.labels.set.cluster[name]; !known {
			return refusal(creel.ErrInvalidRequest,
				removedLabelUnknown, name)
		}
		if q := m.sched.Tree().UserOf(name); q != "" {
			return refusal(creel.ErrInvalidRequest, removedLabelInUse, name, q)
		}
	}
	for _, name := range names {
		delete(m.labels.set.cluster, name)
	}
	for id, label := range m.labels.set.nodes {
		if slices.Contains(names, label) {
			if m.labels.set.nodes[id] = ""; id.Port == 0 {
				delete(m.labels.set.nodes, id)
			}
		}
	}
	m.labels.changed()
	return nil
}

// NodeLabels are a node's new labels: one or none. With port 0 they apply to all nodes of the host.
type NodeLabels struct {
	Node   creel.NodeID
	Labels []string
}

// ReplaceLabels replaces the labels of nodes, known or unknown, all or none of them; strict rejects nodes that never
// registered.
func (m *Machine) ReplaceLabels(now time.Time, list []NodeLabels, strict bool) error {
	m.at(now)
	if err := m.labels.enabled(); err != nil {
		return err
	}
	if m.cfg.Labels == LabelsByNode {
		return refusal(creel.ErrInvalidRequest,
			labelsAreReported, "replaceLabelsOnNode")
	}
	if strict {
		var unknown []string
		for _, n := range list {
			if !m.HasNode(n.Node) {
				unknown = append(unknown, n.Node.String())
			}
		}
		if len(unknown) > 0 {
			return refusal(creel.ErrInvalidRequest, labelledNodesUnknown, strings.Join(unknown, ", "))
		}
	}
	for i := range list {
		if err := m.labels.check(&list[i]); err != nil {
			return err
		}
	}
	for i := range list {
		n := &list[i]
		label := ""
		if len(n.Labels) > 0 {
			label = n.Labels[0]
		}
		if n.Node.Port == 0 { // its nodes take the host's label
			maps.DeleteFunc(m.labels.set.nodes, func(id creel.NodeID, _ string) bool { return id.Host == n.Node.Host })
		}
		if n.Node.Port != 0 || label != "" {
			m.labels.set.nodes[n.Node] = label
		}
	}
	m.labels.changed()
	return nil
}

// HasNode reports whether a node has registered; port 0 matches any node of the host.
func (r Reader) HasNode(id creel.NodeID) bool {
	m := r.m
	if id.Port != 0 {
		return m.nodes.byID[id] != nil
	}
	return slices.ContainsFunc(m.nodes.list, func(n *node) bool { return !n.forgotten && n.ID().Host == id.Host })
}

// check trims the labels of a node, removes empty ones, and rejects several and unknown ones.
func (x *nodeLabels) check(n *NodeLabels) error {
	labels := make([]string, 0, 1)
	for _, l := range n.Labels {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	n.Labels = labels
	if len(labels) > 1 {
		return refusal(creel.ErrInvalidRequest, severalNodeLabels, len(labels), n.Node.Host)
	}
	for _, l := range labels {
		if _, known := x.set.cluster[l]; !known {
			return refusal(creel.ErrInvalidRequest, nodeLabelUnknown, strings.Join(labels, ","))
		}
	}
	return nil
}

// reported applies the label that a node reports about itself, if nodes are the source of labels.
func (x *nodeLabels) reported(id creel.NodeID, labels []string) error {
	n := NodeLabels{Node: id, Labels: labels}
	if err := x.check(&n); err != nil {
		return err
	}
	label := ""
	if len(n.Labels) > 0 {
		label = n.Labels[0]
	}
	// No save is needed: every node reports again after a restart of this ResourceManager.
	x.set.nodes[id], x.inForce.nodes[id] = label, label
	if n := x.m.nodes.byID[id]; n != nil {
		x.apply(n)
	}
	return nil
}

// changed saves the labels, then puts them in force.
func (x *nodeLabels) changed() {
	m := x.m
	list := x.set.list()
	kept := list
	if m.cfg.Labels == LabelsByNode {
		kept.Nodes = nil
	}
	m.out.save(func(seq uint64) Action { return SaveLabels{Seq: seq, Labels: kept} }, func() { x.put(&list) })
	m.settle()
}

// put puts labels in force.
func (x *nodeLabels) put(l *Labels) {
	m := x.m
	x.inForce.put(l)
	if !m.sched.Policy().KnowsLabels() {
		return // labels are kept and shown
	}
	list := make([]sched.Partition, len(l.Cluster))
	for i, c := range l.Cluster {
		list[i] = sched.Partition{Label: c.Name, Exclusive: c.Exclusive}
	}
	if err := m.sched.SetPartitions(list); err != nil {
		panic("partitions of queues that were checked: " + err.Error())
	}
	for _, n := range m.nodes.list {
		x.apply(n)
	}
}

// apply moves a node into the partition of its label.
func (x *nodeLabels) apply(n *node) {
	m := x.m
	label := x.inForce.of(n.ID())
	if n.Label() == label {
		return
	}
	var held []sched.HeldContainer
	for _, c := range n.live {
		if c != nil && !c.uncharged() {
			held = append(held, sched.HeldContainer{App: &c.owner().app.App, Size: m.sizeOf(c)})
		}
	}
	m.sched.SetLabel(&n.Node, label, held)
	m.victims.apply()
}

// ClusterLabels returns, by name, the labels in force, if the scheduler has partitions.
func (r Reader) ClusterLabels() []Label {
	m := r.m
	if !m.sched.Policy().KnowsLabels() || len(m.labels.inForce.cluster) == 0 {
		return nil
	}
	out := make([]Label, 0, len(m.labels.inForce.cluster))
	for name, exclusive := range m.labels.inForce.cluster {
		out = append(out, Label{name, exclusive})
	}
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// LabelView is a label with its nodes.
type LabelView struct {
	Label
	Total  creel.Resource // of nodes that run containers
	Active int            // of those nodes
	Nodes  []creel.NodeID // with the label: including nodes that never registered, and hosts with port 0
}

// Labels returns the labels of the cluster by name, first the nodes without a label.
func (r Reader) Labels() []LabelView {
	m := r.m
	out := []LabelView{{Label: Label{Name: "", Exclusive: true}}}
	for _, l := range m.labels.set.list().Cluster {
		out = append(out, LabelView{Label: l})
	}
	at := func(label string) *LabelView {
		for i := range out {
			if out[i].Name == label {
				return &out[i]
			}
		}
		return &out[0]
	}
	for _, n := range r.NodeLabels() {
		v := at(n.Label)
		v.Nodes = append(v.Nodes, n.Node)
	}
	for _, n := range m.nodes.list {
		if n.state.runs() {
			v, total := at(m.labels.set.of(n.ID())), n.Total()
			v.Total = v.Total.Add(m.sizes.Resource(&total))
			v.Active++
		}
	}
	return out
}

// NodeLabels returns the nodes with a label, and the hosts labelled with port 0.
func (r Reader) NodeLabels() []NodeLabel {
	m := r.m
	labels := map[creel.NodeID]string{}
	for id, label := range m.labels.set.nodes {
		labels[id] = label
	}
	for n := range m.nodes.remembered {
		labels[n.ID()] = m.labels.set.of(n.ID())
	}
	var out []NodeLabel
	for id, label := range labels {
		if label != "" {
			out = append(out, NodeLabel{id, label})
		}
	}
	slices.SortFunc(out, func(a, b NodeLabel) int { return compareNodes(a.Node, b.Node) })
	return out
}

// LabelOf is the label of a node, "" for none.
func (r Reader) LabelOf(id creel.NodeID) string { return r.m.labels.set.of(id) }
