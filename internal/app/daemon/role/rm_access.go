// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// proxyRules reads hadoop.proxyuser.USER.{hosts,users,groups}.
func proxyRules(s *settings.Settings) map[string]server.ProxyRule {
	rules := map[string]server.ProxyRule{}
	for _, kind := range []string{"hosts", "users", "groups"} {
		for _, v := range s.Matching("hadoop.proxyuser.*." + kind) {
			name := strings.TrimSuffix(strings.TrimPrefix(v.Key, "hadoop.proxyuser."), "."+kind)
			r := rules[name]
			list := settings.SplitList(v.Text)
			switch kind {
			case "hosts":
				r.Hosts = resolveHosts(list)
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

// resolveHosts turns names into addresses; what is none stays as written.
func resolveHosts(list []string) []string {
	var out []string
	for _, h := range list {
		if h == "*" || strings.Contains(h, "/") || net.ParseIP(h) != nil {
			out = append(out, h)
			continue
		}
		found, err := net.LookupHost(h)
		if err != nil {
			slog.Warn("proxy-user host does not resolve", "host", h, "error", err)
			continue
		}
		out = append(out, found...)
	}
	return out
}

// groupsOf finds a user's groups: those of
// hadoop.user.group.static.mapping.overrides (user=group1,group2;user2=…), of
// this machine for everybody else.
func groupsOf(s *settings.Settings) func(user string) []string {
	static := map[string][]string{}
	for entry := range strings.SplitSeq(s.String("hadoop.user.group.static.mapping.overrides"), ";") {
		if user, groups, ok := strings.Cut(entry, "="); ok {
			static[strings.TrimSpace(user)] = settings.SplitList(groups)
		}
	}
	return func(user string) []string {
		if groups, ok := static[user]; ok {
			return groups
		}
		return server.SystemGroups(user)
	}
}

// administrators reads yarn.admin.acl, with groups as groupsOf finds them.
func administrators(s *settings.Settings) func(user string) bool {
	acl, groups := queues.ParseACL(s.String("yarn.admin.acl")), groupsOf(s)
	return func(user string) bool { return acl.All || acl.Allows(user, groups(user)) }
}

// allows tells whom access lists in Hadoop's form allow, with groups as groupsOf finds
// them.
func allows(s *settings.Settings) func(user string) func(acl string) bool {
	groupsOf := groupsOf(s)
	return func(user string) func(string) bool {
		groups := sync.OnceValue(func() []string { return groupsOf(user) })
		return func(text string) bool {
			acl := queues.ParseACL(text)
			return acl.Allows(user, nil) || len(acl.Groups) > 0 && acl.Allows(user, groups())
		}
	}
}
