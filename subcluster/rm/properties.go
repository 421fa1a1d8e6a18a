// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// This file has nodes' labels and hosts' attributes as values; labels.go and attributes.go have the calls that set
// them.

// LabelSource is the source of nodes' labels: yarn.node-labels.configuration-type.
type LabelSource uint8

// Sources of nodes' labels. Hadoop's third source, delegated-centralized, is not supported.
const (
	LabelsOff    LabelSource = iota // yarn.node-labels.enabled is false
	LabelsByCall                    // centralized: administrators' calls
	LabelsByNode                    // distributed: each node reports its own
)

// DefaultPartition is the name of nodes without a label in documents.
const DefaultPartition = "<DEFAULT_PARTITION>"

// Label is a node label of the cluster. A label that is not exclusive lends its nodes' idle resources to asks without
// a label.
type Label struct {
	Name      string
	Exclusive bool
}

// LabelExpression is the label of an ask or a submission. If it is not set, a default applies; if it is set and
// empty, it means nodes without a label.
type LabelExpression struct {
	Text  string
	Given bool
}

// NodeLabel is the label of a node; with port 0, of all nodes of a host.
type NodeLabel struct {
	Node  creel.NodeID
	Label string // "" for none
}

// Labels are the labels of the cluster and of nodes, as saved in the journal.
type Labels struct {
	Cluster []Label     // by name
	Nodes   []NodeLabel // hosts, and nodes with a separate label or none
}

// labelStore has the same data in maps.
type labelStore struct {
	cluster map[string]bool // exclusive
	nodes   map[creel.NodeID]string
}

func (s *labelStore) put(l *Labels) {
	s.cluster, s.nodes = map[string]bool{}, map[creel.NodeID]string{}
	for _, c := range l.Cluster {
		s.cluster[c.Name] = c.Exclusive
	}
	for _, n := range l.Nodes {
		s.nodes[n.Node] = n.Label
	}
}

func (s *labelStore) list() Labels {
	var out Labels
	for name, exclusive := range s.cluster {
		out.Cluster = append(out.Cluster, Label{name, exclusive})
	}
	slices.SortFunc(out.Cluster, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	for id, label := range s.nodes {
		out.Nodes = append(out.Nodes, NodeLabel{id, label})
	}
	slices.SortFunc(out.Nodes, func(a, b NodeLabel) int { return compareNodes(a.Node, b.Node) })
	return out
}

func compareNodes(a, b creel.NodeID) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
}

// of returns the label of a node: the one set on it, which may be none, else its host's.
func (s *labelStore) of(id creel.NodeID) string {
	if len(s.nodes) == 0 {
		return ""
	}
	if label, own := s.nodes[id]; own {
		return label
	}
	return s.nodes[creel.NodeID{Host: id.Host}]
}

// Prefixes of node attributes, by their source.
const (
	AttributesByCall = "rm.yarn.io" // set by administrators' calls
	AttributesByNode = "nm.yarn.io" // reported by the host's NodeManagers
)

// AttributeKey names a node attribute.
type AttributeKey struct{ Prefix, Name string }

func (k AttributeKey) compare(b AttributeKey) int {
	return cmp.Or(strings.Compare(k.Prefix, b.Prefix), strings.Compare(k.Name, b.Name))
}

// Attribute is a node attribute with its value, which may be empty. All values are strings.
type Attribute struct {
	AttributeKey
	Value string
}

// HostAttributes are the attributes of all nodes of a host.
type HostAttributes struct {
	Host       string
	Attributes []Attribute // by prefix and name
}

// AttributeOp is an operation on a host's attributes.
type AttributeOp uint8

// Operations on attributes. A replacement does not change attributes of other prefixes.
const (
	ReplaceAttributes AttributeOp = iota + 1
	AddAttributes
	RemoveAttributes
)

// attributeStore has the attributes of hosts, as immutable lists that are replaced. A host that had attributes stays
// in it until a restart, as in Hadoop.
type attributeStore struct{ hosts map[string][]Attribute }

func (s *attributeStore) put(list []HostAttributes) {
	s.hosts = map[string][]Attribute{}
	for i := range list {
		s.change(ReplaceAttributes, AttributesByCall, &list[i])
	}
}

// change applies an operation to a host.
func (s *attributeStore) change(op AttributeOp, prefix string, by *HostAttributes) {
	next := map[AttributeKey]string{}
	for _, a := range s.hosts[by.Host] {
		if op != ReplaceAttributes || a.Prefix != prefix {
			next[a.AttributeKey] = a.Value
		}
	}
	for _, a := range by.Attributes {
		if op == RemoveAttributes {
			delete(next, a.AttributeKey)
			continue
		}
		next[a.AttributeKey] = a.Value
	}
	list := make([]Attribute, 0, len(next))
	for key, value := range next {
		list = append(list, Attribute{key, value})
	}
	slices.SortFunc(list, func(a, b Attribute) int { return a.compare(b.AttributeKey) })
	s.hosts[by.Host] = list
}

// list returns the hosts in order of name.
func (s *attributeStore) list() []HostAttributes {
	var out []HostAttributes
	for _, host := range slices.Sorted(maps.Keys(s.hosts)) {
		out = append(out, HostAttributes{Host: host, Attributes: s.hosts[host]})
	}
	return out
}

// kept returns the attributes that calls have set on hosts, by name of host, for the journal.
func (s *attributeStore) kept() []HostAttributes {
	var out []HostAttributes
	for _, h := range s.list() {
		h.Attributes = slices.DeleteFunc(slices.Clone(h.Attributes), func(a Attribute) bool {
			return a.Prefix != AttributesByCall
		})
		if len(h.Attributes) > 0 {
			out = append(out, h)
		}
	}
	return out
}
