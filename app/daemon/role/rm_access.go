// SPDX-License-Identifier: Apache-2.0

package role

import (
	"slices"
	"strings"
	"sync"

	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// proxyRules reads hadoop.proxyuser.USER.{hosts,users,groups}.
func proxyRules(s *settings.Settings) impersonation.Rules {
	rules := impersonation.Rules{}
	for _, kind := range []string{"hosts", "users", "groups"} {
		for _, v := range s.Matching("hadoop.proxyuser.*." + kind) {
			name := strings.TrimSuffix(strings.TrimPrefix(v.Key, "hadoop.proxyuser."), "."+kind)
			r := rules[name]
			list := settings.SplitList(v.Text)
			switch kind {
			case "hosts":
				r.Hosts = list
			case "users":
				r.Users = list
			case "groups":
				r.Groups = list
			}
			rules[name] = r
		}
	}
	return rules
}

// machineGroups are the suffixes of Hadoop's class names whose group mappings use this machine's groups.
var machineGroups = []string{
	"JniBasedUnixGroupsMapping", "JniBasedUnixGroupsMappingWithFallback", "ShellBasedUnixGroupsMapping",
}

// groupMapping returns the look-up of groups; ok is false for a class that creel does not support.
func groupMapping(s *settings.Settings) (lookup func(user string) []string, ok bool) {
	class := s.String("hadoop.security.group.mapping")
	switch name := class[strings.LastIndex(class, ".")+1:]; {
	case name == "NullGroupsMapping":
		return func(string) []string { return nil }, true
	default:
		return groups.OfMachine, slices.Contains(machineGroups, name)
	}
}

// groupsOf returns the group mapping: hadoop.user.group.static.mapping.overrides (user=group1,group2;user2=…), and
// for other users hadoop.security.group.mapping.
func groupsOf(s *settings.Settings) *groups.Groups {
	static := map[string][]string{}
	for entry := range strings.SplitSeq(s.String("hadoop.user.group.static.mapping.overrides"), ";") {
		if user, groups, ok := strings.Cut(entry, "="); ok {
			static[strings.TrimSpace(user)] = settings.SplitList(groups)
		}
	}
	mapped, _ := groupMapping(s)
	return groups.New(func(user string) []string {
		if groups, ok := static[user]; ok {
			return groups
		}
		return mapped(user)
	}, s.Duration("hadoop.security.groups.cache.secs"))
}

// administrators reads yarn.admin.acl.
func administrators(s *settings.Settings, g *groups.Groups) func(user string) bool {
	acl := queues.ParseACL(s.ACL("yarn.admin.acl"))
	return func(user string) bool { return acl.All || acl.Allows(user, g.Of(user)) }
}

// allows returns a function that evaluates access lists in Hadoop's format for a user.
func allows(g *groups.Groups) func(user string) func(acl string) bool {
	return func(user string) func(string) bool {
		groups := sync.OnceValue(func() []string { return g.Of(user) })
		return func(text string) bool {
			acl := queues.ParseACL(text)
			return acl.Allows(user, nil) || len(acl.Groups) > 0 && acl.Allows(user, groups())
		}
	}
}
