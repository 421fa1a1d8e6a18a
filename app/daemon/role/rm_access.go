// SPDX-License-Identifier: Apache-2.0

package role

import (
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

// administrators reads yarn.admin.acl.
func administrators(s *settings.Settings, g *groups.Groups) func(user string) bool {
	acl := queues.ParseACL(s.ACL("yarn.admin.acl"))
	return func(user string) bool {
		return acl.Allows(user, nil) || len(acl.Groups) > 0 && acl.Allows(user, g.Of(user))
	}
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
