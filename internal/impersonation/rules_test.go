// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"net/netip"
	"testing"
)

func TestReplacedRulesAreInForce(t *testing.T) {
	c := NewCurrent(Rules{"oozie": {Hosts: []string{"*"}, Users: []string{"*"}}}, func(string) []string { return nil })
	at := netip.MustParseAddr("10.1.1.1")
	if err := c.Check("oozie", "alice", at); err != nil || !c.Has("oozie") {
		t.Error(err)
	}
	c.Replace(Rules{"hue": {Hosts: []string{"*"}, Users: []string{"*"}}})
	if c.Check("oozie", "alice", at) == nil || c.Has("oozie") || c.Check("hue", "alice", at) != nil {
		t.Error("the earlier rules are in force")
	}
}

func TestRulesDecideByUserGroupAndHost(t *testing.T) {
	rules := Rules{
		"oozie": {Hosts: []string{"10.0.0.0/8"}, Users: []string{"alice"}, Groups: []string{"etl"}},
		"all":   {Hosts: []string{"*"}, Users: []string{"*"}},
		"group": {Hosts: []string{"*"}, Groups: []string{"*"}},
		"none":  {},
		"away":  {Users: []string{"*"}},
	}
	groups := func(user string) []string { return map[string][]string{"bob": {"staff", "etl"}}[user] }
	for _, c := range []struct {
		real, effective, from, why string
	}{
		{"oozie", "alice", "10.1.1.1", ""},
		{"oozie", "bob", "10.1.1.1", ""},
		{"oozie", "carol", "10.1.1.1", "User: oozie is not allowed to impersonate carol"},
		{"oozie", "alice", "11.1.1.1", "Unauthorized connection for super-user: oozie from IP 11.1.1.1"},
		{"all", "carol", "11.1.1.1", ""},
		{"group", "carol", "11.1.1.1", ""},
		{"none", "alice", "10.1.1.1", "User: none is not allowed to impersonate alice"},
		{"away", "alice", "10.1.1.1", "Unauthorized connection for super-user: away from IP 10.1.1.1"},
		{"stranger", "alice", "10.1.1.1", "User: stranger is not allowed to impersonate alice"},
	} {
		why := ""
		if err := rules.Check(groups, c.real, c.effective, netip.MustParseAddr(c.from)); err != nil {
			why = err.Error()
		}
		if why != c.why {
			t.Errorf("%s for %s from %s: %q, want %q", c.real, c.effective, c.from, why, c.why)
		}
	}
}
