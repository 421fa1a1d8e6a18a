// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

func attributesText(list []Attribute) string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s/%s=%s", a.Prefix, a.Name, a.Value))
	}
	return strings.Join(out, " ")
}

func given(nameValues ...string) (out []Attribute) {
	for i := 0; i < len(nameValues); i += 2 {
		out = append(out, Attribute{AttributeKey{AttributesByCall, nameValues[i]}, nameValues[i+1]})
	}
	return out
}

// Attributes set by administrators and attributes reported by nodes are separate: each replaces its own. Those set by
// calls survive a restart; nodes report again.
func TestAttributesOfHosts(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Volatile = false })
	m := w.m
	id := creel.NodeID{Host: "h", Port: 1}
	reported := func(value string) NodeProperties {
		return NodeProperties{HasAttributes: true, Attributes: []Attribute{{AttributeKey{AttributesByNode, "os"}, value}}}
	}
	r, err := m.RegisterNode(w.now, &RegisterNode{
		ID: id, Resource: creel.Resource{MemoryMB: 4096, VCores: 4}, Reported: reported("linux"),
	})
	if err != nil || !r.Taken.Attributes || r.Diagnostics != "" {
		t.Fatalf("%+v %v", r, err)
	}
	change := func(op AttributeOp, host string, strict bool, list []Attribute, fails string) {
		t.Helper()
		err := m.MapAttributes(w.now, op, []HostAttributes{{host, list}}, strict)
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Fatalf("%v, want %q", err, fails)
		}
	}
	is := func(want string) {
		t.Helper()
		if got := attributesText(m.AttributesOf(id)); got != want {
			t.Fatalf("%s\nwant %s", got, want)
		}
	}
	change(AddAttributes, "h", true, given("os", "bsd", "fast", ""), "")
	change(AddAttributes, "h", true, given("os", "win"), "")
	is("nm.yarn.io/os=linux rm.yarn.io/fast= rm.yarn.io/os=win")
	change(ReplaceAttributes, "h", true, given("gpu", "v100-2.0"), "")
	is("nm.yarn.io/os=linux rm.yarn.io/gpu=v100-2.0")
	change(ReplaceAttributes, "h", true, nil, "")
	is("nm.yarn.io/os=linux rm.yarn.io/gpu=v100-2.0")

	change(AddAttributes, "other", true, given("os", "bsd"), "Following nodes does not exist : [other]")
	change(AddAttributes, "h", true, given("-os", "bsd"), "attribute name should only contains")
	change(AddAttributes, "h", true, given("os", "a b"), "attribute value should only contains")
	change(AddAttributes, "h", true, given(strings.Repeat("x", 256), ""), "exceeds 255")
	change(AddAttributes, "h", true, given("os", strings.Repeat("x", 256)), "exceeds 255")
	change(RemoveAttributes, "h", true, given("os", ""),
		"Node attribute [Prefix-rm.yarn.io :Name-os] doesn't exist on node h")
	change(AddAttributes, "h", true, []Attribute{{AttributeKey{AttributesByNode, "os"}, "x"}},
		"Invalid Attribute Mapping for the node h. Prefix should be rm.yarn.io")
	change(AttributeOp(4), "h", true, given("os", ""), "Invalid operation 4")
	is("nm.yarn.io/os=linux rm.yarn.io/gpu=v100-2.0")

	ans := m.NodeHeartbeat(w.now, &NodeReport{ID: id, Reported: NodeProperties{
		HasAttributes: true, Attributes: given("os", "mine"),
	}})
	if ans.Taken.Attributes || !strings.Contains(ans.Diagnostics, "must have prefix nm.yarn.io") {
		t.Errorf("%+v", ans)
	}
	ans = m.NodeHeartbeat(w.now, &NodeReport{ID: id, ResponseID: 1}) // reports no attributes
	if ans.Taken.Attributes {
		t.Errorf("%+v", ans)
	}
	is("nm.yarn.io/os=linux rm.yarn.io/gpu=v100-2.0")
	m.NodeHeartbeat(w.now, &NodeReport{ID: id, ResponseID: 2, Reported: NodeProperties{HasAttributes: true}})
	is("rm.yarn.io/gpu=v100-2.0")

	change(AddAttributes, "later", false, given("os", "bsd"), "")
	keys, hosts := m.Attributes()
	if len(keys) != 2 || len(hosts) != 2 || hosts[1].Host != "later" {
		t.Errorf("%v %v", keys, hosts)
	}
	change(RemoveAttributes, "later", false, given("os", ""), "")
	if keys, hosts = m.Attributes(); len(keys) != 1 || len(hosts) != 2 || len(hosts[1].Attributes) != 0 {
		t.Errorf("%v %v", keys, hosts)
	}
	var kept []HostAttributes
	for _, a := range m.Actions(nil) {
		if s, ok := a.(SaveAttributes); ok {
			kept = s.Hosts
		}
	}
	again := newWorld(t, nil).m
	if err := again.Recover(w.now, &Recover{Attributes: kept}); err != nil {
		t.Fatal(err)
	}
	if got, want := again.AttributesOf(id), given("gpu", "v100-2.0"); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart: %v, before: %v", got, want)
	}
}
