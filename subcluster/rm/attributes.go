// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

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
		return refusal(creel.ErrInvalidRequest, attributeNameLength, longestAttribute)
	case !attributeName.MatchString(a.Name):
		return refusal(creel.ErrInvalidRequest, attributeNameCharacters, a.Name)
	case len(a.Prefix) > longestAttribute:
		return refusal(creel.ErrInvalidRequest, attributeValueLength, longestAttribute)
	case !attributePrefix.MatchString(a.Prefix):
		return refusal(creel.ErrInvalidRequest, attributePrefixCharacters, a.Prefix)
	case len(a.Value) > longestAttribute:
		return refusal(creel.ErrInvalidRequest, attributeValueLength, longestAttribute)
	case a.Value != "" && !attributeValue.MatchString(a.Value):
		return refusal(creel.ErrInvalidRequest, attributeValueCharacters, a.Value)
	}
	return nil
}

// MapAttributes changes the attributes that administrators set on hosts, on all of them or on none; strict rejects
// hosts on which no node ever registered. A call that removes attributes need not name their values.
func (m *Machine) MapAttributes(now time.Time, op AttributeOp, list []HostAttributes, strict bool) error {
	m.at(now)
	if op < ReplaceAttributes || op > RemoveAttributes {
		return refusal(creel.ErrInvalidRequest, attributeOperation, op)
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
				return refusal(creel.ErrInvalidRequest, attributePrefixForbidden, h.Host, AttributesByCall)
			}
		}
	}
	if len(unknown) > 0 {
		return refusal(creel.ErrInvalidRequest, attributeHostsUnknown, strings.Join(unknown, ", "))
	}
	// A host without attributes in the call stays unchanged, even by Hadoop's replace.
	list = slices.DeleteFunc(slices.Clone(list), func(h HostAttributes) bool { return len(h.Attributes) == 0 })
	for i := range list {
		for k := range list[i].Attributes {
			if err := m.attributes.check(op, list[i].Host, &list[i].Attributes[k]); err != nil {
				return err
			}
		}
	}
	for i := range list {
		m.attributes.set.change(op, AttributesByCall, &list[i])
	}
	kept := m.attributes.set.kept()
	m.out.save(func(seq uint64) Action { return SaveAttributes{Seq: seq, Hosts: kept} }, func() {
		for i := range list {
			m.attributes.apply(op, AttributesByCall, &list[i])
		}
	})
	m.settle()
	return nil
}

// check checks an attribute in a call; an attribute to remove must exist.
func (x *nodeAttributes) check(op AttributeOp, host string, a *Attribute) error {
	if err := checkAttribute(a); err != nil {
		return err
	}
	has := func(b Attribute) bool { return b.AttributeKey == a.AttributeKey }
	if op == RemoveAttributes && !slices.ContainsFunc(x.set.hosts[host], has) {
		return refusal(creel.ErrInvalidRequest, attributeUnknown, a.Prefix, a.Name, host)
	}
	return nil
}

// reported replaces the attributes that nodes have reported for a host.
func (x *nodeAttributes) reported(id creel.NodeID, list []Attribute) error {
	for i := range list {
		if list[i].Prefix != AttributesByNode {
			return refusal(creel.ErrInvalidRequest, reportedPrefixForbidden,
				id, AttributesByNode)
		}
		if err := checkAttribute(&list[i]); err != nil {
			return err
		}
	}
	// No save is needed: every node reports again after a restart of this ResourceManager.
	h := HostAttributes{Host: id.Host, Attributes: list}
	x.set.change(ReplaceAttributes, AttributesByNode, &h)
	x.apply(ReplaceAttributes, AttributesByNode, &h)
	return nil
}

// apply applies a change of a host's attributes to the scheduler.
func (x *nodeAttributes) apply(op AttributeOp, prefix string, h *HostAttributes) {
	x.inForce.change(op, prefix, h)
	values := map[string]string{}
	for _, a := range x.inForce.hosts[h.Host] {
		values[a.Prefix+"/"+a.Name] = a.Value
	}
	x.m.sched.Tags().SetAttributes(h.Host, values)
}

// Attributes returns all keys in use, sorted, and by name the hosts that have or had attributes.
func (r Reader) Attributes() (keys []AttributeKey, hosts []HostAttributes) {
	hosts = r.m.attributes.set.list()
	for _, h := range hosts {
		for _, a := range h.Attributes {
			keys = append(keys, a.AttributeKey)
		}
	}
	slices.SortFunc(keys, AttributeKey.compare)
	return slices.Compact(keys), hosts
}

// AttributesOf returns the attributes of a node's host, read-only.
func (r Reader) AttributesOf(id creel.NodeID) []Attribute { return r.m.attributes.set.hosts[id.Host] }
