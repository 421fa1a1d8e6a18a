// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Prefixes of node attributes, by their source.
const (
	AttributesByCall = "rm.yarn.io" // set by administrators' calls
	AttributesByNode = "nm.yarn.io" // reported by the host's NodeManagers
)

// AttributeKey names a node attribute.
type AttributeKey struct{ Prefix, Name string }

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

func (k AttributeKey) compare(b AttributeKey) int {
	return cmp.Or(strings.Compare(k.Prefix, b.Prefix), strings.Compare(k.Name, b.Name))
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

var (
	attributeName   = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z_-]*$`)
	attributeValue  = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z_.-]*$`)
	attributePrefix = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z_.-]*$`)
)

const longestAttribute = 255

// checkAttribute trims an attribute and rejects an invalid one, in Hadoop's words.
func checkAttribute(a *Attribute) error {
	a.Prefix, a.Name, a.Value = strings.TrimSpace(a.Prefix), strings.TrimSpace(a.Name), strings.TrimSpace(a.Value)
	switch {
	case a.Name == "" || len(a.Name) > longestAttribute:
		return badLabel("attribute name added is empty or exceeds %d character(s)", longestAttribute)
	case !attributeName.MatchString(a.Name):
		return badLabel("attribute name should only contains {0-9, a-z, A-Z, -, _} and should not started with "+
			"{-,_}, now it is= %s", a.Name)
	case len(a.Prefix) > longestAttribute:
		return badLabel("Attribute value added exceeds %d character(s)", longestAttribute)
	case !attributePrefix.MatchString(a.Prefix):
		return badLabel("attribute value should only contains {0-9, a-z, A-Z, -, _,.} and should not started with "+
			"{-,_}, now it is= %s", a.Prefix)
	case len(a.Value) > longestAttribute:
		return badLabel("Attribute value added exceeds %d character(s)", longestAttribute)
	case a.Value != "" && !attributeValue.MatchString(a.Value):
		return badLabel("attribute value should only contains {0-9, a-z, A-Z, -, _} and should not started with "+
			"{-,_}, now it is= %s", a.Value)
	}
	return nil
}

// MapAttributes changes the attributes that administrators set on hosts, on all of them or on none; strict rejects
// hosts on which no node ever registered. A call that removes attributes need not name their values.
func (m *Machine) MapAttributes(now time.Time, op AttributeOp, list []HostAttributes, strict bool) error {
	m.at(now)
	if op < ReplaceAttributes || op > RemoveAttributes {
		return badLabel("Invalid operation %d specified in the mapAttributesToNodes request ", op)
	}
	var unknown []string
	for i := range list {
		h := &list[i]
		if h.Host = strings.TrimSpace(h.Host); strict && !m.HasNode(creel.NodeID{Host: h.Host}) {
			unknown = append(unknown, h.Host)
			continue
		}
		for k := range h.Attributes {
			if p := h.Attributes[k].Prefix; p != AttributesByCall {
				return badLabel("Invalid Attribute Mapping for the node %s. Prefix should be %s", h.Host, AttributesByCall)
			}
		}
	}
	if len(unknown) > 0 {
		return badLabel(" Following nodes does not exist : [%s]", strings.Join(unknown, ", "))
	}
	// A host without attributes in the call stays unchanged, even by Hadoop's replace.
	list = slices.DeleteFunc(slices.Clone(list), func(h HostAttributes) bool { return len(h.Attributes) == 0 })
	for i := range list {
		for k := range list[i].Attributes {
			if err := m.checkChange(op, list[i].Host, &list[i].Attributes[k]); err != nil {
				return err
			}
		}
	}
	for i := range list {
		m.attributes.change(op, AttributesByCall, &list[i])
	}
	kept := m.attributes.kept()
	m.save(func(seq uint64) Action { return SaveAttributes{Seq: seq, Hosts: kept} }, func() {
		for i := range list {
			m.inForceOn(op, AttributesByCall, &list[i])
		}
	})
	m.settle()
	return nil
}

// checkChange checks an attribute in a call; an attribute to remove must exist.
func (m *Machine) checkChange(op AttributeOp, host string, a *Attribute) error {
	if err := checkAttribute(a); err != nil {
		return err
	}
	has := func(b Attribute) bool { return b.AttributeKey == a.AttributeKey }
	if op == RemoveAttributes && !slices.ContainsFunc(m.attributes.hosts[host], has) {
		return badLabel("Node attribute [Prefix-%s :Name-%s] doesn't exist on node %s", a.Prefix, a.Name, host)
	}
	return nil
}

// attributesReported replaces the attributes that nodes have reported for a host.
func (m *Machine) attributesReported(id creel.NodeID, list []Attribute) error {
	for i := range list {
		if list[i].Prefix != AttributesByNode {
			return badLabel("Reject invalid node attributes from host: %s, attributes in HB must have prefix %s",
				id, AttributesByNode)
		}
		if err := checkAttribute(&list[i]); err != nil {
			return err
		}
	}
	// No save is needed: every node reports again after a restart of this ResourceManager.
	h := HostAttributes{Host: id.Host, Attributes: list}
	m.attributes.change(ReplaceAttributes, AttributesByNode, &h)
	m.inForceOn(ReplaceAttributes, AttributesByNode, &h)
	return nil
}

// inForceOn applies a change of a host's attributes to the scheduler.
func (m *Machine) inForceOn(op AttributeOp, prefix string, h *HostAttributes) {
	m.placedBy.change(op, prefix, h)
	values := map[string]string{}
	for _, a := range m.placedBy.hosts[h.Host] {
		values[a.Prefix+"/"+a.Name] = a.Value
	}
	m.sched.Tags().SetAttributes(h.Host, values)
}

// Attributes returns all keys in use, sorted, and by name the hosts that have or had attributes.
func (m *Machine) Attributes() (keys []AttributeKey, hosts []HostAttributes) {
	hosts = m.attributes.list()
	for _, h := range hosts {
		for _, a := range h.Attributes {
			keys = append(keys, a.AttributeKey)
		}
	}
	slices.SortFunc(keys, AttributeKey.compare)
	return slices.Compact(keys), hosts
}

// AttributesOf returns the attributes of a node's host, read-only.
func (m *Machine) AttributesOf(id creel.NodeID) []Attribute { return m.attributes.hosts[id.Host] }
